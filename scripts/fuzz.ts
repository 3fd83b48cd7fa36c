/**
 * Sends malformed and mutated messages to engines, transports, the gateway and all that reads
 * what servers say: `npm run fuzz -- --messages 1000000`, on the runtime that runs it.
 *
 * Arguments: parts of target names (default all), `--messages <n>` in all (default 1,000,000,
 * divided by weight), `--seed <n>` (default 1), `--path <p>` to play one script of one target
 * again, as a break printed it, `--list`. Each target has a process of its own: a crash or
 * an endless loop is a break like any other. Exits with 1 on a break.
 */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { jsonText } from "../src/core/artifact/json.ts";
import { type Outcome, runTarget } from "../test/fuzz/run-target.ts";
import type { Target } from "../test/fuzz/target.ts";
import { targets } from "../test/fuzz/targets.ts";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    messages: { type: "string", default: "1000000" },
    seed: { type: "string", default: "1" },
    path: { type: "string" },
    list: { type: "boolean", default: false },
    /** Internal: runs the target here, and prints what came of it as JSON. */
    alone: { type: "boolean", default: false },
  },
});

/** Silence of a target's process after which it hangs, ms. */
const silenceMax = 180_000;

const chosen = targets.filter(
  ({ name }) =>
    positionals.length === 0 || positionals.some((part) => (values.alone ? name === part : name.includes(part))),
);
if (chosen.length === 0)
  throw new Error(`no target is named so; there are: ${targets.map(({ name }) => name).join("; ")}`);
const weights = chosen.reduce((sum, { weight }) => sum + weight, 0);
const share = ({ weight }: Target): number => Math.ceil((Number(values.messages) * weight) / weights);

/** An outcome as text: errors and values that are nested too deep would not survive JSON. */
const reported = ({ broken, ...outcome }: Outcome): string => {
  if (!broken) return JSON.stringify(outcome);
  const { error, script } = broken;
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? `\ncaused by ${error.cause.stack}` : "";
  return JSON.stringify({ ...outcome, broken: { ...broken, script: jsonText(script), error: text + cause } });
};

if (values.alone) {
  const [target] = chosen;
  const outcome = await runTarget(target!, {
    seed: Number(values.seed),
    messages: Number(values.messages),
    path: values.path,
    onProgress: () => console.log("."),
  });
  console.log(reported(outcome));
  process.exit(0);
}

/** How to run this file again on the runtime that runs it. */
const command = (): ReadonlyArray<string> => {
  if ("Deno" in globalThis) return ["run", "-A", "--v8-flags=--expose-gc"];
  return "Bun" in globalThis ? [] : ["--expose-gc"];
};

interface Report extends Omit<Outcome, "broken"> {
  readonly broken?: { readonly seed: number; readonly path: string; readonly script: string; readonly error: string };
}

const run = (target: Target): Promise<Report> =>
  new Promise((resolve) => {
    const args = [...command(), fileURLToPath(import.meta.url), "--alone", "--seed", values.seed];
    if (values.path !== undefined) args.push("--path", values.path);
    const child = spawn(process.execPath, [...args, "--messages", String(share(target)), target.name], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    let [last, hung] = ["", false];
    const hang = (): void => {
      hung = true;
      child.kill("SIGKILL");
    };
    let timer = setTimeout(hang, silenceMax);
    child.stdout.on("data", (chunk) => {
      last = (last + String(chunk)).replace(/^(?:\.\n)+/, "");
      clearTimeout(timer);
      timer = setTimeout(hang, silenceMax);
    });
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      const line = last.trim().split("\n").at(-1) ?? "";
      if (code === 0 && line.startsWith("{")) return resolve(JSON.parse(line) as Report);
      const error = hung ? `it was silent for ${silenceMax / 1000} s` : `its process ended: ${code ?? signal}`;
      const broken = { seed: Number(values.seed), path: "", script: "", error: `${error}\n${last}` };
      resolve({ name: target.name, messages: 0, elapsed: 0, growth: 0, broken });
    });
  });

if (values.list) {
  for (const target of chosen) console.log(`${String(share(target)).padStart(9)}  ${target.name}`);
  process.exit(0);
}

const total = { messages: 0, elapsed: 0, breaks: 0 };
for (const target of chosen) {
  const { name, messages, elapsed, growth, broken } = await run(target);
  total.messages += messages;
  total.elapsed += elapsed;
  const seconds = (elapsed / 1000).toFixed(1);
  const grown = Math.round(growth / 2 ** 20);
  console.log(
    `${broken ? "BREAK" : "ok   "}  ${name}: ${messages} messages, ${seconds} s, heap ${grown >= 0 ? "+" : ""}${grown} MiB`,
  );
  if (!broken) continue;
  total.breaks++;
  console.log(`  again: npm run fuzz -- --seed ${broken.seed} --path ${broken.path} "${name}"`);
  console.log(`  script: ${broken.script.slice(0, 4000)}\n  ${broken.error}`);
}
console.log(`${total.messages} messages, ${(total.elapsed / 1000).toFixed(0)} s, ${total.breaks} breaks`);
process.exitCode = total.breaks === 0 ? 0 : 1;
