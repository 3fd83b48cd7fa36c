/** What the scripted stdio server writes with: stdout in pieces, stderr synchronously. */
import { closeSync, writeSync } from "node:fs";
import type { Drip, Json } from "./fault-program.ts";
import { sleep } from "./step-script.ts";

let stdoutClosed = false;
process.stdout.on("error", () => {
  stdoutClosed = true;
});

export const write = async (data: string | Buffer, drip?: Drip): Promise<void> => {
  if (stdoutClosed) return;
  if (!drip) {
    process.stdout.write(data);
    return;
  }
  const bytes = Buffer.from(data as string);
  for (let at = 0; at < bytes.length; at += drip.size) {
    process.stdout.write(bytes.subarray(at, at + drip.size));
    await sleep(drip.delay ?? 0);
  }
};

/** Settles when all that was written to stdout has left. */
export const flushed = (): Promise<void> =>
  new Promise((resolve) => (stdoutClosed ? resolve() : process.stdout.write("", () => resolve())));

export const closeStdout = (): void => {
  stdoutClosed = true;
  closeSync(1);
};

export const frame = (value: Json): string => `${JSON.stringify(value)}\n`;

/** A synchronous write to stderr that waits for a full pipe to be drained. */
export const writeError = (bytes: Buffer): void => {
  let at = 0;
  while (at < bytes.length) {
    try {
      at += writeSync(2, bytes, at);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
    }
  }
};

export const floodError = (count: number, newline: boolean): void => {
  const block = Buffer.from((newline ? `${"e".repeat(79)}\n` : "e".repeat(80)).repeat(200));
  for (let left = count; left > 0; left -= block.length) writeError(block.subarray(0, Math.min(left, block.length)));
};
