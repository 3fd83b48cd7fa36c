import { describe, expect, it } from "@effect/vitest";
import { artifactType, TypeAliasRegistry } from "../../../src/core/artifact/alias.ts";
import { Artifact, ListArtifact, typeAlias, wireText } from "../../../src/core/artifact/artifact.ts";
import { McpArtifact } from "../../../src/core/artifact/mcp-artifact.ts";
import { aliasLadder, aliasOf, carriedRef } from "../../../src/core/artifact/ref.ts";
import { PluginFailed } from "../../../src/core/errors.ts";

class Link extends Artifact {
  static override readonly typeAlias: string = "link";
  readonly url: string;
  constructor(url: string) {
    super();
    this.url = url;
  }
  static fromWire(payload: Readonly<Record<string, unknown>>): Link | undefined {
    return typeof payload["url"] === "string" ? new Link(payload["url"]) : undefined;
  }
}

class Pubmed extends Artifact {
  readonly url: string;
  readonly pmid: string;
  constructor(url: string, pmid: string) {
    super();
    this.url = url;
    this.pmid = pmid;
  }
  static fromWire(payload: Readonly<Record<string, unknown>>): Pubmed {
    if (typeof payload["pmid"] !== "string") throw new Error("pmid is missing");
    return new Pubmed(String(payload["url"]), payload["pmid"]);
  }
}
typeAlias("link:cite:pubmed")(Pubmed);

const source = { mcpHandle: "h", toolName: "t" };

describe("refs", () => {
  it("carry the alias and a short id", () => {
    const ref = new Pubmed("https://x", "1").ref;
    expect(ref).toMatch(/^artifact:link:cite:pubmed~[0-9a-f]{12}$/);
    expect(aliasOf(ref)).toBe("link:cite:pubmed");
    expect(aliasOf("artifact:link:cite:pubmed~a7f3b2")).toBe("link:cite:pubmed");
  });

  it("are equal exactly for equal content of one class", () => {
    expect(new Link("a").ref).toBe(new Link("a").ref);
    expect(new Link("a").ref).not.toBe(new Link("b").ref);
    expect(new Pubmed("a", "1").ref).not.toBe(new Pubmed("a", "2").ref);
  });

  it("refuse what only looks like one", () => {
    for (const ref of [
      "artifact:~a",
      "artifact:a~",
      "artifact:a::b~c",
      "artifact:a b~c",
      "artifact:a~b~c",
      "a~b",
      "",
      7,
      null,
      `artifact:${"a".repeat(300)}~b`,
    ])
      expect(aliasOf(ref), String(ref)).toBeUndefined();
    expect(carriedRef(Object.create({ artifact_ref: "artifact:a~b" }))).toBeUndefined();
    expect(carriedRef([{ artifact_ref: "artifact:a~b" }])).toBeUndefined();
    expect(carriedRef({ artifact_ref: "artifact:a~b" })).toBe("artifact:a~b");
  });

  it("climb their alias segment by segment", () => {
    expect(aliasLadder("a:b:c")).toEqual(["a:b:c", "a:b", "a"]);
  });

  it("cannot be minted for a class without an alias", () => {
    class Nameless extends Artifact {}
    expect(() => new Nameless().ref).toThrow(PluginFailed);
    expect(() => new Nameless().ref).toThrow(/Nameless.*typeAlias/);
    expect(() => artifactType({ name: "X", typeAlias: "not valid", fromWire: () => undefined })).toThrow(PluginFailed);
  });
});

describe("Artifact", () => {
  it("serializes its fields with artifact_ref", () => {
    const link = new Pubmed("https://x", "42");
    expect(JSON.parse(JSON.stringify(link))).toEqual({ artifact_ref: link.ref, url: "https://x", pmid: "42" });
  });

  it("travels whole even with generic artifacts inside, whose own JSON shows summaries", () => {
    class Report extends Artifact {
      static override readonly typeAlias: string = "report";
      readonly inner: McpArtifact;
      constructor(inner: McpArtifact) {
        super();
        this.inner = inner;
      }
    }
    const summaries = new Map([["/long", { kind: "text", count: 1 } as const]]);
    const inner = new McpArtifact({ data: { long: "all of it" }, mcpHandle: "h", toolName: "t", summaries });
    const report = new Report(inner);
    expect(JSON.stringify(report)).not.toContain("all of it");
    expect(wireText(report)).toContain("all of it");
    expect(report.root()).toEqual({ artifact_ref: report.ref, inner: inner.toWire() });
  });

  it("lists serialize their items with the items' refs", () => {
    const list = new ListArtifact([new Link("a"), new Pubmed("b", "1")]);
    expect(JSON.parse(JSON.stringify(list))).toEqual({
      artifact_ref: list.ref,
      items: list.items.map((item) => item.toWire()),
    });
    expect(list.ref).toMatch(/^artifact:list~/);
  });
});

describe("TypeAliasRegistry", () => {
  const wire = { ...new Pubmed("https://x", "42").toWire() };
  const ref = wire["artifact_ref"] as string;

  it("resolves an alias, else its nearest registered ancestor", () => {
    const all = new TypeAliasRegistry([artifactType(Link), artifactType(Pubmed as never)]);
    expect(all.resolveWithFallback("link:cite:pubmed")?.alias).toBe("link:cite:pubmed");
    expect(all.resolveWithFallback("link:cite:doi")?.alias).toBe("link");
    expect(all.resolveWithFallback("linked")).toBeUndefined();
    expect(all.resolveWithFallback("list")?.alias).toBe("list");
  });

  it("rebuilds the exact class, the ancestor, or a generic artifact, always with the minted ref", () => {
    const cases = [
      [new TypeAliasRegistry([artifactType(Link), artifactType(Pubmed as never)]), Pubmed],
      [new TypeAliasRegistry([artifactType(Link)]), Link],
      [new TypeAliasRegistry(), McpArtifact],
    ] as const;
    for (const [types, expected] of cases) {
      const artifact = types.revive(wire, source);
      expect(artifact).toBeInstanceOf(expected);
      expect(artifact.ref).toBe(ref);
    }
  });

  it("a payload that does not fit its class falls down the ladder, with a diagnostic", () => {
    const problems: Array<string> = [];
    const types = new TypeAliasRegistry([artifactType(Link), artifactType(Pubmed as never)]);
    const half = types.revive({ artifact_ref: ref, url: "https://x" }, source, (problem) => problems.push(problem));
    expect(half).toBeInstanceOf(Link);
    expect(half.ref).toBe(ref);
    expect(problems).toEqual([`${ref}: the class of 'link:cite:pubmed' refused the payload: pmid is missing`]);
    const none = types.revive({ artifact_ref: ref, other: 1 }, source, (problem) => problems.push(problem));
    expect(none).toBeInstanceOf(McpArtifact);
    expect(none.toWire()).toEqual({ artifact_ref: ref, other: 1 });
    expect(problems).toHaveLength(3);
    expect(problems[2]).toMatch(/does not fit the class of 'link'/);
  });

  it("survives lists nested without end", () => {
    let payload: unknown = { artifact_ref: "artifact:link~1", url: "x" };
    for (let i = 0; i < 50_000; i++) payload = { artifact_ref: "artifact:list~1", items: [payload] };
    const problems: Array<string> = [];
    const artifact = new TypeAliasRegistry().revive(payload, source, (problem) => problems.push(problem));
    expect(artifact).toBeInstanceOf(ListArtifact);
    expect(problems.join()).toMatch(/nested too deep/);
    expect(JSON.stringify(artifact).length).toBeGreaterThan(0);
  });
});
