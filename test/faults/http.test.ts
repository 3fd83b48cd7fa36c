/** Random fault programs over HTTP, few and always the same ones, and the cases that once broke an invariant. */
import { describe, expect, it } from "@effect/vitest";
import { type HttpFaultProgram } from "./http-programs.ts";
import { httpFaults, sseFaults } from "./http-world.ts";
import type { Load } from "./load.ts";
import { ProcessWatch } from "./process-watch.ts";
import { type FaultCase, playCase, runFaults } from "./run.ts";

describe.each([httpFaults, sseFaults])("a runtime over $name", (transport) => {
  it("holds every invariant through 6 worlds of faults", { timeout: 120_000 }, async () => {
    const report = await runFaults(transport, { seed: 6, runs: 6, lanes: 6, shrink: 10_000 });
    expect(report.broken).toEqual([]);
    expect(report.left).toEqual([]);
    expect(report.worlds).toBe(6);
  });
});

const load: Load = {
  face: "promise",
  settings: {
    requestTimeout: 300,
    maxTotalTimeout: 3000,
    breakerCooldown: 50,
    minUptime: 1,
    idleTimeout: 10_000,
    closeGrace: 100,
    shutdownGrace: 100,
    messageMax: 1_000_000,
    listRetry: 20,
    stdioEndpointMax: 4,
    stdioPoolMax: 8,
    stdioProcessMax: 8,
    httpPoolMax: 8,
  },
  resend: "never",
  host: "answers",
  callers: [[{ do: "call", via: "runtime" }]],
  neighbourCalls: 1,
};
const polite: HttpFaultProgram = { server: { answers: "json" } };
const readOnly = { name: "echo", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };

/** Shrunk; each is played several times, as its moment is a matter of luck. */
const kept: Readonly<Record<string, FaultCase<HttpFaultProgram>>> = {
  "the runtime closes while it connects": { program: polite, load: { ...load, closeAfter: 0 } },
  "the runtime closes while it lists": {
    program: polite,
    load: { ...load, face: "effect", callers: [[{ do: "tools" }]], closeAfter: 20 },
  },
  "the runtime closes before a lost call could be sent again": {
    program: { server: { answers: "json", tools: [readOnly], on: { "tools/call": [{ delay: 15 }, { drop: true }] } } },
    load: {
      ...load,
      resend: "annotated",
      callers: [
        [
          { do: "ping", abort: 20, total: 50 },
          { do: "call", via: "runtime" },
        ],
        [{ do: "list" }],
      ],
      neighbourCalls: 4,
      closeAfter: 20,
    },
  },
};

describe("what broke once", () => {
  it.each(Object.entries(kept))("%s", { timeout: 60_000 }, async (_name, given) => {
    using watch = new ProcessWatch();
    const breaks = await Promise.all(Array.from({ length: 8 }, () => playCase(httpFaults, given, watch)));
    expect(breaks.flat()).toEqual([]);
  });
});
