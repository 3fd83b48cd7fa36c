/** What `import "nucleo-mcp"` costs beside the SDK's client, each in a fresh process. */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { interleave, line, target } from "./measure.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
// What is published is the built package, so that is what is measured.
execFileSync("npm", ["run", "--silent", "build"], { cwd: root, stdio: "inherit" });
if (!existsSync(`${root}dist/mod.js`)) throw new Error("The build made no dist/mod.js.");

/** Milliseconds of one import, in a new process. */
const importing = (module: string) => (): number => {
  const script = `const start = performance.now(); await import("${module}"); console.log(performance.now() - start);`;
  return Number(execFileSync(process.execPath, ["--input-type=module", "-e", script], { cwd: root, encoding: "utf8" }));
};

const { ours, theirs } = await interleave(
  21,
  importing("nucleo-mcp"),
  importing("@modelcontextprotocol/sdk/client/index.js"),
);
line("import: nucleo-mcp, SDK client", `${ours.toFixed(0)}, ${theirs.toFixed(0)} ms`);
target("  nucleo-mcp / SDK client", ours / theirs, "at most", 1.5, "×");
