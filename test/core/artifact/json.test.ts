import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { jsonPieces, jsonText, sameJson, sizeWithin, textEnd, utf8Size } from "../../../src/core/artifact/json.ts";

const bytes = (text: string): number => new TextEncoder().encode(text).length;
const anyText = fc.string({ unit: "binary", maxLength: 40 });
const json = fc.jsonValue({ stringUnit: "binary", maxDepth: 5 });
const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels)) as unknown;

describe("JSON values", () => {
  it("measures exactly what JSON.stringify writes, and stops at the limit", () => {
    fc.assert(
      fc.property(json, (value) => {
        const size = bytes(JSON.stringify(value));
        expect(sizeWithin(value, size, 100)).toBe(size);
        expect(sizeWithin(value, size - 1, 100)).toBeUndefined();
      }),
      { numRuns: 150 },
    );
    expect(sizeWithin([[1]], 100, 1)).toBeUndefined();
    expect(sizeWithin({ a: undefined, b: () => 1, c: 2 }, 100, 9)).toBe(7);
  });

  it("writes the same text as JSON.stringify, piece by piece", () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(Array.from(jsonPieces(value)).join("")).toBe(JSON.stringify(value));
      }),
      { numRuns: 150 },
    );
  });

  it("takes 100,000 levels without overflowing", () => {
    const deep = nested(100_000);
    expect(jsonText(deep)).toHaveLength(200_000);
    expect(sizeWithin(deep, 1e9, 1e9)).toBe(200_000);
    expect(sizeWithin(deep, 1e9, 64)).toBeUndefined();
    expect(sameJson(deep, nested(100_000))).toBe(true);
    expect(sameJson(deep, nested(99_999))).toBe(false);
  });

  it("tells equal values from different ones, whatever the order of keys", () => {
    expect(sameJson({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 })).toBe(true);
    for (const other of [{ a: 1 }, { a: 1, b: [1] }, { a: 1, b: { 0: 1, 1: { c: null } } }, null, 7])
      expect(sameJson({ a: 1, b: [1, { c: null }] }, other)).toBe(false);
    expect(sameJson({ toString: 1 }, { a: 1 })).toBe(false);
  });

  it("cuts texts within both limits and never inside a code point", () => {
    fc.assert(
      fc.property(anyText, fc.nat(12), fc.integer({ min: 1, max: 30 }), fc.boolean(), (text, units, limit, escaped) => {
        const pieces: Array<string> = [];
        for (let at = 0; at < text.length;) {
          const end = textEnd(text, at, units + 1, limit, escaped);
          const piece = text.slice(at, end);
          expect(end).toBeGreaterThan(at);
          const size = escaped ? bytes(JSON.stringify(piece)) - 2 : bytes(piece);
          const single = Array.from(piece).length === 1;
          expect(single || (size <= limit && piece.length <= units + 1)).toBe(true);
          pieces.push(piece);
          at = end;
        }
        expect(pieces.join("")).toBe(text);
        expect(pieces.flatMap((piece) => Array.from(piece))).toEqual(Array.from(text));
        expect(utf8Size(text)).toBe(bytes(text));
      }),
      { numRuns: 250 },
    );
  });
});
