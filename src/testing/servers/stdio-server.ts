/** The scripted server: reads its program from its argument, see `stdio-program.ts`. Uses no SDK. */
import { appendFileSync, readFileSync } from "node:fs";
import { defaultAnswers, type Message } from "./default-answers.ts";
import { frame, write } from "./stdio-output.ts";
import type { LogLine, StdioProgram, Step } from "./stdio-program.ts";
import { runSteps } from "./stdio-steps.ts";
import { makeTaking } from "./step-script.ts";

const argument = process.argv[2] ?? "{}";
const program = JSON.parse(
  argument.startsWith("@") ? readFileSync(argument.slice(1), "utf8") : argument,
) as StdioProgram;

const log = (line: LogLine): void => {
  if (program.log) appendFileSync(program.log, `${JSON.stringify(line)}\n`);
};

const answer = defaultAnswers(program);
const take = makeTaking(program.on);

const receive = (message: Message): void => {
  log({ kind: "message", pid: process.pid, message });
  if (message.method === undefined) return;
  const steps = take(message.method);
  const byDefault = (): void => {
    if (message.id !== undefined) void write(frame(answer(message)));
  };
  if (!steps) return byDefault();
  void runSteps(steps, message).then((answered) => {
    if (!answered) byDefault();
  });
};

/** Starts so far, this one included. */
let starts = 1;
if (program.pidFile) {
  appendFileSync(program.pidFile, `${process.pid}\n`);
  starts = readFileSync(program.pidFile, "utf8").split("\n").length - 1;
}
log({ kind: "start", pid: process.pid });

if (program.ignoreSigterm || program.log) {
  process.on("SIGTERM", () => {
    log({ kind: "signal", pid: process.pid, signal: "SIGTERM" });
    if (!program.ignoreSigterm) process.exit(143);
  });
}

const start = (): void => {
  const parts: Array<string> = [];
  process.stdin.setEncoding("utf8");
  process.stdin.on("data", (chunk: string) => {
    const lines = chunk.split("\n");
    const last = lines.pop()!;
    for (const line of lines) receive(JSON.parse(parts.splice(0).join("") + line) as Message);
    parts.push(last);
  });
  process.stdin.on("end", () => {
    log({ kind: "stdin-end", pid: process.pid });
    if (!program.ignoreStdinEnd) process.exit(0);
  });
  if (program.ignoreStdinEnd) setInterval(() => {}, 1000);
};

const onStart = program.onStart ?? [];
const steps = Array.isArray(onStart[0]) ? onStart[Math.min(starts, onStart.length) - 1] : onStart;
if (onStart.length > 0) void runSteps(steps as ReadonlyArray<Step>, {}).then(start);
else start();
