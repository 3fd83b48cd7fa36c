/**
 * A stdio server that answers well, and before that writes to its stdout whatever bytes the
 * call brought: `tools/call` with `arguments.chunks`, a list of base64 texts.
 */
import { createInterface } from "node:readline";
import { goodResult } from "./requests.ts";

const write = (bytes: Uint8Array): Promise<void> =>
  new Promise((resolve) => process.stdout.write(bytes, () => resolve()));

let last = Promise.resolve();
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line) as {
    readonly id?: unknown;
    readonly method?: string;
    readonly params?: any;
  };
  if (id === undefined || method === undefined) return;
  last = last.then(async () => {
    for (const chunk of params?.arguments?.chunks ?? []) await write(Buffer.from(chunk, "base64"));
    await write(Buffer.from(`\n${JSON.stringify({ jsonrpc: "2.0", id, result: goodResult(method) })}\n`));
  });
});
