import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { fitsTemplate } from "../../../src/plugins/serving/uri-template.ts";

describe("fitsTemplate", () => {
  it.each([
    ["file:///{path}", "file:///a/b", true],
    ["file:///{path}", "file:///", true],
    ["file:///{path}", "http:///a", false],
    ["file:///{a}/x/{b}.txt", "file:///1/x/2.txt", true],
    ["file:///{a}/x/{b}.txt", "file:///1/x.txt", false],
    ["a{b}a", "a", false],
    ["a{b}a", "aa", true],
    ["a.c", "abc", false],
    ["a.c", "a.c", true],
    ["a{b", "a{b", true],
    ["{a}", "line\nbreak", true],
  ])("%s and %s: %s", (template, uri, fits) => {
    expect(fitsTemplate(template, uri)).toBe(fits);
  });

  it("property: what is put together by the template fits it", () => {
    const literal = fc.string({ maxLength: 5 }).map((text) => text.replace(/[{}]/g, ""));
    fc.assert(
      fc.property(fc.array(fc.tuple(literal, fc.string({ maxLength: 5 }))), literal, (parts, end) => {
        const template = parts.map(([text]) => `${text}{x}`).join("") + end;
        expect(fitsTemplate(template, parts.map(([text, value]) => text + value).join("") + end)).toBe(true);
      }),
    );
  });

  it("templates made to hurt take no longer than others", () => {
    const startedAt = performance.now();
    const uri = `${"a".repeat(5000)}\n!`;
    for (const template of ["{a}".repeat(2000), "{a}a".repeat(2000), `${"{".repeat(100_000)}`, "{a}aa{b}".repeat(1000)])
      fitsTemplate(`${template}?`, uri);
    expect(performance.now() - startedAt).toBeLessThan(2000);
  });
});
