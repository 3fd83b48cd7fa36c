/** A long call: progress as it comes, time limits, and a cancellation that reaches the server. */
import { createRuntime, InMemoryEndpoint, RequestTimeout } from "../src/mod.ts";
import { exports, startNotes } from "./support/notes-server.ts";

const check = (held: boolean, what: string): void => {
  if (!held) throw new Error(`this did not hold: ${what}`);
  console.log(`ok: ${what}`);
};

await using runtime = await createRuntime();
await runtime.attach("notes", new InMemoryEndpoint({ name: "notes", connect: startNotes }));
const slow = { tool: "notes__export" };

// The host changes its mind at the third sign of progress.
const controller = new AbortController();
const changedMind = new Error("the user pressed Escape");
const seen: Array<number> = [];
const aborted = await runtime
  .callTool(slow, {
    signal: controller.signal,
    onProgress: ({ progress, total }) => {
      seen.push(progress / (total ?? 1));
      if (seen.length === 3) controller.abort(changedMind);
    },
  })
  .catch((error: unknown) => error);
check(seen.join() === "0.001,0.002,0.003", `progress came as ${seen.join(", ")}`);
check(aborted === changedMind, "the call rejects with the host's own reason");

// Progress resets the limit on silence, so a limit on the whole is what ends this one.
const late = await runtime
  .callTool(slow, { timeout: "5 seconds", maxTotalTimeout: "100 millis", onProgress: () => {} })
  .catch((error: unknown) => error);
check(late instanceof RequestTimeout && late.kind === "total", `the limit on the whole: ${String(late)}`);

// A signal that is aborted already: the server never hears of the call.
const never = await runtime.callTool(slow, { signal: AbortSignal.abort(changedMind) }).catch((error: unknown) => error);
check(never === changedMind, "an aborted signal starts nothing");

await runtime.callTool({ tool: "notes__add", arguments: { text: "still here" } });
check(exports.cancelled === 2, "the server heard of both cancellations, and of nothing else");
