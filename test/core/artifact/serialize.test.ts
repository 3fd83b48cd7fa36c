import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { ArtifactRegistry } from "../../../src/core/artifact/artifact-registry.ts";
import { Artifact, ListArtifact } from "../../../src/core/artifact/artifact.ts";
import { artifactText, cutText, modelJson } from "../../../src/core/artifact/serialize.ts";
import { walk } from "../../../src/core/artifact/walk.ts";
import { makeToolResult, modelText, toRawResult } from "../../../src/core/results.ts";

const bytes = (text: string): number => new TextEncoder().encode(text).length;

class Paper extends Artifact {
  static override readonly typeAlias: string = "paper";
  readonly title: string;
  readonly pages: ReadonlyArray<string>;
  constructor(title: string, pages: ReadonlyArray<string>) {
    super();
    this.title = title;
    this.pages = pages;
  }
}

const kept = (...artifacts: ReadonlyArray<Artifact>): ArtifactRegistry => {
  const registry = new ArtifactRegistry();
  for (const artifact of artifacts) Effect.runSync(registry.keep(artifact));
  return registry;
};

describe("artifactText", () => {
  it("shows a typed artifact whole where it fits, else its beginning and how to read on", () => {
    const small = new Paper("short", ["one"]);
    expect(JSON.parse(artifactText(small))).toEqual(small.toWire());
    const large = new Paper(
      "long",
      Array.from({ length: 300 }, (_, i) => `page ${i} ${"word ".repeat(200)}`),
    );
    const text = artifactText(large);
    expect(bytes(text)).toBeLessThanOrEqual(8192);
    expect(JSON.parse(text)).toMatchObject({
      artifact_ref: large.ref,
      kind: "object",
      total: 3,
      rest: expect.stringContaining("get_artifact_field"),
      data: { title: "long", pages: expect.stringMatching(/^\[list of 300 items/) },
    });
    const list = new ListArtifact(Array.from({ length: 5000 }, (_, i) => new Paper(`title ${i}`, [])));
    const listed = artifactText(list);
    expect(bytes(listed)).toBeLessThanOrEqual(8192);
    expect(listed).toContain(list.ref);
  });

  it("shows the summaries and nested artifacts of a generic one", () => {
    const rows = Array.from({ length: 2000 }, (_, i) => ({ i, text: "some words" }));
    const artifact = walk({ note: "n".repeat(3000), rows, ok: true }, { mcpHandle: "h", toolName: "t" });
    const shown = JSON.parse(artifactText(artifact)) as Record<string, any>;
    expect(shown["data"]).toMatchObject({
      ok: true,
      note: { kind: "text", count: 3000, get_artifact_field: { ref: artifact.ref, pointer: "/note" } },
      rows: { artifact_ref: artifact.nested.get("/rows")!.ref, count: 2000 },
    });
    expect(shown["rest"]).toBeUndefined();
  });

  it("a key longer than the budget leaves the outline", () => {
    const artifact = walk({ ["k".repeat(20_000)]: 1 }, { mcpHandle: "h", toolName: "t" });
    const text = artifactText(artifact);
    expect(bytes(text)).toBeLessThanOrEqual(8192);
    expect(JSON.parse(text)).toMatchObject({ artifact_ref: artifact.ref, kind: "object", count: 1 });
  });

  it("a cut text has no half characters, also where the original has lone surrogates", () => {
    const text = cutText("\ud800😀".repeat(3000), "artifact:mcp~1", 700);
    expect(new TextDecoder("utf-8", { fatal: true }).decode(new TextEncoder().encode(text))).toBe(text);
    expect(bytes(text)).toBeLessThanOrEqual(700);
  });
});

describe("modelJson", () => {
  it("shows kept artifacts inside a host's value within a budget, all else whole", () => {
    const large = new Paper(
      "long",
      Array.from({ length: 50 }, () => "word ".repeat(100)),
    );
    const small = new Paper("short", []);
    const loose = new Paper("not kept", ["x".repeat(9000)]);
    const value = { found: [large, small], loose, note: "n".repeat(9000) };
    const text = modelJson(value, { artifacts: kept(large, small) });
    expect(JSON.parse(text)).toEqual({
      found: [expect.objectContaining({ artifact_ref: large.ref, kind: "object" }), small.toWire()],
      loose: loose.toWire(),
      note: value.note,
    });
    expect(JSON.parse(modelJson(value))).toEqual(JSON.parse(JSON.stringify(value)));
    expect(modelJson(undefined)).toBe("null");
  });

  it("is what a model reads where the host's normalizer answers a value of its own", () => {
    const { result: raw } = toRawResult({ content: [{ type: "text", text: "raw" }] });
    const paper = new Paper("long", ["x".repeat(9000)]);
    const view = { artifacts: kept(paper) };
    expect(modelText(makeToolResult(raw, { paper }), view).length).toBeLessThan(1000);
    expect(modelText(makeToolResult(raw, "my words"), view)).toBe("my words");
    expect(modelText(makeToolResult(raw, raw), view)).toBe("raw");
    expect(modelText(makeToolResult(raw, paper), view).length).toBeLessThan(8193);
    expect(JSON.parse(modelText(makeToolResult(raw, paper)))).toEqual(paper.toWire());
  });
});
