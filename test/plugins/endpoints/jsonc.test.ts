import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { JsoncError, parseJsonc } from "../../../src/plugins/endpoints/jsonc.ts";

const faultOf = (text: string): JsoncError => {
  try {
    parseJsonc(text);
  } catch (error) {
    if (error instanceof JsoncError) return error;
    throw error;
  }
  throw new Error("it parsed");
};

describe("JSON with comments", () => {
  it("reads every JSON text as JSON.parse does, whatever the layout", () => {
    fc.assert(
      fc.property(fc.json(), fc.integer({ min: 0, max: 4 }), (text, indent) => {
        const value: unknown = JSON.parse(text);
        expect(parseJsonc(JSON.stringify(value, null, indent))).toEqual(value);
      }),
    );
  });

  it("passes over comments, blanks and commas in front of a closing bracket, between any two tokens", () => {
    const gap = fc.constantFrom("", " ", "\r\n", '\t// line, with "quotes"\n', "/* block\n , } ] */", "/**/ //x\r");
    const tokens = ["{", '"a // b"', ":", "[", "1", ",", '"/* c */,]"', ",", "]", ",", '"d"', ":", "null", ",", "}"];
    fc.assert(
      fc.property(fc.array(gap, { minLength: tokens.length, maxLength: tokens.length }), (gaps) => {
        const text = tokens.map((token, i) => gaps[i] + token).join("");
        expect(parseJsonc(text)).toEqual({ "a // b": [1, "/* c */,]"], d: null });
      }),
    );
  });

  it("takes a byte order mark", () => {
    expect(parseJsonc('\uFEFF{"a":1}')).toEqual({ a: 1 });
  });

  it.each([
    ['{\n  "a": 1\n  "b": 2\n}', 3, 3],
    ['{ "a": 1,, }', 1, 10],
    ["{ 'a': 1 }", 1, 3],
    ["{ a: 1 }", 1, 3],
    ['{ "a" 1 }', 1, 7],
    ['{ "a": "x\ny" }', 1, 8],
    ['{ "a": "\\q" }', 1, 8],
    ['{ "a": [1, 2 }', 1, 14],
    ['{ "a": 1 } x', 1, 12],
    ["", 1, 1],
    ['{ "a": 1, // b', 1, 15],
    ['{ "a": /* b', 1, 8],
    ['{ "a": 01 }', 1, 9],
    ['{ "a": 1,\r\n "a": 2 }', 2, 2],
    ["[,]", 1, 2],
  ])("names the line and column of the fault in %j", (text, line, column) => {
    const fault = faultOf(text);
    expect([fault.line, fault.column]).toEqual([line, column]);
    expect(fault.message).toContain(`at line ${line}, column ${column}`);
  });

  it("shows nothing of the text in a fault, which may hold secrets", () => {
    expect(faultOf('{ "token": "s3cr3t-value" s3cr3t }').message).not.toContain("s3cr3t");
  });

  it("takes __proto__ as a key like any other", () => {
    const value = parseJsonc('{ "__proto__": { "polluted": true } }') as object;
    expect(Object.keys(value)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
  });

  it("refuses nesting that no configuration has, and reads long texts in one pass", () => {
    expect(faultOf("[".repeat(100_000)).message).toContain("nested");
    const long = { text: 'x\\"'.repeat(20_000), list: Array.from({ length: 20_000 }, (_, i) => i) };
    expect(parseJsonc(`${" ".repeat(500_000)}${JSON.stringify(long)}// ${"/*".repeat(100_000)}`)).toEqual(long);
  });
});
