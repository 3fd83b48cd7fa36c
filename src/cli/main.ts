#!/usr/bin/env node
/** The `nucleo-mcp` command. */
import { readFileSync } from "node:fs";
import * as Module from "node:module";

// The command is started often and lives shortly: on Node, compiled code is kept between runs.
Module.enableCompileCache?.();
const Effect = await import("effect/Effect");
const { run } = await import("./run.ts");
const { interruptOnSignal } = await import("./signals.ts");

const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as {
  readonly version: string;
};
// A reader that closes the pipe ends nothing here: what is left to do is to end the servers.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {});

const fiber = Effect.runFork(
  run({
    words: process.argv.slice(2),
    version,
    stdout: process.stdout,
    stderr: process.stderr,
    environment: process.env,
  }),
);
const signalled = interruptOnSignal(fiber);
fiber.addObserver((exit) => process.exit(signalled() ?? (exit._tag === "Success" ? exit.value : 1)));
