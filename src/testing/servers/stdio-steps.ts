/** Takes the steps of a stdio fault program, in the process that it tells what to do. */
import { spawn } from "node:child_process";
import { appendFileSync } from "node:fs";
import { type Message, textResult } from "./default-answers.ts";
import type { AnsweringStep, Drip, Json } from "./fault-program.ts";
import { closeStdout, floodError, flushed, frame, write, writeError } from "./stdio-output.ts";
import type { Grandchild, Step } from "./stdio-program.ts";
import { fill, fillText, makeLatches, sleep } from "./step-script.ts";

const latch = makeLatches();

const leaveBehind = (grandchild: Grandchild): void => {
  const code = `${grandchild.ignoreSigterm ? 'process.on("SIGTERM",()=>{});' : ""}setInterval(()=>{},1000)`;
  const child = spawn(process.execPath, ["-e", code], {
    stdio: grandchild.holdsPipes === false ? "ignore" : "inherit",
  });
  child.unref();
  if (grandchild.pidFile) appendFileSync(grandchild.pidFile, `${child.pid}\n`);
};

const about = (): string =>
  JSON.stringify({ pid: process.pid, ppid: process.ppid, cwd: process.cwd(), argv: process.argv, env: process.env });

type Answering = AnsweringStep | { readonly about: true };

const act = async (step: Exclude<Step, Answering>, message: Message): Promise<void> => {
  if ("message" in step) return write(frame(fill(step.message, message)));
  if ("raw" in step) return write(fillText(step.raw, message));
  if ("bytes" in step) return write(Buffer.from(step.bytes, "base64"), step.drip);
  if ("notify" in step) return write(frame({ jsonrpc: "2.0", ...(fill(step.notify, message) as object) }));
  if ("request" in step) return write(frame({ jsonrpc: "2.0", ...(fill(step.request, message) as object) }));
  if ("delay" in step) return sleep(step.delay);
  if ("hold" in step) return latch(step.hold).opened;
  if ("release" in step) return latch(step.release).open();
  if ("stderr" in step) return writeError(Buffer.from(step.stderr));
  if ("stderrFlood" in step) return floodError(step.stderrFlood.bytes, step.stderrFlood.newline !== false);
  if ("grandchild" in step) return leaveBehind(step.grandchild);
  if ("exit" in step) {
    await flushed();
    process.exit(step.exit);
  }
  if ("stdoutFlood" in step) {
    const around = (part = ""): string => fillText(part, message);
    return write(`${around(step.head)}${"e".repeat(step.stdoutFlood)}${around(step.tail)}\n`);
  }
  await flushed();
  if ("closeStdout" in step) return closeStdout();
  process.kill(process.pid, step.kill);
  // The signal is delivered on a later turn; nothing more is to happen before.
  await sleep(1000);
};

/** Runs one step; answers true when the request needs no default answer any more. */
const run = async (step: Step, message: Message): Promise<boolean> => {
  const reply = (body: object, id: Json = message.id, drip?: Drip): Promise<void> =>
    write(frame({ jsonrpc: "2.0", id, ...body }), drip);
  if ("reply" in step) await reply({ result: fill(step.reply, message) }, step.id, step.drip);
  else if ("error" in step) await reply({ error: fill(step.error, message) }, step.id);
  else if ("echo" in step) await reply({ result: textResult(JSON.stringify(message.params?.["arguments"] ?? {})) });
  else if ("big" in step)
    await reply({ result: textResult((step.char ?? "x").repeat(step.big)) }, message.id, step.drip);
  else if ("about" in step) await reply({ result: textResult(about()) });
  else if (!("never" in step)) {
    await act(step, message);
    return false;
  }
  return true;
};

/** Runs steps in order; answers true when one of them gave the answer, or forbade it. */
export const runSteps = async (steps: ReadonlyArray<Step>, message: Message): Promise<boolean> => {
  let answered = false;
  for (const step of steps) answered = (await run(step, message)) || answered;
  return answered;
};
