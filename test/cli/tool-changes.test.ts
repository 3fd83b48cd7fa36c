import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { changeLines, markOf, visible } from "../../src/cli/tool-changes.ts";
import { definitionOf, fingerprint, type PinnedDefinition } from "../../src/core/pinning/fingerprint.ts";
import type { QuarantinedTool } from "../../src/core/pinning/quarantine.ts";

const held = (approved: PinnedDefinition | undefined, offered: PinnedDefinition): QuarantinedTool => ({
  tool: "t",
  change: approved ? "changed" : "new",
  fields: [],
  digest: fingerprint(offered),
  approved,
  offered,
});

const show = (tool: QuarantinedTool) =>
  changeLines(tool).map(({ kind, text }) => `${{ field: "=", same: " ", removed: "-", added: "+" }[kind]}${text}`);

describe("changes of a tool", () => {
  it("are the lines that differ, with two around them; a new order of keys is no change", () => {
    const properties = { path: { type: "string" }, mode: { type: "string" } };
    const before = definitionOf({
      name: "t",
      description: "a\nb\nc\nd\ne",
      inputSchema: { type: "object", properties },
    });
    const after = definitionOf({
      name: "t",
      description: "a\nb\nc\nX\nY\ne",
      inputSchema: { properties: { mode: { type: "number" }, path: { type: "string" } }, type: "object" },
    });
    expect(show(held(before, after))).toEqual([
      "=description",
      " b",
      " c",
      "-d",
      "+X",
      "+Y",
      " e",
      "=inputSchema",
      '   "properties": {',
      '     "mode": {',
      '-      "type": "string"',
      '+      "type": "number"',
      "     },",
      '     "path": {',
    ]);
  });

  it("of a new tool are all of it; of a part that is gone, what was there", () => {
    expect(show(held(undefined, { name: "t", description: "d" }))).toEqual(["=name", "+t", "=description", "+d"]);
    expect(show(held({ name: "t", title: "x" }, { name: "t" }))).toEqual(["=title", "-x"]);
  });

  it("show what is there: hidden characters as their code points, nothing left out", () => {
    expect(visible("a\u200bb\u202ec\u{e0041}d\ufe0fe\u00a0f\u001b[2Jg\u2028h\u3164")).toBe(
      "a\\u{200b}b\\u{202e}c\\u{e0041}d\\u{fe0f}e\\u{a0}f\\u{1b}[2Jg\\u{2028}h\\u{3164}",
    );
    expect(visible("plain text, ä漢 and 😀")).toBe("plain text, ä漢 and 😀");
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: "binary" }), (a, b) => {
        if (a === b) return;
        const lines = changeLines(held({ description: a }, { description: b }));
        const of = (kind: string) => lines.filter((line) => line.kind === kind);
        expect(of("removed").length + of("added").length).toBeGreaterThan(0);
        for (const { text } of lines) expect(text).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      }),
    );
  });

  it("have a mark that stands for them alone, in any order", () => {
    const one = held(undefined, { name: "a" });
    const two = { ...held(undefined, { name: "b" }), tool: "u" };
    expect(markOf([one, two])).toBe(markOf([two, one]));
    const others = [[one], [two], [one, held(undefined, { name: "c" })], []];
    expect(new Set([[one, two], ...others].map(markOf)).size).toBe(5);
  });
});
