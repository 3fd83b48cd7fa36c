/** Runs the command: as a process of the runtime that runs the tests, or within it. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import type { TextStream } from "../../src/cli/output.ts";
import { run } from "../../src/cli/run.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));

export interface Outcome {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Started {
  readonly kill: (signal: NodeJS.Signals) => void;
  readonly stopReading: () => void;
  readonly outcome: Promise<Outcome>;
}

/** Starts the real command. */
export const start = (
  words: ReadonlyArray<string>,
  options: { readonly cwd?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Started => {
  const runner = "Deno" in globalThis ? ["run", "-A", main] : [main];
  const child = spawn(process.execPath, [...runner, ...words], {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (chunk: string) => (stdout += chunk));
  child.stderr.setEncoding("utf8").on("data", (chunk: string) => (stderr += chunk));
  const outcome = new Promise<Outcome>((resolve) => {
    child.on("close", (code) => resolve({ code, stdout, stderr }));
  });
  return {
    // Not `child.kill`: on Deno the exit code is lost then.
    kill: (signal) => void process.kill(child.pid!, signal),
    stopReading: () => void child.stdout.destroy(),
    outcome,
  };
};

/** Runs the command without a process of its own. */
export const within = async (...words: ReadonlyArray<string>): Promise<Outcome> => {
  const written = { stdout: "", stderr: "" };
  const stream = (name: keyof typeof written): TextStream => ({
    write: (text, done) => {
      written[name] += text;
      done?.();
    },
  });
  const options = { words, version: "0.0.0", stdout: stream("stdout"), stderr: stream("stderr"), environment: {} };
  const code = await Effect.runPromise(run(options));
  return { code, ...written };
};
