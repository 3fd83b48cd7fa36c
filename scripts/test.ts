/**
 * Runs the whole suite on Node, Deno and Bun, one after the other, and prints the
 * counts per runtime and in all: `npm test`. Names of runtimes or of test files as
 * arguments narrow it: `npm test node`, `npm test node test/core`.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const vitest = "node_modules/vitest/vitest.mjs";
const runtimes: Record<string, ReadonlyArray<string>> = {
  node: ["node", vitest],
  deno: ["deno", "run", "-A", "npm:vitest"],
  bun: ["bun", "--bun", vitest],
};

interface Counts {
  readonly passed: number;
  readonly failed: number;
}

const given = process.argv.slice(2);
const wanted = given.filter((word) => word in runtimes);
const files = given.filter((word) => !(word in runtimes));
/** The commands and servers that tests start load the same modules hundreds of times: Node keeps them compiled. */
const env = { NODE_COMPILE_CACHE: join(tmpdir(), "nucleo-mcp-compile-cache"), ...process.env };
const out = mkdtempSync(join(tmpdir(), "nucleo-mcp-test-"));

const run = (name: string): Promise<Counts> =>
  new Promise((resolve) => {
    const report = join(out, `${name}.json`);
    const [command, ...args] = runtimes[name]!;
    const reporters = ["--reporter=dot", "--reporter=json", `--outputFile.json=${report}`];
    const child = spawn(command!, [...args, "run", ...reporters, ...files], { stdio: "inherit", env });
    child.on("close", (code) => {
      try {
        const json = JSON.parse(readFileSync(report, "utf8"));
        // A file that cannot even be loaded counts as one failure, so that it is never passed over.
        const broken = json.testResults.filter(
          (file: { status: string; assertionResults: Array<unknown> }) =>
            file.status === "failed" && file.assertionResults.length === 0,
        ).length;
        const failed = json.numFailedTests + broken;
        resolve({ passed: json.numPassedTests, failed: failed === 0 && code !== 0 ? 1 : failed });
      } catch {
        resolve({ passed: 0, failed: 1 });
      }
    });
  });

const total = { passed: 0, failed: 0 };
const lines: Array<string> = [];
for (const name of wanted.length > 0 ? wanted : Object.keys(runtimes)) {
  const startedAt = Date.now();
  const counts = await run(name);
  total.passed += counts.passed;
  total.failed += counts.failed;
  lines.push(
    `${name}: ${counts.passed} passed, ${counts.failed} failed (${Math.round((Date.now() - startedAt) / 1000)} s)`,
  );
}
rmSync(out, { recursive: true, force: true });
console.log(`\n${lines.join("\n")}\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed === 0 && total.passed > 0 ? 0 : 1;
