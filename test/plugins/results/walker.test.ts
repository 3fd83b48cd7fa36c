import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Base64 from "effect/encoding/Base64";
import * as fc from "fast-check";
import { type ArtifactFieldPage, getArtifactField } from "../../../src/core/artifact/artifact-field.ts";
import { ArtifactRegistry } from "../../../src/core/artifact/artifact-registry.ts";
import type { McpArtifact } from "../../../src/core/artifact/mcp-artifact.ts";
import { isMedia, type Media, mediaBytes } from "../../../src/core/artifact/media.ts";
import { makeToolResult, McpToolResult, modelText, toRawResult } from "../../../src/core/results.ts";
import { ResultWalker } from "../../../src/plugins/results/walker.ts";

const bytes = (text: string): number => new TextEncoder().encode(text).length;
const text = (...texts: ReadonlyArray<string>) => texts.map((text) => ({ type: "text", text }));

const letters = (size: number): string => "lorem ipsum ".repeat(size / 12 + 1).slice(0, size);

interface Walked {
  readonly artifact: McpArtifact;
  readonly result: McpToolResult;
  readonly registry: ArtifactRegistry;
  readonly problems: ReadonlyArray<string>;
  /** What the model reads, after the artifact was kept. */
  readonly shown: string;
}

const walked = (answer: unknown, walker: ResultWalker = new ResultWalker()): Walked => {
  const problems: Array<string> = [];
  const { result: raw } = toRawResult(answer);
  const source = {
    handle: "web",
    tool: "fetch",
    endpointId: "e",
    diagnose: (problem: string) => problems.push(problem),
  };
  const artifact = walker.normalize(raw, source);
  const registry = new ArtifactRegistry();
  Effect.runSync(registry.keep(artifact, "e"));
  const result = makeToolResult(raw, artifact);
  return { artifact, result, registry, problems, shown: modelText(result, { artifacts: registry }) };
};

/** A text part read back through the tool. */
const readText = ({ registry, artifact }: Walked, pointer: string): string => {
  let whole = "";
  for (let offset: number | undefined = 0; offset !== undefined;) {
    const page: ArtifactFieldPage = Effect.runSync(getArtifactField(registry, { ref: artifact.ref, pointer, offset }));
    whole += page.value as string;
    offset = page.next;
  }
  return whole;
};

describe("ResultWalker", () => {
  it("says a short result in its own words, without ref or wrapping", () => {
    expect(walked({ content: text("hello") }).shown).toBe("hello");
    expect(walked({ content: text('{"a": [1, 2]}') }).shown).toBe('{"a": [1, 2]}');
    expect(walked({ content: text("a", "b") }).shown).toBe("a\nb");
    expect(walked({ content: [], structuredContent: { a: 1 } }).shown).toBe('{"a":1}');
    expect(walked({ content: [], isError: true }).shown).toMatch(/reported an error/);
    expect(walked({ content: [] }).shown).toMatch(/no content/);
  });

  it("parses text that holds a JSON object or list, and leaves other text alone", () => {
    expect(walked({ content: text(' {"a":[1,{"b":null}]}\n') }).artifact.data).toEqual({ a: [1, { b: null }] });
    for (const plain of ["42", '"quoted"', "null", "{not json}", "[1,2", "", "plain"])
      expect(walked({ content: text(plain) }).artifact.data).toBe(plain.trim() === "" ? "" : plain);
  });

  it("does not parse numbers it would change", () => {
    for (const exact of [
      '{"id":12345678901234567890}',
      "[1e400]",
      '{"a":[0.1234567890123456789]}',
      "[-9007199254740993]",
    ])
      expect(walked({ content: text(exact) }).artifact.data).toBe(exact);
    const floats = '{"a":0.30000000000000004,"b":"12345678901234567890","c":1e5}';
    expect(walked({ content: text(floats) }).artifact.data).toEqual(JSON.parse(floats));
  });

  it("C-064: structured content is the data where the text says no more", () => {
    const structuredContent = { rows: [1, 2] };
    for (const content of [[], text(""), text('{ "rows": [1, 2] }')])
      expect(walked({ content, structuredContent }).artifact.data).toEqual(structuredContent);
    expect(walked({ content: text("two rows"), structuredContent }).artifact.data).toEqual({
      content: ["two rows"],
      structuredContent,
    });
    const items = { result: ["one", { two: 2 }] };
    const each = walked({ content: text("one", '{"two":2}'), structuredContent: items });
    expect(each.artifact.data).toEqual(items);
    expect(each.shown).toBe('one\n{"two":2}');
  });

  it("is pure: the same result gives the same artifact and ref", () => {
    const block = fc.oneof(
      fc.record({ type: fc.constant("text"), text: fc.oneof(fc.string(), fc.json()) }),
      fc.record({ type: fc.constantFrom("image", "audio", "odd"), data: fc.base64String(), mimeType: fc.string() }),
    );
    const answers = fc.record(
      { content: fc.array(block, { maxLength: 3 }), structuredContent: fc.jsonValue(), isError: fc.boolean() },
      { requiredKeys: ["content"] },
    );
    fc.assert(
      fc.property(answers, (answer) => {
        const before = JSON.stringify(answer);
        const [one, two] = [walked(answer), walked(JSON.parse(before))];
        expect(two.artifact.ref).toBe(one.artifact.ref);
        expect(JSON.stringify(two.artifact)).toBe(JSON.stringify(one.artifact));
        expect(two.shown).toBe(one.shown);
        expect(JSON.stringify(answer)).toBe(before);
        expect(one.shown.trim()).not.toBe("");
      }),
      { numRuns: 150 },
    );
  });

  it("C-068: binary content becomes a short stub; its bytes, type, size and hash are in the artifact", () => {
    const wav = new Uint8Array(2 * 1024 * 1024).map((_, i) => (i * 7) % 256);
    wav.set(Uint8Array.from("RIFF0000WAVE", (char) => char.charCodeAt(0)));
    const pdf = Base64.encode("%PDF-1.7 body");
    const it = walked({
      content: [
        { type: "audio", mimeType: "audio/x-wav", data: Base64.encode(wav) },
        {
          type: "resource",
          resource: { uri: "file:///../../e\u0000vil\u202e.pdf", mimeType: "application/pdf", blob: pdf },
        },
        { type: "resource", resource: { uri: "file:///none", blob: pdf } },
        { type: "resource", resource: { uri: "file:///n.txt", text: "inside" } },
      ],
    });
    expect(bytes(it.shown)).toBeLessThan(1000);
    const [audio, document, untyped] = (it.artifact.data as { content: ReadonlyArray<Media> }).content;
    expect(it.shown).toContain(`[audio audio/x-wav 2097152 bytes, sha256 ${audio!.sha256}`);
    expect(it.shown).toContain(`name e_vil_.pdf]`);
    expect(it.shown).toContain("inside");
    expect(it.shown).toContain(it.artifact.ref);
    expect(it.shown).not.toContain(pdf);
    expect(document).toMatchObject({ mimeType: "application/pdf", size: 13, name: "e_vil_.pdf" });
    expect(untyped).toMatchObject({ mimeType: "application/pdf" });
    expect(JSON.stringify(it.artifact).length).toBeLessThan(3000);
    const read = { ...audio!, data: readText(it, "/content/0/data") };
    expect(mediaBytes(read).every((byte, i) => byte === wav[i])).toBe(true);
    expect(mediaBytes(read)).toHaveLength(wav.length);
    expect(it.problems).toEqual([]);
  });

  it("C-068: broken and lying binary content is named, and nothing of it is lost", () => {
    const png = Base64.encode(Uint8Array.from("\x89PNG\r\n\x1a\n0", (char) => char.charCodeAt(0)));
    const urlSafe = `${"ab_-".repeat(500)}`;
    const it = walked({
      content: [
        { type: "image", mimeType: "image/gif", data: png },
        { type: "image", mimeType: "image/png", data: urlSafe },
        { type: "hologram", size: 3 },
      ],
    });
    expect(it.problems.join("\n")).toMatch(/declared as "image\/gif" and is image\/png\n.*is no Base64/);
    expect(it.shown).toMatch(/\[image image\/png is no Base64: unexpected "_" at 2\]/);
    expect(it.shown).toContain("[content of unknown type 'hologram']");
    expect(readText(it, "/content/1/data")).toBe(urlSafe);
    expect(isMedia((it.artifact.data as { content: ReadonlyArray<unknown> }).content[1])).toBe(false);
    const large = walked({ content: [{ type: "image", data: png }] }, new ResultWalker({ mediaMax: 4 }));
    expect(large.problems[0]).toMatch(/9 bytes, more than 4, and was not decoded/);
  });

  it("C-070: a result is stored whole before its text is cut, and the text says size and ref", () => {
    for (const size of [8192, 9_000, 11_000, 29_000, 31_000, 5 * 1024 * 1024]) {
      const whole = letters(size);
      const it = walked({ content: text(whole) });
      expect(bytes(it.shown)).toBeLessThanOrEqual(8192);
      if (size <= 8192) expect(it.shown).toBe(whole);
      else {
        expect(it.shown).toContain(`of ${size} bytes`);
        expect(it.shown).toContain(it.artifact.ref);
        expect(whole.startsWith(it.shown.split("\n[cut:")[0]!)).toBe(true);
        expect(it.shown.length).toBeGreaterThan(8000);
        expect(readText(it, "")).toBe(whole);
      }
      expect(it.result.content).toEqual(text(whole));
    }
  });

  it("C-070: the cut never falls inside a character", () => {
    for (const pad of ["", "a", "ab", "abc"]) {
      const whole = pad + "😀".repeat(5000);
      const it = walked({ content: text(whole) });
      expect(new TextDecoder("utf-8", { fatal: true }).decode(new TextEncoder().encode(it.shown))).toBe(it.shown);
      expect(it.shown).not.toContain("\uFFFD");
      expect(it.shown).toContain(`of ${bytes(whole)} bytes`);
      expect(readText(it, "")).toBe(whole);
    }
  });

  it("C-070: the limit holds for the sum of blocks and for structured content", () => {
    const three = walked({ content: text("a".repeat(4000), "b".repeat(4000), "c".repeat(4000)) });
    expect(bytes(three.shown)).toBeLessThanOrEqual(8192);
    expect(three.shown).toContain("of 12002 bytes");
    expect(readText(three, "/content/2")).toBe("c".repeat(4000));
    const rows = Array.from({ length: 60_000 }, (_, i) => ({
      id: i,
      title: `title of row ${i} with some words in it`,
    }));
    const structuredContent = { rows, total: rows.length };
    const json = JSON.stringify(structuredContent);
    for (const [content, size] of [
      [[], bytes(json)],
      [text("the rows"), bytes(`the rows\n${json}`)],
      [text(json), bytes(json)],
    ] as const) {
      const it = walked({ content, structuredContent });
      expect(bytes(it.shown)).toBeLessThanOrEqual(8192);
      expect(it.shown).toContain(it.artifact.ref);
      expect(it.shown).toContain(String(size));
    }
    const asText = walked({ content: text(json) });
    expect(JSON.parse(asText.shown)).toMatchObject({ size: bytes(json), data: { total: 60_000 } });
    const last = getArtifactField(asText.registry, { ref: asText.artifact.ref, pointer: "/rows/59999" });
    expect(Effect.runSync(last).value).toEqual(rows[59_999]);
  });

  it("C-070: any result fits any sensible budget, and whole JSON in it is valid", () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ stringUnit: "binary", maxDepth: 5 }),
        fc.integer({ min: 600, max: 3000 }),
        fc.integer({ min: 1, max: 400 }),
        (value, budget, times) => {
          const structuredContent = {
            many: Array.from({ length: times }, () => value),
            [`${"k".repeat(times * 9)}`]: value,
          };
          const { result: raw } = toRawResult({ content: [], structuredContent });
          const artifact = new ResultWalker().normalize(raw, { handle: "h", tool: "t", endpointId: "e" });
          const registry = new ArtifactRegistry();
          Effect.runSync(registry.keep(artifact));
          const shown = modelText(makeToolResult(raw, artifact), { artifacts: registry, budget });
          expect(bytes(shown)).toBeLessThanOrEqual(budget);
          expect(() => JSON.parse(shown)).not.toThrow();
        },
      ),
      { numRuns: 150 },
    );
  });

  it("nothing is cut while no registry keeps the artifact", () => {
    const whole = "x".repeat(50_000);
    const { result } = walked({ content: text(whole) });
    expect(modelText(result)).toBe(whole);
    expect(modelText(result, { artifacts: new ArtifactRegistry() })).toBe(whole);
  });

  it("reads 100,000 levels and hostile keys", () => {
    const deep = "[".repeat(100_000) + "]".repeat(100_000);
    const it = walked({ content: text(deep) });
    expect(bytes(it.shown)).toBeLessThanOrEqual(8192);
    expect(it.shown).toContain(it.artifact.ref);
    const odd = walked({ content: text(`{"__proto__":{"polluted":true},"pad":"${"x".repeat(9000)}"}`) });
    expect(odd.shown).toContain('"__proto__"');
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
  });
});
