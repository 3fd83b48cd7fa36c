import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { makeToolResult, McpToolResult, modelText, toRawResult } from "../../src/core/results.ts";

const read = (answer: unknown): { readonly result: McpToolResult; readonly diagnostics: ReadonlyArray<string> } => {
  const safe = toRawResult(answer);
  return { result: makeToolResult(safe.result, safe.result), diagnostics: safe.diagnostics };
};
const text = (...texts: ReadonlyArray<string>) => texts.map((text) => ({ type: "text", text }));

describe("toRawResult", () => {
  it("C-064: answers without usable content give the model the structured content as JSON", () => {
    const structuredContent = { rows: [1, 2], name: "x" };
    for (const content of [[], undefined, null, [""], [{ type: "text", text: "  " }]]) {
      expect(modelText(read({ content, structuredContent }).result)).toBe('{"rows":[1,2],"name":"x"}');
    }
    expect(modelText(read({ content: [], structuredContent: [1, 2] }).result)).toBe("[1,2]");
    expect(modelText(read({ content: [], structuredContent: 0 }).result)).toBe("0");
    expect(modelText(read({ content: [], structuredContent: false }).result)).toBe("false");
  });

  it("C-064: text and richer structured content are both shown, equal ones once", () => {
    const structuredContent = { temperature: 22.5, wind: { speed: 3 } };
    const rich = read({ content: text("It is warm."), structuredContent });
    expect(modelText(rich.result)).toBe('It is warm.\n{"temperature":22.5,"wind":{"speed":3}}');
    const pretty = JSON.stringify({ wind: { speed: 3 }, temperature: 22.5 }, null, 2);
    expect(modelText(read({ content: text(pretty), structuredContent }).result)).toBe(pretty);
    expect(modelText(read({ content: text("plain"), structuredContent: { result: "plain" } }).result)).toBe("plain");
    expect(modelText(read({ content: text("22"), structuredContent: { result: "23" } }).result)).toBe(
      '22\n{"result":"23"}',
    );
  });

  it("C-064: the raw result stays reachable and large parts are kept whole", () => {
    const big = "x".repeat(300_000);
    const { result } = read({ content: text(big), structuredContent: { other: big }, _meta: { a: 1 } });
    expect(result.content).toEqual(text(big));
    expect(result.structuredContent).toEqual({ other: big });
    expect(result.raw).toEqual({
      content: text(big),
      structuredContent: { other: big },
      isError: false,
      _meta: { a: 1 },
    });
    expect(result.meta).toEqual({ a: 1 });
  });

  it("C-066: an error result always has a text", () => {
    expect(modelText(read({ isError: true, content: text("bad input") }).result)).toBe("bad input");
    expect(modelText(read({ isError: true, content: text("bad", "worse") }).result)).toBe("bad\nworse");
    expect(modelText(read({ isError: true, content: [] }).result)).toMatch(/reported an error/);
    expect(read({ isError: true, content: [] }).result.textContent).toMatch(/reported an error/);
    expect(read({ isError: true, content: text("") }).result.allTextContent).toMatch(/reported an error/);
    const image = { type: "image", mimeType: "image/png", data: "AAAA" };
    expect(modelText(read({ isError: true, content: [image] }).result)).toBe("[image image/png 3 bytes]");
    expect(read({ isError: true, content: [image] }).result.textContent).toBe("[image image/png 3 bytes]");
    expect(modelText(read({ isError: true, structuredContent: { code: 7 } }).result)).toBe('{"code":7}');
  });

  it("C-066: a malformed flag follows the stated rule and says so", () => {
    for (const [flag, isError] of [
      ["true", true],
      [" TRUE ", true],
      [1, true],
      ["false", false],
      ["yes", false],
      [0, false],
      [null, false],
      [{}, false],
    ] as const) {
      const { result, diagnostics } = read({ isError: flag, content: text("x") });
      expect(result.isError, JSON.stringify(flag)).toBe(isError);
      expect(diagnostics.join()).toMatch(/isError is/);
    }
    expect(read({ isError: false, content: text("x") }).diagnostics).toEqual([]);
  });

  it("C-066: nothing is guessed from the wording", () => {
    expect(read({ content: text("Error: no such file") }).result.isError).toBe(false);
    expect(read({ content: text('{"isError":true}') }).result.isError).toBe(false);
  });

  it("mends blocks of the wrong shape and names the first one", () => {
    const { result, diagnostics } = read({
      content: [
        "plain",
        null,
        7,
        { text: "no type" },
        { type: "text", text: 42 },
        { type: "text" },
        { type: "hologram" },
      ],
    });
    expect(result.content.map((block) => block.type)).toEqual([
      "text",
      "unknown",
      "unknown",
      "unknown",
      "text",
      "text",
      "hologram",
    ]);
    expect(diagnostics.join()).toMatch(/content block 0/);
    expect(result.allTextContent).toBe("plain\n42\n");
    expect(modelText(result)).toContain("[content of unknown type 'hologram']");
  });

  it("reads the oldest protocol's toolResult", () => {
    const { result, diagnostics } = read({ toolResult: { a: 1 } });
    expect(result.structuredContent).toEqual({ a: 1 });
    expect(diagnostics).toEqual([]);
  });

  it("names every kind of content in the model's text", () => {
    const content = [
      { type: "text", text: "hello" },
      { type: "image", mimeType: "image/png", data: "AAAA" },
      { type: "audio", mimeType: "audio/wav", data: "AAA=" },
      { type: "resource", resource: { uri: "file:///a.txt", text: "inside" } },
      { type: "resource", resource: { uri: "file:///a.pdf", mimeType: "application/pdf", blob: "AA==" } },
      { type: "resource", resource: null },
      { type: "resource_link", uri: "https://example.org/\u0000x", name: "link" },
      { type: "image" },
    ];
    expect(modelText(read({ content }).result).split("\n")).toEqual([
      "hello",
      "[image image/png 3 bytes]",
      "[audio audio/wav 2 bytes]",
      "inside",
      "[resource file:///a.pdf application/pdf 1 bytes]",
      "[resource without content]",
      "[resource_link link https://example.org/x]",
      "[image has no data]",
    ]);
  });

  it("never throws, whatever the answer is", () => {
    const hostile = Object.defineProperty({}, "content", {
      enumerable: true,
      get: () => {
        throw new Error("no");
      },
    });
    expect(read(hostile).diagnostics.join()).toMatch(/cannot be read: no/);
    const cycle: Record<string, unknown> = { content: [] };
    cycle["structuredContent"] = cycle;
    expect(modelText(read(cycle).result)).not.toBe("");
    fc.assert(
      fc.property(
        fc.oneof(
          fc.anything(),
          fc.record(
            {
              content: fc.anything({ values: [fc.string(), fc.constant({ type: "text" }), fc.object()] }),
              structuredContent: fc.anything(),
              isError: fc.anything(),
              _meta: fc.anything(),
            },
            { requiredKeys: [] },
          ),
        ),
        (answer) => {
          const { result } = read(answer);
          expect(modelText(result).trim()).not.toBe("");
          expect(typeof result.textContent).toBe("string");
          for (const block of result.content) expect(typeof block.type).toBe("string");
        },
      ),
      { numRuns: 250 },
    );
  });

  it("answers of 100,000 levels are read and shown", () => {
    const deep = JSON.parse("[".repeat(100_000) + "]".repeat(100_000)) as unknown;
    const { result } = read({ content: [], structuredContent: deep });
    expect(modelText(result)).toHaveLength(200_000);
    const block = JSON.stringify({ a: 1 });
    expect(modelText(read({ content: text(block), structuredContent: deep }).result)).toHaveLength(200_008);
  });
});

describe("McpToolResult", () => {
  it("hides content from its JSON form and from its keys", () => {
    const result = makeToolResult(toRawResult({ content: text("secret"), structuredContent: { a: 1 } }).result, "seen");
    expect(JSON.parse(JSON.stringify(result))).toEqual({
      isError: false,
      structuredContent: { a: 1 },
      resultArtifact: "seen",
    });
    expect(Object.keys(result)).not.toContain("content");
    expect(result).toBeInstanceOf(McpToolResult);
  });

  it("gives the first text, all texts, or what else there is", () => {
    const two = read({ content: text("one", "two") }).result;
    expect(two.textContent).toBe("one");
    expect(two.allTextContent).toBe("one\ntwo");
    expect(read({ content: [], structuredContent: { a: 1 } }).result.textContent).toBe('{"a":1}');
    expect(read({ content: [] }).result.textContent).toBe("");
    expect(modelText(read({ content: [] }).result)).toMatch(/no content/);
  });
});
