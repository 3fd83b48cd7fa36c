/**
 * Lets the official referee (@modelcontextprotocol/conformance) judge the client, one row
 * for each scenario and revision: `npm run conformance`, on Node. Arguments:
 * `node`, `deno`, `bun` (any number), `--only <pattern>` for rows such as
 * `auth/dpop@extension`, `--client <command>` for another client, `--jobs <n>` (default 2).
 * A row passes when the referee passes it without a warning and has checked something.
 * With the argument `server` it judges the gateway instead; see conformance-server.ts.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const root = fileURLToPath(new URL("..", import.meta.url));
const referee = join(root, "node_modules/@modelcontextprotocol/conformance/dist/index.js");
const client = join(root, "test/conformance/client.ts");
const bin = (name: string): string => join(root, "node_modules/.bin", name);
const runtimes: Readonly<Record<string, string>> = {
  node: `"${process.execPath}" "${client}"`,
  deno: `"${bin("deno")}" run -A "${client}"`,
  bun: `"${bin("bun")}" "${client}"`,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: "string", default: "" },
    client: { type: "string" },
    jobs: { type: "string", default: "2" },
    timeout: { type: "string", default: "60000" },
  },
});

if (positionals[0] === "server") {
  const { conformServers } = await import("./conformance-server.ts");
  process.exit(await conformServers());
}

interface Row {
  readonly scenario: string;
  readonly version: string;
}

const rows: ReadonlyArray<Row> = [
  ...execFileSync(process.execPath, [referee, "list", "--client"], { encoding: "utf8" }).matchAll(
    /^\s+- (\S+) \[([^\]]*)\]/gm,
  ),
]
  .flatMap(([, scenario, versions]) =>
    versions!.split(",").map((version) => ({ scenario: scenario!, version: version.trim() })),
  )
  .filter(({ scenario, version }) => new RegExp(values.only).test(`${scenario}@${version}`));

const out = mkdtempSync(join(tmpdir(), "nucleo-mcp-conformance-"));

/** Statuses of a row's checks; the referee writes them below the folder it was given. */
const statuses = (folder: string): ReadonlyArray<string> => {
  const file = readdirSync(folder, { recursive: true, encoding: "utf8" }).find((path) => path.endsWith("checks.json"));
  return file
    ? JSON.parse(readFileSync(join(folder, file), "utf8")).map((check: { status: string }) => check.status)
    : [];
};

const judge = ({ scenario, version }: Row, name: string, command: string): Promise<boolean> =>
  new Promise((resolve) => {
    const folder = mkdtempSync(join(out, "row-"));
    const args = ["client", "--command", command, "--scenario", scenario, "--timeout", values.timeout, "-o", folder];
    if (version !== "extension") args.push("--spec-version", version);
    const child = spawn(process.execPath, [referee, ...args], { stdio: ["ignore", "pipe", "pipe"] });
    let log = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (log += chunk));
    child.on("close", (code) => {
      const passed = code === 0 && statuses(folder).includes("SUCCESS");
      console.log(`${passed ? "pass" : "FAIL"}  ${name}  ${scenario}@${version}`);
      if (!passed && !values.client) console.log(log.slice(-4000).replace(/^/gm, "      "));
      resolve(passed);
    });
  });

const commands = values.client
  ? [["client", values.client] as const]
  : (positionals.length > 0 ? positionals : ["node"]).map((name) => {
      const command = runtimes[name];
      if (command === undefined) throw new Error(`'${name}' is no runtime; use ${Object.keys(runtimes).join(", ")}`);
      return [name, command] as const;
    });

const total = { passed: 0, failed: 0 };
for (const [name, command] of commands) {
  const waiting = [...rows];
  const work = async (): Promise<void> => {
    for (let row = waiting.shift(); row; row = waiting.shift())
      total[(await judge(row, name, command)) ? "passed" : "failed"]++;
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
}
rmSync(out, { recursive: true, force: true });
console.log(`${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
