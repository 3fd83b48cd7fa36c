import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { sizeWithin } from "../../../src/core/artifact/json.ts";
import { McpArtifact } from "../../../src/core/artifact/mcp-artifact.ts";
import { parsePointer, resolveTokens } from "../../../src/core/artifact/pointer.ts";
import { walk } from "../../../src/core/artifact/walk.ts";

const source = { mcpHandle: "web", toolName: "fetch" };
const small = { leaf: 20, subtree: 60, promotion: 1200, depth: 6, head: 8 };
/** As parsed from text, where minus zero and zero are written alike. */
const json = fc
  .jsonValue({ stringUnit: "binary", maxDepth: 7 })
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** An artifact without its methods, for comparison. */
const laidOut = (artifact: McpArtifact): unknown => ({
  data: artifact.data,
  size: artifact.size,
  summaries: [...artifact.summaries],
  nested: [...artifact.nested].map(([pointer, part]) => [pointer, laidOut(part)]),
});

const reached = (root: unknown, pointer: string): unknown => {
  const resolved = resolveTokens(root, parsePointer(pointer)!);
  expect(resolved.found, pointer).toBe(true);
  return resolved.value;
};

describe("walk", () => {
  it("is pure: equal input gives equal artifacts and refs, and the input stays as it was", () => {
    fc.assert(
      fc.property(json, (value) => {
        const before = JSON.stringify(value);
        const copy = JSON.parse(before) as unknown;
        const once = walk(value, source, small);
        const twice = walk(copy, source, small);
        expect(laidOut(twice)).toEqual(laidOut(once));
        expect(twice.ref).toBe(once.ref);
        expect(JSON.stringify(twice)).toBe(JSON.stringify(once));
        expect(once.data).toBe(value);
        expect(JSON.stringify(value)).toBe(before);
        expect(laidOut(walk(once.data, source, small))).toEqual(laidOut(once));
      }),
      { numRuns: 150 },
    );
  });

  it("every pointer of the cache leads somewhere, and nested pointers start at their own root", () => {
    const check = (artifact: McpArtifact): void => {
      for (const pointer of artifact.summaries.keys()) reached(artifact.data, pointer);
      for (const [pointer, part] of artifact.nested) {
        expect(part.data).toBe(reached(artifact.data, pointer));
        check(part);
      }
    };
    fc.assert(
      fc.property(json, (value) => check(walk(value, source, small))),
      { numRuns: 150 },
    );
  });

  it("small values are shown as they are", () => {
    const value = { a: [1, "two", { three: null }], "": false };
    const artifact = walk(value, source);
    expect(artifact.summaries.size).toBe(0);
    expect(artifact.toJSON()).toEqual({ artifact_ref: artifact.ref, ...source, data: value });
  });

  it("rule a: a long text and a large subtree are summarised in place, with how to read them", () => {
    const text = "lorem ".repeat(400);
    const rows = Array.from({ length: 60 }, (_, i) => ({ id: i, name: `name ${i}`, note: "some words here" }));
    const artifact = walk({ keep: 1, text, rows: { "a/b": rows } }, source);
    expect([...artifact.summaries.keys()]).toEqual(["/text", "/rows/a~1b"]);
    expect(artifact.summaries.get("/text")).toEqual({
      kind: "text",
      size: 2400,
      count: 2400,
      head: text.slice(0, 200),
    });
    const shown = JSON.parse(JSON.stringify(artifact)) as { data: Record<string, any> };
    expect(shown.data["keep"]).toBe(1);
    expect(shown.data["rows"]["a/b"]).toMatchObject({
      kind: "list",
      count: 60,
      get_artifact_field: { ref: artifact.ref, pointer: "/rows/a~1b" },
    });
    expect(artifact.data).toEqual({ keep: 1, text, rows: { "a/b": rows } });
  });

  it("rule b: what is over the promotion budget, or carries a ref, is an artifact of its own", () => {
    const cite = { artifact_ref: "artifact:link:cite~77", url: "https://x" };
    const large = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`key${i}`, { v: "some text", i }]));
    const artifact = walk({ cite, large, both: { deep: [cite] } }, source);
    expect([...artifact.nested.keys()]).toEqual(["/cite", "/large", "/both/deep/0"]);
    expect(artifact.nested.get("/cite")!.ref).toBe("artifact:link:cite~77");
    const shown = JSON.parse(JSON.stringify(artifact)) as { data: Record<string, any> };
    expect(shown.data["large"]).toMatchObject({
      artifact_ref: artifact.nested.get("/large")!.ref,
      kind: "object",
      count: 400,
    });
    expect(shown.data["cite"].artifact_ref).toBe("artifact:link:cite~77");
    expect(JSON.stringify(artifact).length).toBeLessThan(2000);
    expect(artifact.data).toEqual({ cite, large, both: { deep: [cite] } });
  });

  it("a root that carries a ref keeps it and serializes as it came", () => {
    const payload = { artifact_ref: "artifact:link:cite~77", url: "https://x" };
    const artifact = walk(payload, source);
    expect(artifact.ref).toBe("artifact:link:cite~77");
    expect(artifact.toJSON()).toEqual(payload);
  });

  it("a ref that is not well formed is plain data", () => {
    const artifact = walk({ a: { artifact_ref: "artifact:" }, b: { artifact_ref: 7 } }, source);
    expect(artifact.nested.size).toBe(0);
  });

  it("100,000 levels, a million siblings and prototype keys are no danger", () => {
    const deep = walk(JSON.parse('{"a":'.repeat(100_000) + "1" + "}".repeat(100_000)), source);
    expect([...deep.summaries.keys()]).toEqual(["/a".repeat(32)]);
    expect(JSON.stringify(deep).length).toBeLessThan(2000);
    expect(deep.ref).toMatch(/^artifact:mcp~/);
    const wide = walk(
      Array.from({ length: 1_000_001 }, () => 0),
      source,
    );
    expect([...wide.summaries.keys()]).toEqual([""]);
    expect(JSON.stringify(wide).length).toBeLessThan(1000);
    const proto = walk(JSON.parse(`{"__proto__":{"x":"${"y".repeat(3000)}"},"constructor":1}`), source);
    expect([...proto.summaries.keys()]).toEqual(["/__proto__/x"]);
    const shown = JSON.parse(JSON.stringify(proto)) as { data: object };
    expect(Object.keys(shown.data)).toEqual(["__proto__", "constructor"]);
    expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
  });

  it("an artifact made by hand of deep data serializes too", () => {
    const data = JSON.parse("[".repeat(50_000) + "]".repeat(50_000)) as unknown;
    const artifact = new McpArtifact({ data, ...source });
    expect(JSON.stringify(artifact)).toContain("[list of 1 items");
  });

  it("what an artifact shows stays small however large its data is", () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue({ maxDepth: 4 }), { maxLength: 12 }), fc.nat(2), (values, extra) => {
        let data: unknown = values;
        for (let i = 0; i < extra + 4; i++) data = { left: data, right: [data, data] };
        const artifact = walk({ data }, source, small);
        const shown = sizeWithin(artifact.toJSON(), 20_000, 100);
        expect(shown).toBeDefined();
      }),
      { numRuns: 40 },
    );
  });
});
