/**
 * Random fault programs against random call loads: `npm run faults -- --seed 1 --runs 100`.
 *
 *   --seed N        default: by the clock; printed
 *   --runs M        worlds for each transport; default 100
 *   --transport T   stdio, http, sse or all; default all
 *   --runtime R     node, deno, bun or all; default node
 *   --path P        with the seed and the transport of a break: plays it again, and makes it smaller
 *   --case FILE     plays the case in a JSON file, as a break prints it
 *   --lanes L       worlds at a time; default 6
 *
 * Exits with 1 when an invariant broke; what is printed then repeats it.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import { ProcessWatch } from "../test/faults/process-watch.ts";
import { playCase, runFaults } from "../test/faults/run.ts";
import { faultTransports } from "../test/faults/transports.ts";
import type { FaultTransport } from "../test/faults/world.ts";

const { values } = parseArgs({
  options: {
    seed: { type: "string" },
    runs: { type: "string", default: "100" },
    transport: { type: "string", default: "all" },
    runtime: { type: "string" },
    path: { type: "string" },
    case: { type: "string" },
    lanes: { type: "string", default: "6" },
  },
});

const runtimes: Record<string, ReadonlyArray<string>> = {
  node: ["node", "--expose-gc"],
  deno: ["deno", "run", "-A", "--v8-flags=--expose-gc"],
  bun: ["bun", "--bun"],
};

const chosen = faultTransports.filter(({ name }) => values.transport === "all" || values.transport === name);
if (chosen.length === 0) {
  console.error(
    `No transport '${values.transport}'. There are: ${faultTransports.map(({ name }) => name).join(", ")}.`,
  );
  process.exit(2);
}

const playFile = async (transport: FaultTransport, file: string): Promise<boolean> => {
  using watch = new ProcessWatch();
  const breaks = await playCase(transport, JSON.parse(readFileSync(file, "utf8")), watch);
  console.log(breaks.length === 0 ? "holds" : breaks.join("\n"));
  return breaks.length === 0;
};

const megabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const runAll = async (transport: FaultTransport): Promise<boolean> => {
  const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed);
  const startedAt = performance.now();
  const report = await runFaults(transport, {
    seed,
    runs: Number(values.runs),
    lanes: Number(values.lanes),
    path: values.path,
    onWorld: (done) => {
      if (done % 100 === 0) console.log(`${transport.name}: ${done} worlds`);
    },
  });
  const seconds = Math.round((performance.now() - startedAt) / 1000);
  for (const broken of report.broken) {
    console.log(`\n${transport.name} broke: --transport ${transport.name} --seed ${broken.seed} --path ${broken.path}`);
    for (const line of broken.breaks) console.log(`- ${line}`);
    console.log(JSON.stringify(broken.case));
  }
  for (const left of report.left) console.log(`- ${left}`);
  const { before, after } = report.levels;
  const endings = [...report.outcomes].toSorted(([, a], [, b]) => b - a).map(([tag, count]) => `${tag} ${count}`);
  console.log(
    `\n${transport.name}: seed ${seed}, ${report.worlds} worlds, ${report.broken.length} broken, ${seconds} s\n` +
      `heap ${megabytes(before.heap)} -> ${megabytes(after.heap)}${after.collected ? "" : " (not collected)"}, ` +
      `RSS ${megabytes(before.rss)} -> ${megabytes(after.rss)}\n${endings.join(", ")}`,
  );
  return report.broken.length === 0 && report.left.length === 0;
};

if (values.runtime === undefined) {
  let sound = true;
  for (const transport of chosen)
    sound = (await (values.case === undefined ? runAll(transport) : playFile(transport, values.case))) && sound;
  process.exit(sound ? 0 : 1);
}

// On another runtime: the same script there, with the other arguments.
const at = process.argv.findIndex((word) => word.startsWith("--runtime"));
const rest = process.argv
  .slice(2)
  .filter((_, i) => i + 2 !== at && !(i + 1 === at && process.argv[at] === "--runtime"));
const names = values.runtime === "all" ? Object.keys(runtimes) : [values.runtime];
let status = 0;
for (const name of names) {
  const [command, ...args] = runtimes[name] ?? [];
  if (command === undefined) {
    console.error(`No runtime '${name}'. There are: ${Object.keys(runtimes).join(", ")}, all.`);
    process.exit(2);
  }
  console.log(`\n${name}`);
  status ||= spawnSync(command, [...args, process.argv[1]!, ...rest], { stdio: "inherit" }).status ?? 1;
}
process.exit(status);
