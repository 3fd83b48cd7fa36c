/**
 * Long mixed load on one runtime: `npm run soak -- [node|deno|bun …] [--duration 1h | --calls 200000]`.
 * Default: an hour on Node. Exits with 1 when RSS at the end is more than 10 % above RSS
 * at a tenth of the run, when open handles or child processes are left, or when anything
 * failed that was not provoked.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { judge, type SoakReport } from "./soak-report.ts";

const runtimes: Readonly<Record<string, ReadonlyArray<string>>> = {
  node: ["node", "--expose-gc"],
  deno: ["deno", "run", "-A", "--v8-flags=--expose-gc"],
  bun: ["bun"],
};
const units: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600 };

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { duration: { type: "string", default: "1h" }, calls: { type: "string" } },
});
const [, amount, unit] = /^(\d+)([smh])$/.exec(values.duration) ?? [];
if (amount === undefined) throw new Error("--duration takes a number and s, m or h, for example 1h");
const limit = values.calls ? { calls: Number(values.calls) } : { duration: Number(amount) * units[unit!]! * 1000 };

const pathOf = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
/** Starts a server that prints a line of JSON first; what it prints later is of no use. */
const serve = async (file: string, ...args: ReadonlyArray<string>): Promise<{ child: ChildProcess; said: any }> => {
  const child = spawn("node", [pathOf(file), ...args], { stdio: ["pipe", "pipe", "ignore"] });
  const [line] = await once(createInterface({ input: child.stdout! }), "line");
  child.stdout!.resume();
  return { child, said: JSON.parse(line) };
};

for (const name of positionals.length > 0 ? positionals : ["node"]) {
  const http = await serve("./soak-servers.ts");
  const modern = await serve("../test/support/modern-http-server.ts", "modern");
  const urls = { ...http.said, modern: `http://127.0.0.1:${modern.said.port}/mcp` };
  const [command, ...args] = runtimes[name]!;
  const load = spawn(command!, [...args, pathOf("./soak-load.ts"), JSON.stringify({ urls, ...limit })], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const reports: Array<SoakReport> = [];
  createInterface({ input: load.stdout }).on("line", (line) => {
    const report = JSON.parse(line) as SoakReport;
    reports.push(report);
    if (report.kind !== "levels") return;
    const { rss, heap, handles, children } = report.levels;
    const mb = (bytes: number): string => (bytes / 2 ** 20).toFixed(0).padStart(5);
    console.log(
      `${name} ${String(Math.round(report.part * 100)).padStart(3)} %  ${String(report.calls).padStart(8)} calls  RSS ${mb(rss)} MB  heap ${mb(heap)} MB  ${handles} handles  ${children} children`,
    );
  });
  await once(load, "close");
  for (const { child } of [http, modern]) child.stdin!.end();
  const { lines, faults } = judge(reports);
  for (const line of lines) console.log(`${name}: ${line}`);
  for (const fault of faults) console.error(`${name}: ${fault}`);
  if (faults.length > 0) process.exitCode = 1;
}
