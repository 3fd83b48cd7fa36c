/** The official referee judges a server alone and behind the gateway, in both eras, row by row. */
import { describe, expect, it } from "@effect/vitest";
import { beyondEverything, breaches, judgeServers } from "../../../scripts/conformance-server.ts";

/** The referee is long; what it asks over HTTP is the same whatever runs the gateway. */
const isNode = !("Deno" in globalThis || "Bun" in globalThis);

describe("the official server suite", () => {
  it.runIf(isNode)(
    "a server is not worse behind the gateway than alone, and passes all it can in the era it does not speak",
    async () => {
      const judgement = await judgeServers();
      const { legacy, modern } = judgement;
      expect(legacy.alone.size).toBeGreaterThan(25);
      expect([...legacy.behind.keys()]).toEqual([...legacy.alone.keys()]);
      expect(modern.size).toBeGreaterThan(35);
      expect(breaches(judgement)).toEqual([]);
      // No row is excused that passes.
      for (const [row, failed] of Object.entries(beyondEverything))
        expect([row, modern.get(row)?.failed]).toEqual([row, failed]);
      for (const row of ["dns-rebinding-protection", "server-session-lifecycle"])
        expect(legacy.behind.get(row)?.failed).toBe(0);
    },
    120_000,
  );
});
