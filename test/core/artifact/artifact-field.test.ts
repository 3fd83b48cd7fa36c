import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as fc from "fast-check";
import {
  artifactFieldTool,
  type ArtifactFieldPage,
  getArtifactField,
} from "../../../src/core/artifact/artifact-field.ts";
import { ArtifactRegistry } from "../../../src/core/artifact/artifact-registry.ts";
import { Artifact } from "../../../src/core/artifact/artifact.ts";
import { sameJson } from "../../../src/core/artifact/json.ts";
import { childPointer } from "../../../src/core/artifact/pointer.ts";
import { walk } from "../../../src/core/artifact/walk.ts";

const bytes = (text: string): number => new TextEncoder().encode(text).length;
const json = fc.jsonValue({ stringUnit: "binary", maxDepth: 6 });
const source = { mcpHandle: "h", toolName: "t" };

const kept = (registry: ArtifactRegistry, data: unknown): string => {
  const artifact = walk(data, source);
  Effect.runSync(registry.keep(artifact));
  return artifact.ref;
};

interface Reader {
  readonly registry: ArtifactRegistry;
  readonly ref: string;
  readonly budget: number;
  /** Answers the length to ask for next. */
  readonly length: () => number | undefined;
  pages: number;
  largest: number;
}

/** One page as another process would see it: through JSON text. */
const ask = (reader: Reader, pointer: string, offset: number): ArtifactFieldPage => {
  const { registry, ref, budget } = reader;
  const page = Effect.runSync(getArtifactField(registry, { ref, pointer, offset, length: reader.length() }, budget));
  const text = JSON.stringify(page);
  reader.pages++;
  reader.largest = Math.max(reader.largest, bytes(text));
  return JSON.parse(text) as ArtifactFieldPage;
};

/** Reads everything below a pointer by following `next` and `cut`, as a patient model would. */
const readAll = (reader: Reader, pointer: string): unknown => {
  let text = "";
  const items: Array<unknown> = [];
  const entries: Array<[string, unknown]> = [];
  for (let offset: number | undefined = 0; ;) {
    const page: ArtifactFieldPage = ask(reader, pointer, offset);
    expect(page.offset).toBe(offset);
    const cut = new Set(page.cut);
    if (page.kind === "text") text += page.value as string;
    else if (page.kind === "list")
      for (const [i, item] of (page.value as ReadonlyArray<unknown>).entries()) {
        const index = offset + i;
        items.push(cut.has(index) ? readAll(reader, childPointer(pointer, index)) : item);
      }
    else if (page.kind === "object")
      for (const [key, item] of Object.entries(page.value as object))
        entries.push([key, cut.has(key) ? readAll(reader, childPointer(pointer, key)) : item]);
    else return page.value;
    if (page.next === undefined) {
      const value = page.kind === "text" ? text : page.kind === "list" ? items : Object.fromEntries(entries);
      expect(page.total).toBe(page.kind === "object" ? entries.length : (value as string).length);
      return value;
    }
    expect(page.next).toBeGreaterThan(offset);
    offset = page.next;
  }
};

describe("get_artifact_field", () => {
  it("any JSON, read in any pages, is put together again as it was", () => {
    fc.assert(
      fc.property(
        json,
        fc.integer({ min: 0, max: 900 }),
        fc.array(fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }), { minLength: 1 }),
        (value, budget, lengths) => {
          const registry = new ArtifactRegistry();
          let turn = 0;
          const length = (): number | undefined => lengths[turn++ % lengths.length];
          const reader: Reader = { registry, ref: kept(registry, value), budget, length, pages: 0, largest: 0 };
          expect(sameJson(readAll(reader, ""), value)).toBe(true);
        },
      ),
      { numRuns: 300 },
    );
  });

  it("a 20 MB result is readable to the last byte in pages of at most 8 KB", () => {
    const rows = Array.from({ length: 32_000 }, (_, i) => ({ id: i, name: `row ${i} é😀"\\`, text: "z".repeat(400) }));
    const value = {
      rows,
      page: "ab\u0000c😀\ud800".repeat(200_000),
      index: Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`key/${i}~`, i])),
      blob: [{ deep: { deeper: ["x".repeat(2_000_000)] } }],
    };
    expect(bytes(JSON.stringify(value))).toBeGreaterThan(20_000_000);
    const registry = new ArtifactRegistry();
    const ref = kept(registry, value);
    const reader: Reader = { registry, ref, budget: 8192, length: () => undefined, pages: 0, largest: 0 };
    expect(sameJson(readAll(reader, ""), value)).toBe(true);
    expect(reader.largest).toBeLessThanOrEqual(8192);
    expect(reader.pages).toBeGreaterThan(2000);
  });

  it.effect("pages texts on code-point borders, lists by items, objects by keys", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const ref = kept(registry, { text: "a😀b", list: [1, 2, 3, 4], object: { x: 1, y: 2, z: 3 }, n: null });
      const get = (pointer: string, offset: number, length: number) =>
        getArtifactField(registry, { ref, pointer, offset, length });
      expect(yield* get("/text", 0, 2)).toMatchObject({ kind: "text", total: 4, value: "a", next: 1 });
      expect(yield* get("/text", 1, 1)).toMatchObject({ value: "😀", next: 3 });
      expect(yield* get("/text", 2, 5)).toMatchObject({ offset: 1, value: "😀b" });
      expect(yield* get("/list", 1, 2)).toMatchObject({ kind: "list", total: 4, value: [2, 3], next: 3 });
      expect(yield* get("/object", 1, 1)).toMatchObject({ kind: "object", total: 3, value: { y: 2 }, next: 2 });
      const past = yield* get("/list", 99, 2);
      expect(past).toMatchObject({ offset: 4, value: [] });
      expect(past.next).toBeUndefined();
      expect(yield* get("/n", 0, 1)).toMatchObject({ kind: "null", value: null });
      expect(yield* get("/list/3", 0, 1)).toMatchObject({ kind: "number", value: 4 });
    }),
  );

  it.effect("names what is too large for a page, and reads it by its own pointer", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const ref = kept(registry, { a: 1, big: "b".repeat(20_000), z: [1] });
      const page = yield* getArtifactField(registry, { ref });
      expect(page.cut).toEqual(["big"]);
      expect(page.next).toBeUndefined();
      expect(page.value).toMatchObject({ a: 1, z: [1] });
      expect((page.value as Record<string, string>)["big"]).toMatch(/^\[text of 20000 characters: b+…\]$/);
    }),
  );

  it.effect("follows RFC 6901: escapes, empty keys, digits as keys, own members only", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const ref = kept(registry, JSON.parse('{"a/b":1,"m~n":2,"":{"":3},"0":4,"é":5,"__proto__":6,"l":[7]}'));
      const value = (pointer: string) => Effect.map(getArtifactField(registry, { ref, pointer }), (page) => page.value);
      expect(yield* value("/a~1b")).toBe(1);
      expect(yield* value("/m~0n")).toBe(2);
      expect(yield* value("//")).toBe(3);
      expect(yield* value("/0")).toBe(4);
      expect(yield* value("/é")).toBe(5);
      expect(yield* value("/__proto__")).toBe(6);
      expect(yield* value("/l/0")).toBe(7);
      for (const pointer of [
        "/toString",
        "/l/length",
        "/l/-",
        "/l/00",
        "/l/1",
        "/l/1e0",
        "/0/x",
        "/nope",
        "a",
        "/~2",
        "#/0",
      ]) {
        const error = yield* Effect.flip(getArtifactField(registry, { ref, pointer }));
        expect(error._tag, pointer).toBe("PointerUnresolved");
      }
    }),
  );

  it.effect("its errors say what is there instead", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const ref = kept(registry, { rows: [{ id: 1 }] });
      const message = (input: unknown) => Effect.map(Effect.flip(getArtifactField(registry, input)), (e) => e.message);
      expect(yield* message({ ref, pointer: "/rowz" })).toMatch(/at '\(root\)' is an object with the keys "rows"/);
      expect(yield* message({ ref, pointer: "/rows/3" })).toMatch(/at '\/rows' is a list of 1 items, counted from 0/);
      expect(yield* message({ ref, pointer: "/rows/0/id/x" })).toMatch(/is a number, which holds no members/);
      expect(yield* message({ ref, pointer: "rows" })).toMatch(/begin with '\/'/);
      expect(yield* message({ ref: "artifact:mcp~1" })).toMatch(/no artifact/);
      for (const bad of [
        null,
        7,
        {},
        { ref: 1 },
        { ref, offset: -1 },
        { ref, length: 0 },
        { ref, offset: 1.5 },
        { ref, pointer: 1 },
      ])
        expect(yield* message(bad)).toMatch(/do not fit its schema/);
    }),
  );

  it.effect("reads typed artifacts by their wire form", () =>
    Effect.gen(function* () {
      class Report extends Artifact {
        static override readonly typeAlias: string = "report";
        readonly at = new Date(0);
        readonly rows = [{ id: 1 }];
      }
      const registry = new ArtifactRegistry();
      const report = new Report();
      yield* registry.keep(report);
      const { ref } = report;
      expect((yield* getArtifactField(registry, { ref, pointer: "/rows/0/id" })).value).toBe(1);
      expect((yield* getArtifactField(registry, { ref, pointer: "/at" })).value).toBe("1970-01-01T00:00:00.000Z");
      expect((yield* getArtifactField(registry, { ref, pointer: "/artifact_ref" })).value).toBe(ref);
    }),
  );

  it.effect("reaches the bottom of 100,000 levels", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const levels = 100_000;
      const ref = kept(registry, JSON.parse(`${"[".repeat(levels)}"end"${"]".repeat(levels)}`));
      const pointer = "/0".repeat(levels);
      expect((yield* getArtifactField(registry, { ref, pointer })).value).toBe("end");
      const top = yield* getArtifactField(registry, { ref });
      expect(top.cut).toEqual([0]);
      expect(JSON.stringify(top).length).toBeLessThan(1000);
    }),
  );

  it("describes itself as a tool", () => {
    expect(artifactFieldTool.name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    expect(artifactFieldTool.inputSchema).toMatchObject({ type: "object", required: ["ref"] });
  });
});
