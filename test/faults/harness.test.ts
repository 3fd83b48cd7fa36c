/** Fault runs see what they are to see: each invariant, broken on purpose, is reported; a case is small and can be played again. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { ConnectFailed, ConnectionLost, InMemoryEndpoint, PluginFailed } from "../../src/mod.ts";
import { defaultAnswers } from "../../src/testing/servers/default-answers.ts";
import type { Recording } from "./callers.ts";
import { breaksOf, invariants } from "./invariants.ts";
import { loads } from "./load.ts";
import type { Outcome } from "./outcome.ts";
import { ProcessWatch } from "./process-watch.ts";
import { runFaults } from "./run.ts";
import type { FaultTransport } from "./world.ts";

const [load] = fc.sample(loads, { numRuns: 1, seed: 1 }) as [Recording["load"]];
const sound: Recording = {
  load: { ...load, resend: "never" },
  outcomes: [],
  rest: { at: 0, state: "running", gates: [], endpoints: [], connectors: [] },
  closed: { at: 0, state: "closed", gates: [], endpoints: [], connectors: [] },
  received: new Map(),
  leaks: [],
};
const outcome = (parts: Partial<Outcome>): Recording => ({
  ...sound,
  outcomes: [{ what: "it", to: "faulty", bound: 10, state: "answered", took: 1, closing: false, ...parts }],
});
const at = { server: "s", endpointId: "s" };
const gate = { name: "g", capacity: 1, used: 1, waiting: 0 };
const endpoint = { endpointId: "s", server: "s", transport: "stdio", state: "ready", inFlight: 0, users: 0 } as const;
const books = { connectors: 0, connects: 0, calls: 0, failures: 0, lastActivity: 0 };

const broken: Readonly<Record<string, ReadonlyArray<Recording>>> = {
  "every promise settles within its bound": [
    outcome({ state: "pending" }),
    outcome({ took: 60_000 }),
    outcome({ took: 5000, bound: 60_000, abort: 5, state: "failed", error: 1, reason: 1 }),
  ],
  "every failure is one of our tagged errors, or the caller's own abort reason": [
    outcome({ state: "failed", error: new TypeError("x is undefined") }),
    outcome({ state: "failed", error: undefined }),
    outcome({ state: "failed", error: new PluginFailed({ plugin: "core", reason: "unexpected defect" }) }),
    outcome({ state: "failed", error: "another", reason: "mine", abort: 5 }),
  ],
  "what was aborted before it began never begins": [outcome({ abort: 0, reason: "mine" })],
  "a tools/call reaches the server at most once, and not at all when its error says so": [
    { ...sound, received: new Map([["m", 2]]) },
    ...[
      new ConnectionLost({ server: "s", outcome: "not-sent", reason: "gone" }),
      new ConnectFailed({ ...at, phase: "spawn", reason: "no" }),
    ].map((error) => ({ ...outcome({ state: "failed", marker: "m", error }), received: new Map([["m", 1]]) })),
  ],
  "an answer reaches the call it belongs to": [outcome({ marker: "m", value: { textContent: '{"marker":"other"}' } })],
  "a healthy neighbour is untouched": [
    outcome({ to: "neighbour", marker: "n", value: { textContent: "not its arguments" } }),
    outcome({ to: "neighbour", marker: "n", value: { textContent: '{"marker":"n"}' } }),
    outcome({ to: "neighbour", state: "failed", error: new ConnectFailed({ ...at, phase: "spawn", reason: "no" }) }),
  ],
  "no slot of a gate is lost": [
    { ...sound, rest: { ...sound.rest!, gates: [gate] } },
    { ...sound, closed: { ...sound.closed!, gates: [{ ...gate, used: 0, waiting: 1 }] } },
  ],
  "nothing outlives the runtime": [
    { ...sound, leaks: ["process 1"] },
    { ...sound, closed: { ...sound.closed!, state: "closing" } },
    { ...sound, closed: { ...sound.closed!, endpoints: [{ ...endpoint, ...books }] } },
  ],
};

/** A polite server in this process. */
const polite = (transport: Transport): Promise<void> => {
  const answer = defaultAnswers({});
  // oxlint-disable-next-line unicorn/prefer-add-event-listener -- a Transport has no other way
  transport.onmessage = (message) => {
    if ("id" in message && "method" in message) void transport.send(answer(message as never) as never);
  };
  return transport.start();
};

/** Breaks when its program, a number, is above ten. */
const fragile: FaultTransport<number> = {
  name: "fragile",
  programs: fc.nat({ max: 1000 }),
  start: async (program) => ({
    faulty: new InMemoryEndpoint({ name: "faulty", connect: (transport) => polite(transport) }),
    neighbour: new InMemoryEndpoint({ name: "neighbour", connect: (transport) => polite(transport) }),
    received: () => new Map(Array.from({ length: 9 }, (_, n) => [`n${n}`, 1])),
    leaks: () => (program > 10 ? [`process ${program}`] : []),
    stop: async () => {},
  }),
};

describe("fault runs", () => {
  it("find nothing in a sound recording", () => {
    expect(breaksOf(sound)).toEqual([]);
    expect(Object.keys(broken)).toEqual(Object.keys(invariants));
  });

  for (const [name, recordings] of Object.entries(broken)) {
    it(`report when not: ${name}`, () => {
      for (const recording of recordings)
        expect(breaksOf(recording)).toEqual([expect.stringMatching(new RegExp(`^${name}: `))]);
    });
  }

  it("see what nobody else catches", async () => {
    using watch = new ProcessWatch();
    process.emit("unhandledRejection", new Error("nobody looked"), Promise.resolve());
    process.emit("uncaughtException", new Error("nobody caught"));
    expect(watch.take()).toEqual([
      expect.stringContaining("unhandledRejection: Error: nobody looked"),
      expect.stringContaining("uncaughtException: Error: nobody caught"),
    ]);
  });

  it("make a broken case small, and play it again by its seed and path", async () => {
    const report = await runFaults(fragile, { seed: 1, runs: 8, lanes: 2 });
    expect(report.broken.length).toBeGreaterThan(0);
    for (const { seed, path, breaks, case: small } of report.broken) {
      expect(small.program).toBe(11);
      expect(small.load.callers).toHaveLength(1);
      expect(breaks).toEqual(["nothing outlives the runtime: still there after the close: process 11"]);
      const again = await runFaults(fragile, { seed, path, runs: 1 });
      expect(again.broken.map((one) => one.case)).toEqual([small]);
    }
  });
});
