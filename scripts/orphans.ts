/**
 * Kills hosts in random states and counts what they leave behind: `npm run orphans --
 * [node|deno|bun …] --runs 100 --seed N`. Each run starts a host of that runtime with
 * servers of every bad kind and kills it by SIGKILL at a random moment; every fifth
 * run more kills another way. Exits with 1 when any process lives 5 s later.
 */
import { parseArgs } from "node:util";
import { dieOnce, type Way, ways } from "../test/support/stdio-host-death.ts";
import { plans } from "../test/support/stdio-host-plan.ts";

const runtimes: Readonly<Record<string, ReadonlyArray<string>>> = {
  node: ["node"],
  deno: ["deno", "run", "-A"],
  bun: ["bun"],
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    runs: { type: "string", default: "100" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    parallel: { type: "string", default: "3" },
  },
});
const [runs, seed, parallel] = [Number(values.runs), Number(values.seed), Number(values.parallel)];

const percent = (part: number, whole: number): string => `${Math.round((100 * part) / Math.max(whole, 1))} %`;

for (const name of positionals.length > 0 ? positionals : Object.keys(runtimes)) {
  const others = ways.slice(1).flatMap((way) => Array<Way>(Math.ceil(runs / 15)).fill(way));
  const waysToDie = [...Array<Way>(runs).fill("SIGKILL"), ...others];
  const queue = plans(seed, waysToDie.length).map((plan, at) => ({ at, plan, way: waysToDie[at]! }));
  const total = { processes: 0, alive: 0, longest: 0, survivors: 0 };
  const verbs = new Map<string, number>();
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      const { at, plan, way } = next;
      const death = await dieOnce(runtimes[name]!, plan, way);
      total.processes += death.processes;
      total.alive += death.alive;
      total.longest = Math.max(total.longest, death.lasted);
      total.survivors += death.survivors.length;
      for (const verb of new Set(death.about.map((what) => what.split(" ")[0]!)))
        verbs.set(verb, (verbs.get(verb) ?? 0) + 1);
      if (death.survivors.length > 0)
        console.error(
          `${name}: run ${at} (seed ${seed}, ${way} after ${plan.moment} ms, amid ${death.about.join(", ")}):`,
          death.survivors,
        );
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  const amid = [...verbs].map(([verb, count]) => `${verb} in ${percent(count, waysToDie.length)}`).toSorted();
  console.log(
    `${name}: seed ${seed}, ${runs} hosts killed by SIGKILL and ${others.length} otherwise, amid ${amid.join(", ")}; ` +
      `${total.processes} processes, ${total.alive} alive at the death of their host, ` +
      `the last gone after ${(total.longest / 1000).toFixed(1)} s: ${total.survivors} survivors`,
  );
  if (total.survivors > 0 || total.alive === 0) process.exitCode = 1;
}
