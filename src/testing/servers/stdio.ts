/** A scripted MCP server over stdio: a child process that does what a fault program says. */
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import type { LogLine, StdioProgram } from "./stdio-program.ts";

/** Reads a log; empty when the server has not started. */
export const readLog = (path: string): ReadonlyArray<LogLine> => {
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch {
    return [];
  }
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LogLine);
};

/** The server lies beside this file, compiled or not as this file is. */
const serverScript: string = fileURLToPath(import.meta.url).replace(/stdio(\.[jt]s)$/, "stdio-server$1");

/** One argument holds at most 128 KiB on Linux; a larger program travels as a file named by its content. */
const argumentMax = 100_000;

const programArgument = (program: StdioProgram): string => {
  const json = JSON.stringify(program);
  if (Buffer.byteLength(json) <= argumentMax) return json;
  const digest = createHash("sha256").update(json).digest("hex").slice(0, 16);
  const path = join(tmpdir(), `nucleo-mcp-script-${digest}.json`);
  writeFileSync(path, json);
  return `@${path}`;
};

/** Keeps the compiled script between runs: a start takes 80 ms instead of 200 ms. */
const compileCache = 'data:text/javascript,import m from "node:module";m.enableCompileCache()';

export interface ScriptedStdioOptions {
  /** A Node to run the server on. Default: the runtime that runs this. */
  readonly node?: string | undefined;
}

/** What comes before the script on the command line. */
const launch = ({ node }: ScriptedStdioOptions): ReadonlyArray<string> => {
  const { deno, bun } = process.versions as Record<string, string | undefined>;
  if (node !== undefined || (!deno && !bun)) return [node ?? process.execPath, "--import", compileCache];
  return deno ? [process.execPath, "run", "--allow-all"] : [process.execPath];
};

/**
 * The command line of a scripted server, fit for `new StdioEndpoint({ name, ...scriptedStdio(program) })`.
 *
 * The server is a process of its own, so that it can die, hang and be killed.
 */
export const scriptedStdio = (
  program: StdioProgram = {},
  options: ScriptedStdioOptions = {},
): { command: string; args: string[] } => {
  const [command, ...before] = launch(options);
  return { command: command!, args: [...before, serverScript, programArgument(program)] };
};
