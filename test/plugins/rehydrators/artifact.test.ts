import { describe, expect, it } from "@effect/vitest";
import * as Base64 from "effect/encoding/Base64";
import { artifactType, TypeAliasRegistry } from "../../../src/core/artifact/alias.ts";
import { Artifact, ListArtifact, wireText } from "../../../src/core/artifact/artifact.ts";
import { McpArtifact } from "../../../src/core/artifact/mcp-artifact.ts";
import { type Media, mediaBytes } from "../../../src/core/artifact/media.ts";
import type { ResultSource } from "../../../src/core/contracts.ts";
import { toRawResult } from "../../../src/core/results.ts";
import { artifactRehydrator } from "../../../src/plugins/rehydrators/artifact.ts";
import { ResultWalker } from "../../../src/plugins/results/walker.ts";

class Cite extends Artifact {
  static override readonly typeAlias: string = "link:cite";
  readonly url: string;
  constructor(url: string) {
    super();
    this.url = url;
  }
  static fromWire(payload: Readonly<Record<string, unknown>>): Cite | undefined {
    return typeof payload["url"] === "string" ? new Cite(payload["url"]) : undefined;
  }
}

class Pubmed extends Artifact {
  static override readonly typeAlias: string = "link:cite:pubmed";
  readonly url: string;
  readonly pmid: number;
  constructor(url: string, pmid: number) {
    super();
    this.url = url;
    this.pmid = pmid;
  }
  static fromWire(payload: Readonly<Record<string, unknown>>): Pubmed {
    if (typeof payload["pmid"] !== "number") throw new TypeError("pmid is no number");
    return new Pubmed(String(payload["url"]), payload["pmid"]);
  }
}

const exact = new TypeAliasRegistry([artifactType(Cite), artifactType(Pubmed)]);
const ancestor = new TypeAliasRegistry([artifactType(Cite)]);
const nothing = new TypeAliasRegistry();

const problems: Array<string> = [];
const rehydrate = (answer: unknown, types?: TypeAliasRegistry): unknown => {
  problems.length = 0;
  const source: ResultSource = {
    handle: "peer",
    tool: "search",
    endpointId: "e",
    types,
    diagnose: (problem) => problems.push(problem),
  };
  return artifactRehydrator.rehydrate(toRawResult(answer).result, source);
};

/** The three ways a payload may come over the wire. */
const answers = (payload: unknown): ReadonlyArray<unknown> => [
  { content: [{ type: "text", text: JSON.stringify(payload) }], structuredContent: payload },
  { content: [], structuredContent: payload },
  { content: [{ type: "text", text: JSON.stringify(payload, null, 2) }] },
];

const one = new Pubmed("https://x", 42);

describe("artifact rehydrator", () => {
  it("gives the class, the nearest ancestor, or a generic artifact; the ref stays as minted", () => {
    for (const answer of answers(one.toWire())) {
      for (const [types, expected] of [
        [exact, Pubmed],
        [ancestor, Cite],
        [nothing, McpArtifact],
        [undefined, McpArtifact],
      ] as const) {
        const artifact = rehydrate(answer, types);
        expect(artifact).toBeInstanceOf(expected);
        expect((artifact as Artifact).ref).toBe(one.ref);
        expect(problems).toEqual([]);
      }
    }
    expect(rehydrate(answers(one.toWire())[0], exact)).toEqual(one);
    expect((rehydrate(answers(one.toWire())[0]) as Artifact).toWire()).toEqual(one.toWire());
  });

  it("a payload that claims an alias and does not fit falls down the ladder, with a diagnostic", () => {
    const half = { artifact_ref: one.ref, url: "https://x" };
    expect(rehydrate({ content: [], structuredContent: half }, exact)).toBeInstanceOf(Cite);
    expect(problems).toHaveLength(1);
    expect(problems[0]).toMatch(/'link:cite:pubmed' refused the payload: pmid is no number/);
    const none = rehydrate({ content: [], structuredContent: { artifact_ref: one.ref } }, exact) as McpArtifact;
    expect(none).toBeInstanceOf(McpArtifact);
    expect(none).toMatchObject({ ref: one.ref, mcpHandle: "peer", toolName: "search" });
    expect(problems).toHaveLength(2);
  });

  it("a list of artifacts at the root, wrapped or bare, is a ListArtifact", () => {
    const list = new ListArtifact([one, new Cite("https://y")]);
    for (const answer of answers(list.toWire())) {
      for (const [types, first] of [
        [exact, Pubmed],
        [ancestor, Cite],
        [nothing, McpArtifact],
      ] as const) {
        const found = rehydrate(answer, types) as ListArtifact;
        expect(found).toBeInstanceOf(ListArtifact);
        expect(found.ref).toBe(list.ref);
        expect(found.items[0]).toBeInstanceOf(first);
        expect(found.items.map((item) => item.ref)).toEqual(list.items.map((item) => item.ref));
      }
    }
    for (const answer of answers(list.items.map((item) => item.toWire()))) {
      const found = rehydrate(answer, exact) as ListArtifact;
      expect(found).toBeInstanceOf(ListArtifact);
      expect(found.items).toEqual(list.items);
    }
  });

  it("a plain object that merely contains artifacts takes the generic path whole", () => {
    const cite = one.toWire();
    for (const payload of [
      { best: cite },
      { items: [cite] },
      [cite, { plain: 1 }],
      [],
      {},
      { artifact_ref: "no ref" },
      7,
    ])
      for (const answer of answers(payload)) expect(rehydrate(answer, exact)).toBeUndefined();
    const mixed = rehydrate(
      { content: [], structuredContent: { artifact_ref: "artifact:list~1", items: [cite, 1] } },
      exact,
    );
    expect(mixed).toBeInstanceOf(McpArtifact);
    expect((mixed as Artifact).ref).toBe("artifact:list~1");
  });

  it("error results, and text that only mentions a ref, are no artifacts", () => {
    expect(rehydrate({ isError: true, content: [], structuredContent: one.toWire() }, exact)).toBeUndefined();
    const prose = `see "artifact_ref": ${one.ref}`;
    expect(rehydrate({ content: [{ type: "text", text: prose }] }, exact)).toBeUndefined();
    expect(
      rehydrate(
        {
          content: [
            { type: "text", text: "a" },
            { type: "text", text: JSON.stringify(one) },
          ],
        },
        exact,
      ),
    ).toBeUndefined();
  });

  it("C-068: a generic artifact crosses whole, binary content byte by byte, without its summaries", () => {
    const bytes = new Uint8Array(5000).map((_, i) => (i * 31) % 256);
    const data = Base64.encode(bytes);
    const { result } = toRawResult({ content: [{ type: "image", mimeType: "image/png", data }] });
    const sent = new ResultWalker().normalize(result, { handle: "cam", tool: "shot", endpointId: "e" });
    expect(sent.summaries.size).toBe(1);
    const wire = JSON.parse(wireText(sent)) as unknown;
    expect(JSON.stringify(wire)).not.toContain("get_artifact_field");
    const got = rehydrate({ content: [], structuredContent: wire }) as McpArtifact;
    expect(got).toBeInstanceOf(McpArtifact);
    expect(got).toMatchObject({ ref: sent.ref, mcpHandle: "cam", toolName: "shot" });
    expect(mediaBytes(got.data as Media)).toEqual(bytes);
    expect(JSON.stringify(got)).toBe(JSON.stringify(sent));
  });

  it("a payload of 100,000 levels does not overflow", () => {
    const deep = JSON.parse(
      `{"artifact_ref":"${one.ref}","x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`,
    ) as unknown;
    const artifact = rehydrate({ content: [], structuredContent: deep }, exact) as McpArtifact;
    expect(artifact.ref).toBe(one.ref);
    expect(JSON.stringify(artifact).length).toBeLessThan(2000);
  });
});
