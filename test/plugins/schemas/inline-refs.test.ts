import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { SchemaRejected } from "../../../src/core/errors.ts";
import { inlineRefs } from "../../../src/plugins/schemas/inline-refs.ts";
import { inlineReferences } from "../../../src/plugins/schemas/references/inline.ts";
import { compare, interpretedCheckOf } from "../../corpus/equivalence.ts";
import { ownGroups, suiteGroups } from "../../corpus/read.ts";
import { hostile } from "./hostile.ts";
import { anyJson, schemaWithReferences } from "./arbitrary.ts";

const inline = (schema: unknown): any => inlineRefs.normalize(schema, { name: "tool" }).schema;
const diagnostics = (schema: unknown): ReadonlyArray<string> =>
  inlineRefs.normalize(schema, { name: "tool" }).diagnostics;

const node = (container: string, type: string) => ({
  type: "object",
  properties: { v: { type }, next: { $ref: `#/${container}/node` } },
});

describe("references are written out", () => {
  for (const group of ownGroups()) {
    it(group.description, () => {
      const { external, verdicts } = compare(group);
      expect(external).toBe(false);
      for (const verdict of verdicts) {
        expect(verdict).toEqual({ ...verdict, after: verdict.expected });
      }
    });
  }

  const groups = suiteGroups().filter((group) => JSON.stringify(group.schema).includes("Ref"));
  it.skipIf(groups.length === 0)("every verdict of the public test suite is right afterwards", () => {
    const verdicts = groups.flatMap((group) => compare(group).verdicts);
    expect(verdicts.length).toBeGreaterThan(50);
    expect(verdicts.filter((verdict) => verdict.after !== verdict.expected)).toEqual([]);
  });

  it("C-056: no definitions are left behind, whichever container held them", () => {
    const written = inline({
      type: "object",
      properties: { body: { allOf: [{ $ref: "#/definitions/x" }] } },
      definitions: { x: { type: "object", properties: { y: { $ref: "#/definitions/y" } } }, y: { type: "string" } },
    });
    expect(written).toEqual({
      type: "object",
      properties: { body: { allOf: [{ type: "object", properties: { y: { type: "string" } } }] } },
    });
  });

  it("C-056: a cycle keeps its reference, its definition moves to $defs, and a key clash is renamed", () => {
    const written = inline({
      type: "object",
      properties: { a: { $ref: "#/definitions/node" }, b: { $ref: "#/$defs/node" } },
      definitions: { node: node("definitions", "string") },
      $defs: { node: node("$defs", "number") },
    });
    expect(written).toEqual({
      type: "object",
      properties: { a: { $ref: "#/$defs/node" }, b: { $ref: "#/$defs/node_2" } },
      $defs: {
        node: { type: "object", properties: { v: { type: "string" }, next: { $ref: "#/$defs/node" } } },
        node_2: { type: "object", properties: { v: { type: "number" }, next: { $ref: "#/$defs/node_2" } } },
      },
    });
  });

  it("a top level that is a reference to a cycle is written out once, so that it shows its type", () => {
    const written = inline({
      $ref: "#/$defs/a",
      $defs: { a: { type: "object", properties: { a: { $ref: "#/$defs/a" } } } },
    });
    expect(written.type).toBe("object");
    expect(written.properties).toEqual({ a: { $ref: "#/$defs/a" } });
    expect(written.$defs.a).toEqual({ type: "object", properties: { a: { $ref: "#/$defs/a" } } });
  });

  it("a description beside a reference wins over the target's, in every draft", () => {
    for (const $schema of ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]) {
      const written = inline({
        $schema,
        type: "object",
        properties: { a: { $ref: "#/definitions/a", description: "mine" } },
        definitions: { a: { type: "string", description: "theirs" } },
      });
      expect(written.properties.a).toEqual({ type: "string", description: "mine" });
    }
  });
});

describe("what cannot be followed", () => {
  it("C-058: a dangling reference admits any object, with one diagnostic per reference", () => {
    const schema = {
      type: "object",
      properties: {
        a: { $ref: "#/$defs/missing", description: "kept" },
        b: { $ref: "#/$defs/missing" },
        c: { $ref: "#/$defs/list/prefixItems/01" },
        d: { $ref: "#/$defs/list/prefixItems/-" },
        e: { $ref: "#/$defs/list/prefixItems/1" },
        f: { $ref: "#/$defs/list/properties/__proto__" },
        g: { $ref: "https://example.test/other.json" },
      },
      $defs: { list: { prefixItems: [{ type: "string" }, { type: "number" }], properties: {} } },
    };
    expect(inline(schema).properties).toEqual({
      a: { type: "object", description: "kept" },
      b: { type: "object" },
      c: { type: "object" },
      d: { type: "object" },
      e: { type: "number" },
      f: { type: "object" },
      g: { type: "object" },
    });
    expect(diagnostics(schema).length).toBe(5);
  });

  it("a reference that is no text, and rings of bare references, are dangling too", () => {
    const schema = {
      type: "object",
      properties: { a: { $ref: 1 }, b: { $ref: "#/$defs/x" }, c: { $ref: "#/$defs/z" } },
      $defs: { x: { $ref: "#/$defs/y" }, y: { $ref: "#/$defs/x" }, z: { $ref: "#/$defs/x" } },
    };
    expect(inline(schema)).toEqual({
      type: "object",
      properties: { a: { type: "object" }, b: { type: "object" }, c: { type: "object" } },
    });
  });
});

describe("what is stripped", () => {
  it("identity keywords and comments go, properties of these names stay", () => {
    const written = inline({
      $schema: "https://json-schema.org/draft/2020-12/schema",
      $id: "https://example.test/x",
      $comment: "c",
      type: "object",
      properties: { $id: { type: "string", $comment: "c" }, $schema: { $anchor: "a", type: "string" }, $comment: {} },
      default: { $id: "kept", $schema: "kept" },
    });
    expect(written).toEqual({
      type: "object",
      properties: { $id: { type: "string" }, $schema: { type: "string" }, $comment: {} },
      default: { $id: "kept", $schema: "kept" },
    });
  });

  it("unused definitions go, without a trace in the rest", () => {
    expect(inline({ type: "object", $defs: { x: { type: "string" } }, definitions: {} })).toEqual({ type: "object" });
  });
});

describe("C-051: the top level", () => {
  const object = { type: "object", properties: { a: { type: "string" } } };
  it.each<[string, unknown]>([
    ["an object", object],
    ["properties alone", { properties: {} }],
    ["a type list with object", { type: ["object", "null"] }],
    ["anyOf of objects", { anyOf: [object, object] }],
    ["oneOf of objects", { oneOf: [object], discriminator: { propertyName: "a" } }],
    ["allOf with an object", { allOf: [object, { required: ["a"] }] }],
    ["a reference to an object", { $ref: "#/$defs/a", $defs: { a: object } }],
  ])("%s passes", (_, schema) => {
    expect(() => inline(schema)).not.toThrow();
  });

  it.each<[string, unknown]>([
    ["a string schema", { type: "string" }],
    ["nothing at all", {}],
    ["null", null],
    ["missing", undefined],
    ["a list", []],
    ["true", true],
    ["anyOf with a string", { anyOf: [object, { type: "string" }] }],
    ["an empty union", { anyOf: [] }],
  ])("%s is refused with a reason", (_, schema) => {
    expect(() => inline(schema)).toThrow(SchemaRejected);
    expect(() => inline(schema)).toThrow(/'tool' cannot be used: .{10}/);
  });
});

describe("C-060: growth is bounded", () => {
  for (const [name, schema] of Object.entries(hostile)) {
    it(name, () => {
      // What grows without bound would outlive the test's time limit or break the size limit.
      const { schema: written } = inlineReferences(schema, "tool");
      const json = JSON.stringify(written);
      expect(json.length).toBeLessThan(Math.max(64 * 1024, 1.1 * sizeOf(schema)));
      expect(dangling(written)).toEqual([]);
      expect(JSON.stringify(inlineReferences(written, "tool").schema)).toBe(json);
    });
  }

  it("a schema of more subschemas than any model reads is refused", () => {
    const properties = Object.fromEntries(Array.from({ length: 30_000 }, (_, i) => [`p${i}`, {}]));
    expect(() => inline({ type: "object", properties })).toThrow(SchemaRejected);
  });
});

describe("properties", () => {
  it("any JSON is normalised or refused, and left as it was", () => {
    fc.assert(
      fc.property(anyJson, (schema) => {
        const before = JSON.stringify(schema);
        try {
          inline(schema);
        } catch (error) {
          expect(error).toBeInstanceOf(SchemaRejected);
        }
        expect(JSON.stringify(schema)).toBe(before);
      }),
      { numRuns: 500 },
    );
  });

  it("schemas with references: the same verdicts, idempotent, no dangling reference, input unchanged", () => {
    fc.assert(
      fc.property(schemaWithReferences, fc.array(anyJson, { minLength: 5, maxLength: 5 }), (schema, instances) => {
        const before = JSON.stringify(schema);
        const { schema: written } = inlineReferences(schema, "tool");
        expect(JSON.stringify(schema)).toBe(before);
        expect(dangling(written)).toEqual([]);
        expect(JSON.stringify(inlineReferences(written, "tool").schema)).toBe(JSON.stringify(written));
        const [original, inlined] = [interpretedCheckOf(schema), interpretedCheckOf(written)];
        for (const instance of instances) {
          const verdict = original(instance);
          if (verdict !== undefined) expect(inlined(instance)).toBe(verdict);
        }
      }),
      { numRuns: 200 },
    );
  });
});

/** JSON length, also of what nests too deep for JSON.stringify. */
const sizeOf = (value: unknown): number => {
  let size = 0;
  for (const todo = [value]; todo.length > 0;) {
    const next = todo.pop();
    if (typeof next !== "object" || next === null) size += JSON.stringify(next).length;
    else
      for (const [key, member] of Object.entries(next)) {
        size += key.length + 4;
        todo.push(member);
      }
  }
  return size;
};

/** References in the result that do not resolve. */
const dangling = (schema: any): Array<string> => {
  const bad: Array<string> = [];
  JSON.stringify(schema, (_, value) => {
    const ref = value?.$ref;
    if (typeof ref === "string" && ref !== "#" && !Object.hasOwn(schema.$defs ?? {}, ref.replace("#/$defs/", ""))) {
      bad.push(ref);
    }
    return value;
  });
  return bad;
};
