import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { readArguments } from "../../src/cli/call-arguments.ts";

const schema = {
  type: "object",
  properties: {
    text: { type: "string" },
    maybe: { type: ["string", "null"] },
    count: { type: "integer" },
    flag: { type: "boolean" },
    list: { type: "array" },
    nested: { type: "object" },
    level: { enum: ["low", "high"] },
    size: { enum: [1, 2] },
    pinned: { const: true },
    either: { anyOf: [{ type: "number" }, { oneOf: [{ type: "boolean" }] }] },
    any: {},
  },
};
const read = (pairs: ReadonlyArray<string>, json?: string) => readArguments({ json, pairs }, schema);
const value = (pair: string) => {
  const result = read([pair]);
  return "arguments" in result ? Object.values(result["arguments"])[0] : result;
};

describe("arguments from key=value", () => {
  it.each([
    ["text=5", "5"],
    ["text=null", "null"],
    ["text=", ""],
    ["text=a=b", "a=b"],
    ["text={}", "{}"],
    ["maybe=null", "null"],
    ["count=5", 5],
    ["count=1e3", 1000],
    ["count=five", "five"],
    ["flag=true", true],
    ["flag=yes", "yes"],
    ['list=["a",1]', ["a", 1]],
    ["list=a", "a"],
    ['nested={"a":{"b":1}}', { a: { b: 1 } }],
    ["level=high", "high"],
    ["size=2", 2],
    ["pinned=true", true],
    ["either=2.5", 2.5],
    ["either=false", false],
    ["any=5", "5"],
    ["unknown=5", "5"],
  ])("%s is %j", (pair, expected) => {
    expect(value(pair)).toEqual(expected);
  });

  it("a string is passed on as it is, whatever it looks like", () => {
    fc.assert(fc.property(fc.string(), (text) => value(`text=${text}`) === text));
  });

  it("takes JSON, which pairs override", () => {
    expect(read(["count=2"], '{"count":1,"flag":true}')).toEqual({ arguments: { count: 2, flag: true } });
    expect(read([])).toEqual({ arguments: {} });
  });

  it("takes __proto__ as a name like any other", () => {
    const result = read(["__proto__=x"]);
    expect(Object.keys((result as Record<string, object>)["arguments"]!)).toEqual(["__proto__"]);
  });

  it("names every word that is wrong", () => {
    const result = read(["text", "=x", "count=1", "count=2"], "[1]");
    expect(result).toEqual({
      issues: [
        { pointer: "", message: expect.stringContaining("no JSON object") },
        { pointer: "", message: expect.stringContaining("'text' is not of the form key=value") },
        { pointer: "", message: expect.stringContaining("'=x' is not") },
        { pointer: "/count", message: expect.stringContaining("twice") },
      ],
    });
  });
});
