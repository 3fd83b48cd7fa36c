/** Runs a contract suite under vitest. */
import { describe, expect, it } from "@effect/vitest";
import type { ContractSuite } from "../../src/testing.ts";

export const checkSuite = (title: string, suite: ContractSuite): void => {
  describe(title, () => {
    it("has cases with names of their own", () =>
      expect(new Set(suite.map(({ name }) => name)).size).toBe(suite.length || -1));
    for (const { name, run } of suite) it(name, run);
  });
};
