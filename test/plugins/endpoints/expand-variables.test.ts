import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { expandVariables } from "../../../src/plugins/endpoints/expand-variables.ts";

/** Holds blanks, quotes, a dollar, a line break and a variable: none of them may be looked at. */
const nasty = `it's "quoted" $HOME \r\n \${B} $\${B} \\`;
const variables: Readonly<Record<string, string>> = { A: nasty, B: "b", EMPTY: "", "ProgramFiles(x86)": "C:/x" };
const expand = (text: string) => expandVariables(text, (name) => variables[name]);

describe("variables in a configuration text", () => {
  it.each([
    ["${A}", nasty],
    ["${env:A}", nasty],
    ["-${B}${B}-", "-bb-"],
    ["${B:-other}", "b"],
    ["${MISSING:-some default}", "some default"],
    ["${env:MISSING:-d}", "d"],
    ["${EMPTY:-d}", "d"],
    ["${EMPTY}", ""],
    ["${MISSING:-}", ""],
    ["${MISSING:-$B:-x}", "$B:-x"],
    ["${env:ProgramFiles(x86)}", "C:/x"],
    ["$B $$ $ } {B} %B% $(B) `B`", "$B $$ $ } {B} %B% $(B) `B`"],
    ["$${B} and ${B}", "${B} and b"],
    ["$${", "${"],
    ["pa$$word$", "pa$$word$"],
    ["", ""],
  ])("C-085: %j becomes %j, in one pass", (text, expected) => {
    expect(expand(text)).toBe(expected);
  });

  it.each([
    ["${MISSING}", "the variable 'MISSING', which is not set"],
    ["${env:MISSING}", "the variable 'MISSING', which is not set"],
    ["${B", "not closed"],
    ["x ${", "not closed"],
    ["${A:-${B}}", "inside another"],
    ["${${B}}", "inside another"],
    ["${}", "without a variable name"],
    ["${1X}", "without a variable name"],
    ["${B-x}", "without a variable name"],
    ["${input:token}", "${input:…}, which is unknown"],
    ["${workspaceFolder:a}", "${workspaceFolder:…}, which is unknown"],
  ])("C-085: %j is a fault that says why", (text, expected) => {
    const faults = expand(text);
    expect(faults).toHaveLength(1);
    expect((faults as ReadonlyArray<{ reason: string }>)[0]!.reason).toContain(expected);
  });

  it("C-085: names every missing variable of a text, and no value", () => {
    const faults = expand("${B} ${X} ${A} ${Y}") as ReadonlyArray<{ reason: string; fix: string }>;
    expect(faults.map(({ reason }) => reason.match(/'(.*?)'/)?.[1])).toEqual(["X", "Y"]);
    expect(JSON.stringify(faults)).not.toContain("quoted");
  });

  it("C-085: a value is never looked at again, whatever it holds", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (value, other) => {
        const plain = other.replaceAll("${", "");
        expect(expandVariables(`${plain} \${V} ${plain}`, () => value)).toBe(`${plain} ${value} ${plain}`);
      }),
    );
  });

  it("leaves every text without ${ as it is", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("$", "{", "}", "A", ":", "-", " ") }), (text) => {
        fc.pre(!text.includes("${"));
        expect(expand(text)).toBe(text);
      }),
    );
  });
});
