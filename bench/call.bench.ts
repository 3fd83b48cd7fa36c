/**
 * A tool call through the runtime beside one through the raw SDK v1 client on its
 * own stdio transport: same server, same calls, taking turns. Ratios of medians.
 */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { fileURLToPath } from "node:url";
import { createRuntime, StdioEndpoint } from "../src/mod.ts";
import { interleave, line, median, target } from "./measure.ts";

const concurrency = 128;
const server = { command: process.execPath, args: [fileURLToPath(new URL("echo-server.mjs", import.meta.url))] };
const text = "x".repeat(200);

type Call = () => Promise<unknown>;

const calls = 8_000;

/** `concurrency` callers, each calling again as soon as it has its answer. */
const burst = async (call: Call): Promise<void> => {
  let left = calls;
  const caller = async () => {
    while (left-- > 0) await call();
  };
  await Promise.all(Array.from({ length: concurrency }, caller));
};

/** Calls per second. */
const throughput = async (call: Call): Promise<number> => {
  const start = performance.now();
  await burst(call);
  return (calls / (performance.now() - start)) * 1_000;
};

/** µs of this process's CPU per call; tells more than the clock when the machine is busy. */
const cpu = async (call: Call): Promise<number> => {
  const start = process.cpuUsage();
  await burst(call);
  const { user, system } = process.cpuUsage(start);
  return (user + system) / calls;
};

/** Median µs of a call, one after the other. */
const latency = async (call: Call): Promise<number> => {
  const times: Array<number> = [];
  for (let n = 0; n < 500; n++) {
    const start = performance.now();
    await call();
    times.push((performance.now() - start) * 1_000);
  }
  return median(times);
};

const runtimeOf = async (slots: number | undefined) => {
  const runtime = await createRuntime(slots ? { settings: { stdioEndpointMax: slots, stdioPoolMax: slots } } : {});
  await runtime.attach("echo", new StdioEndpoint({ name: "echo", ...server }));
  return { runtime, call: () => runtime.callTool({ tool: "echo__echo", arguments: { text } }) };
};

const client = new Client({ name: "bench", version: "1.0.0" });
await client.connect(new StdioClientTransport(server));
const raw: Call = () => client.callTool({ name: "echo", arguments: { text } });
// Slots for all callers, so that both clients have 128 requests in flight.
const wide = await runtimeOf(concurrency);
const usual = await runtimeOf(undefined);
for (const call of [raw, wide.call, usual.call]) {
  const result = (await call()) as { content: ReadonlyArray<{ text?: string }> };
  if (result.content[0]?.text !== text) throw new Error("The server did not echo.");
}

const many = await interleave(
  15,
  () => throughput(wide.call),
  () => throughput(raw),
);
line(
  `${concurrency} concurrent: runtime, raw SDK client`,
  `${many.ours.toFixed(0)}, ${many.theirs.toFixed(0)} calls/s`,
);
target("  throughput, runtime / raw", many.ours / many.theirs, "at least", 0.7, "×");
const work = await interleave(
  7,
  () => cpu(wide.call),
  () => cpu(raw),
);
line("  CPU per call: runtime, raw SDK client", `${work.ours.toFixed(1)}, ${work.theirs.toFixed(1)} µs`);
const one = await interleave(
  15,
  () => latency(wide.call),
  () => latency(raw),
);
line("one after the other: runtime, raw SDK client", `${one.ours.toFixed(0)}, ${one.theirs.toFixed(0)} µs`);
target("  median latency, runtime / raw", one.ours / one.theirs, "at most", 1.3, "×");
const gated = await interleave(
  5,
  () => throughput(usual.call),
  () => throughput(raw),
);
line(`${concurrency} callers share the usual 10 slots, runtime / raw`, `${(gated.ours / gated.theirs).toFixed(2)}×`);

await client.close();
await wide.runtime.close();
await usual.runtime.close();
