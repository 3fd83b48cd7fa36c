/** Random fault programs over stdio, few and always the same ones; `npm run faults` plays as many as one likes. */
import { describe, expect, it } from "@effect/vitest";
import { runFaults } from "./run.ts";
import { stdioFaults } from "./stdio-world.ts";

describe("a runtime over stdio", () => {
  it("holds every invariant through 6 worlds of faults", { timeout: 120_000 }, async () => {
    const report = await runFaults(stdioFaults, { seed: 6, runs: 6, lanes: 6, shrink: 10_000 });
    expect(report.broken).toEqual([]);
    expect(report.left).toEqual([]);
    expect(report.worlds).toBe(6);
  });
});
