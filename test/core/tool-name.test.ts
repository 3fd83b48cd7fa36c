import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { exposedName, toolNameMax } from "../../src/core/tool-name.ts";

const legal = /^[a-zA-Z0-9_-]{1,64}$/;

/** Texts that provoke clashes: separators, suffix-like ends, characters that turn into underscores. */
const text = fc.oneof(
  fc.stringMatching(/^[ab_]{0,6}$/),
  fc.stringMatching(/^[ab_.]{0,4}_[0-9a-f]{10}$/),
  fc.string({ unit: "binary", maxLength: 12 }),
  fc.constantFrom("__proto__", "constructor", "toString", "", "1", "-", "x".repeat(64), "x".repeat(90), "\ud800"),
);

describe("exposed tool names", () => {
  it("a fitting name stays as it is", () => {
    expect(exposedName("github", "create_issue")).toBe("github__create_issue");
    expect(exposedName("a", "x".repeat(61))).toBe(`a__${"x".repeat(61)}`);
  });

  it("C-047: awkward names are legal, unique, the same in any order, and map back to the exact name", () => {
    const tools = [
      "a.b",
      "a_b",
      "a/b",
      "find me",
      "🎉",
      "",
      "y".repeat(64),
      "y".repeat(65),
      "y".repeat(128),
      `${"z".repeat(70)}one-------`,
      `${"z".repeat(70)}two-------`,
      "1st",
      "__proto__",
      "constructor",
    ];
    const expose = (list: ReadonlyArray<string>) => new Map(list.map((tool) => [exposedName("server", tool), tool]));
    const names = expose(tools);
    expect(names.size).toBe(tools.length);
    for (const name of names.keys()) {
      expect(name).toMatch(legal);
      expect(name.startsWith("server__")).toBe(true);
    }
    expect([...expose(tools.toReversed())].toReversed()).toEqual([...names]);
  });

  it("C-047: the suffix is a fixed function of handle and raw name", () => {
    expect(exposedName("server", "a.b")).toBe("server__a_b_6a55eb3b14");
  });

  it("handles and tools that join to one text get different names", () => {
    const pairs = [
      ["a__b", "c"],
      ["a", "b__c"],
      ["a_", "b"],
      ["a", "_b"],
      ["a.b", "c"],
      ["a_b", "c"],
    ] as const;
    expect(new Set(pairs.map(([handle, tool]) => exposedName(handle, tool))).size).toBe(pairs.length);
  });

  it("a tool named like another tool's suffixed name does not take it", () => {
    const taken = exposedName("a", "x.y");
    expect(exposedName("a", taken.slice("a__".length))).not.toBe(taken);
  });

  it("a leading digit in the handle gives a name that starts with an underscore", () => {
    expect(exposedName("1password", "get")).toMatch(/^_1password__get_[0-9a-f]{10}$/);
  });

  it("a long handle leaves room for the tool", () => {
    expect(exposedName("h".repeat(100), "create_issue")).toContain("__create_issue_");
  });

  it("property: legal, within the limit, and different pairs have different names", () => {
    const pair = fc.tuple(text, text);
    fc.assert(
      fc.property(pair, pair, fc.integer({ min: 24, max: toolNameMax }), ([h1, t1], [h2, t2], max) => {
        const [one, two] = [exposedName(h1, t1, max), exposedName(h2, t2, max)];
        expect(one).toMatch(legal);
        expect(one.length).toBeLessThanOrEqual(max);
        expect(one).toMatch(/^[a-zA-Z_]/);
        expect(one === two).toBe(h1 === h2 && t1 === t2);
      }),
      { numRuns: 2000 },
    );
  });
});
