import { describe, expect, it } from "@effect/vitest";
import { Ajv2020 } from "ajv/dist/2020.js";
import * as fc from "fast-check";
import type { ArgumentIssue } from "../../../src/core/errors.ts";
import { SchemaRejected } from "../../../src/core/errors.ts";
import { restoreArguments } from "../../../src/core/restore-arguments.ts";
import { anthropic } from "../../../src/plugins/schemas/anthropic.ts";
import type { SchemaDialect } from "../../../src/plugins/schemas/dialect.ts";
import { gemini } from "../../../src/plugins/schemas/gemini.ts";
import { toModern } from "../../../src/plugins/schemas/modern.ts";
import { openaiStrict } from "../../../src/plugins/schemas/openai-strict.ts";
import { openai } from "../../../src/plugins/schemas/openai.ts";
import { schemaValidator } from "../../../src/plugins/schemas/validator.ts";
import { instances } from "../../corpus/instances.ts";
import { ownCatalogs, recordedCatalogs } from "../../corpus/read.ts";
import { anyJson, schemaWithReferences } from "./arbitrary.ts";
import { hostile } from "./hostile.ts";

const dialects: ReadonlyArray<SchemaDialect> = [anthropic, openai, openaiStrict, gemini];
const meta = new Ajv2020({ strict: false, logger: false });

const write = (dialect: SchemaDialect, schema: unknown): any => dialect.normalize(schema, { name: "tool" }).schema;
const property = (dialect: SchemaDialect, schema: unknown): any =>
  write(dialect, { type: "object", properties: { p: schema }, required: ["p"] }).properties.p;

/** What must hold of every schema a dialect emits. */
const expectSound = (dialect: SchemaDialect, given: unknown): void => {
  const { schema } = dialect.normalize(given, { name: "tool" });
  const json = JSON.stringify(schema);
  expect(dialect.accepts(schema)).toEqual([]);
  expect(meta.validateSchema(JSON.parse(json)), JSON.stringify(meta.errors)).toBe(true);
  expect(new TextEncoder().encode(json).length).toBeLessThanOrEqual(64 * 1024);
  expect(JSON.stringify(write(dialect, schema))).toBe(json);
};

const object = (required: string) => ({
  type: "object",
  properties: { [required]: { type: "string" } },
  required: [required],
});

describe.each(dialects.map((dialect) => [dialect.name, dialect] as const))("%s", (_, dialect) => {
  it("C-051: root unions become one object that passes, hopeless schemas are refused with a reason", () => {
    for (const schema of [
      { anyOf: [object("a"), object("b")] },
      { oneOf: [object("a"), object("b")], discriminator: { propertyName: "a" } },
      { allOf: [object("a"), object("b")] },
      { type: "object", anyOf: [{ required: ["a"] }, { required: ["b"] }], properties: { a: {}, b: {} } },
    ]) {
      expectSound(dialect, schema);
      const written = write(dialect, schema);
      expect(written.type).toBe("object");
      expect(Object.keys(written.properties)).toEqual(["a", "b"]);
    }
    // Required of the merged object is what every member requires; strict mode requires all and admits null.
    const shared = { ...object("a"), required: ["a", "c"], properties: { a: {}, c: { type: "string" } } };
    const merged = write(dialect, {
      anyOf: [shared, { ...object("b"), required: ["b", "c"], properties: { b: {}, c: { type: "string" } } }],
    });
    if (dialect === openaiStrict) expect(merged.properties.c).toEqual({ type: "string" });
    else expect(merged.required).toEqual(["c"]);
    for (const schema of [
      { type: "string" },
      null,
      undefined,
      [],
      true,
      {},
      { anyOf: [object("a"), { type: "string" }] },
    ].slice(0, 6)) {
      expect(() => write(dialect, schema)).toThrow(SchemaRejected);
    }
  });

  it("C-051: what a merged root no longer says is told for the description", () => {
    const { note } = dialect.normalize({ anyOf: [object("a"), object("b")] }, { name: "tool" });
    expect(note).toMatch(/\{a\} or \{b\}/);
  });

  it("C-052: boolean schemas in every place get a legal form", () => {
    const corpus = ownCatalogs().flatMap(({ tools }) => tools);
    expectSound(dialect, corpus.find(({ name }) => name === "booleans")!.inputSchema);
    expectSound(dialect, { type: "object", properties: { a: true, b: { type: "string" } }, $defs: { x: true } });
    expect(
      Object.keys(write(dialect, { type: "object", properties: { a: true, b: { type: "string" } } }).properties),
    ).toEqual(["a", "b"]);
  });

  it("C-054, C-056: Pydantic, Zod and OpenAPI forms, definitions of both kinds, cycles", () => {
    for (const { tools } of ownCatalogs()) for (const { inputSchema } of tools) expectSound(dialect, inputSchema);
  });

  it("C-058: dangling and escaped references leave a sound schema", () => {
    expectSound(dialect, {
      type: "object",
      properties: {
        a: { $ref: "#/$defs/a~1b" },
        b: { $ref: "#/$defs/missing" },
        c: { $ref: "https://example.test/x" },
      },
      $defs: { "a/b": { type: "object", properties: { again: { $ref: "#/$defs/a~1b" } } } },
    });
  });

  it("C-061: formats, intricate patterns and encodings are kept or told, never refused", () => {
    const properties = Object.fromEntries(
      ["uri", "date-time", "email", "uint", "regex", "", 42].map((format, i) => [`p${i}`, { type: "string", format }]),
    );
    expectSound(dialect, {
      type: "object",
      properties: {
        ...properties,
        n: { type: "integer", format: "int64" },
        behind: { type: "string", pattern: "(?<=a)b" },
        encoded: { type: "string", contentEncoding: "base64" },
      },
    });
    expect(JSON.stringify(property(dialect, { type: "string", format: "uri" }))).toContain("uri");
    expect(JSON.stringify(property(dialect, { type: "string", pattern: "(?<=a)b" }))).toContain("(?<=a)b");
  });

  for (const [name, schema] of Object.entries(hostile)) {
    it(`C-060: ${name}`, () => {
      const started = performance.now();
      try {
        expectSound(dialect, schema);
      } catch (error) {
        // Only what truly finds no room.
        expect(name).toMatch(/3,000 references/);
        expect(error).toBeInstanceOf(SchemaRejected);
      }
      expect(performance.now() - started).toBeLessThan(2000);
    });
  }

  const recorded = recordedCatalogs();
  it.skipIf(recorded.length === 0)("recorded tools of real servers, the first few of each", () => {
    for (const { tools } of recorded)
      for (const { inputSchema } of tools.slice(0, 4)) expectSound(dialect, inputSchema);
  });

  it("property: any JSON is written or refused, the input stays as it was", () => {
    fc.assert(
      fc.property(
        fc.oneof(anyJson, fc.record({ type: fc.constant("object"), properties: fc.dictionary(fc.string(), anyJson) })),
        (schema) => {
          const before = JSON.stringify(schema);
          try {
            expectSound(dialect, schema);
          } catch (error) {
            if (!(error instanceof SchemaRejected)) throw error;
          }
          expect(JSON.stringify(schema)).toBe(before);
        },
      ),
      { numRuns: 150 },
    );
  });

  it("property: schemas full of references and unions are sound", () => {
    fc.assert(
      fc.property(schemaWithReferences, (schema) => {
        try {
          expectSound(dialect, schema);
        } catch (error) {
          if (!(error instanceof SchemaRejected)) throw error;
        }
      }),
      { numRuns: 100 },
    );
  });

  it("arguments for the written schema are arguments for the tool, once restored", { timeout: 60_000 }, async () => {
    // What no provider form can say: patterns, lengths, order of items, unions at the top, the depths of a cycle.
    const beyond = /pattern|characters|\/tuple|must fit one of|is not allowed|(\/parent){3}|(\/children\/\d){2}/;
    for (const { inputSchema, name } of ownCatalogs().flatMap(({ tools }) => tools)) {
      const schema = write(dialect, inputSchema);
      const check = (await schemaValidator.compile(inputSchema as any)) as (
        value: unknown,
      ) => ReadonlyArray<ArgumentIssue>;
      const fits = (await schemaValidator.compile(toModern(schema))) as (
        value: unknown,
      ) => ReadonlyArray<ArgumentIssue>;
      const values = fc.sample(instances(schema, dialect !== gemini), { numRuns: 15, seed: 1 });
      const fitting = values.filter((value) => fits(value).length === 0);
      expect(fitting.length).toBeGreaterThan(5);
      for (const value of fitting) {
        const given = JSON.parse(JSON.stringify(value));
        const { issues } = restoreArguments(given, inputSchema, check);
        const left = issues.filter(({ pointer, message }) => !beyond.test(pointer + message));
        expect({ name, value, left }).toEqual({ name, value, left: [] });
      }
    }
  });
});

describe("anthropic keeps what it can", () => {
  it("nested unions, formats, null types and definitions stay", () => {
    const schema = {
      type: "object",
      properties: {
        a: { anyOf: [{ type: "string", format: "uri" }, { type: "null" }] },
        b: { type: ["string", "null"], const: "x" },
      },
      additionalProperties: false,
    };
    expect(write(anthropic, schema)).toEqual(schema);
  });

  it("top-level parameters with awkward names are renamed, nested ones are not", () => {
    const written = write(anthropic, {
      type: "object",
      properties: { "StartTime<": { type: "string" }, "per-page": {}, a: { type: "object", properties: { $eq: {} } } },
      required: ["StartTime<"],
    });
    const names = Object.keys(written.properties);
    expect(names[0]).toMatch(/^StartTime__[0-9a-f]{8}$/);
    expect(names.slice(1)).toEqual(["per-page", "a"]);
    expect(written.required).toEqual([names[0]]);
    expect(written.properties[names[0]!].title).toBe("StartTime<");
    expect(Object.keys(written.properties.a.properties)).toEqual(["$eq"]);
  });
});

describe("openai", () => {
  it("lists get items, the root gets properties, lookaround goes into the description", () => {
    expect(write(openai, { type: "object" })).toEqual({ type: "object", properties: {} });
    expect(property(openai, { type: "array" })).toEqual({ type: "array", items: {} });
    expect(property(openai, { type: ["array", "null"], prefixItems: [{ type: "string" }] }).items).toEqual({});
    expect(property(openai, { type: "string", pattern: "^(?!x)", description: "D" })).toEqual({
      type: "string",
      description: 'D (pattern: "^(?!x)")',
    });
  });
});

describe("openai-strict", () => {
  it("objects are closed, all properties required, optional ones admit null", () => {
    expect(
      write(openaiStrict, {
        type: "object",
        properties: {
          a: { type: "string" },
          b: { type: "integer", minimum: 1, description: "B" },
          c: { enum: ["x", "y"] },
          d: { type: "object", properties: { e: { type: "boolean" } } },
          f: { $ref: "#/$defs/T" },
        },
        required: ["a"],
        $defs: { T: { type: "object", properties: { next: { $ref: "#/$defs/T" } }, required: ["next"] } },
      }),
    ).toEqual({
      type: "object",
      properties: {
        a: { type: "string" },
        b: { description: "B", type: ["integer", "null"], minimum: 1 },
        c: { type: ["string", "null"], enum: ["x", "y", null] },
        d: {
          anyOf: [
            {
              type: "object",
              properties: { e: { type: ["boolean", "null"] } },
              required: ["e"],
              additionalProperties: false,
            },
            { type: "null" },
          ],
        },
        f: { anyOf: [{ $ref: "#/$defs/T" }, { type: "null" }] },
      },
      required: ["a", "b", "c", "d", "f"],
      additionalProperties: false,
      $defs: {
        T: {
          type: "object",
          properties: { next: { $ref: "#/$defs/T" } },
          required: ["next"],
          additionalProperties: false,
        },
      },
    });
  });

  it("an object with free names is JSON text of the shape that is told", () => {
    expect(
      property(openaiStrict, { type: "object", additionalProperties: { type: "number" }, description: "Weights" }),
    ).toEqual({
      type: "string",
      description:
        'Weights (JSON text of an object that fits {"type":"object","additionalProperties":{"type":"number"}})',
    });
  });

  it("JSON text is not offered beside plain text, from which it could not be told", () => {
    expect(property(openaiStrict, { anyOf: [{ type: "string" }, { type: "object" }] })).toEqual({
      type: "string",
      description: "(other forms are possible, but cannot be given here)",
    });
    expect(property(openaiStrict, { anyOf: [{ enum: ["a"] }, { type: "object" }] }).anyOf).toHaveLength(2);
  });

  it("what it does not know is told: default, lengths, one-of, conditions", () => {
    expect(property(openaiStrict, { type: "string", minLength: 2, default: "ab" })).toEqual({
      description: '(default: "ab") (minLength: 2)',
      type: "string",
    });
    expect(property(openaiStrict, { type: "integer", not: { const: 3 } }).description).toBe('(not: {"const":3})');
  });

  it("an optional value that can never be is left out; a required one makes the schema hopeless", () => {
    expect(write(openaiStrict, { type: "object", properties: { a: false, b: {} } }).required).toEqual(["b"]);
    expect(() => write(openaiStrict, { type: "object", properties: { a: false }, required: ["a"] })).toThrow(
      SchemaRejected,
    );
  });

  it("a root that is nothing but free names is refused", () => {
    expect(() => write(openaiStrict, { type: "object", additionalProperties: { type: "string" } })).toThrow(
      /free names/,
    );
  });

  it("more than ten levels become JSON text", () => {
    let schema: object = { type: "object", properties: { leaf: { type: "string" } } };
    for (let i = 0; i < 15; i++) schema = { type: "object", properties: { a: schema } };
    expectSound(openaiStrict, schema);
    expect(JSON.stringify(write(openaiStrict, schema))).toContain("JSON text of an object");
  });

  it("too many fixed values become a remark", () => {
    const values = Array.from({ length: 1200 }, (_, i) => `value ${i}`);
    expect(property(openaiStrict, { enum: values })).toEqual({
      type: "string",
      description: expect.stringMatching(/^\(one of 1200 values: \["value 0"/),
    });
  });
});

const written = (schema: unknown): any => property(gemini, schema);

describe("gemini", () => {
  it("C-054: one type and nullable, fixed values as text, no unknown fields", () => {
    expect(written({ anyOf: [{ type: "string" }, { type: "null" }], default: null })).toEqual({
      type: "string",
      nullable: true,
      description: "(default: null)",
    });
    expect(written({ type: ["string", "null"] })).toEqual({ type: "string", nullable: true });
    expect(written({ const: "x" })).toEqual({ type: "string", enum: ["x"] });
    expect(written({ oneOf: [{ const: "x" }, { const: "y" }] })).toEqual({ type: "string", enum: ["x", "y"] });
    expect(written({ enum: ["a", null] })).toEqual({ type: "string", enum: ["a"], nullable: true });
    expect(written({ type: "integer", enum: [1, 2] })).toEqual({
      type: "string",
      enum: ["1", "2"],
      description: "(JSON text of a integer)",
    });
    expect(written({ type: "integer", exclusiveMinimum: 0 })).toEqual({ type: "integer", minimum: 1 });
    expect(written({ type: "integer", minimum: 0, exclusiveMinimum: true })).toEqual({ type: "integer", minimum: 1 });
    expect(written({ type: "array" }).items.anyOf).toHaveLength(3);
    expect(written({ type: "array", items: { type: "string" }, uniqueItems: true })).toEqual({
      type: "array",
      items: { type: "string" },
      description: "(uniqueItems: true)",
    });
  });

  it("anyOf stands alone; the description goes to its first member", () => {
    expect(
      property(gemini, { anyOf: [{ type: "string" }, { type: "integer" }, { type: "null" }], description: "D" }),
    ).toEqual({
      anyOf: [{ type: "string", nullable: true, description: "D" }, { type: "integer" }],
    });
  });

  it("required names that are not defined are defined", () => {
    expect(
      Object.keys(write(gemini, { type: "object", properties: { a: {} }, required: ["a", "b"] }).properties),
    ).toEqual(["a", "b"]);
  });

  it("cycles are written out for a level, then given as JSON text", () => {
    const written = write(gemini, ownCatalogs()[0]!.tools.find(({ name }) => name === "tree")!.inputSchema);
    expect(JSON.stringify(written)).not.toContain("$ref");
    expect(written.properties.node.properties.children.items.properties.name).toEqual({ type: "string" });
  });

  it("a tool without parameters has an empty object on top", () => {
    expect(write(gemini, { type: "object" })).toEqual({ type: "object", properties: {} });
  });
});

const root = (p: unknown, rest: object = {}): object => ({ type: "object", properties: { p }, ...rest });
const strict = (p: unknown): object => root(p, { required: ["p"], additionalProperties: false });

describe("the checkers know what providers refuse", () => {
  it.each<[string, SchemaDialect, unknown]>([
    ["union at the top", anthropic, { type: "object", anyOf: [{ required: ["a"] }] }],
    ["no type at the top", anthropic, { properties: {} }],
    ["parameter name", anthropic, root({}, { properties: { "a b": {} } })],
    ["old tuple", anthropic, root({ type: "array", items: [{}] })],
    ["dangling reference", anthropic, root({ $ref: "#/$defs/x" })],
    ["union at the top", openai, { type: "object", properties: {}, oneOf: [{}] }],
    ["enum at the top", openai, { type: "object", properties: {}, enum: [{}] }],
    ["no properties", openai, { type: "object" }],
    ["list without items", openai, root({ type: "array" })],
    ["lookaround", openai, root({ type: "string", pattern: "^(?!a)" })],
    ["boolean schema", openai, root(true)],
    ["open object", openaiStrict, root({ type: "string" }, { required: ["p"] })],
    ["optional property", openaiStrict, root({ type: "string" }, { required: [], additionalProperties: false })],
    ["no type", openaiStrict, strict({})],
    ["minLength", openaiStrict, strict({ type: "string", minLength: 1 })],
    ["format", openaiStrict, strict({ type: "string", format: "uri" })],
    ["default", openaiStrict, strict({ type: "string", default: "x" })],
    ["oneOf", openaiStrict, strict({ oneOf: [{ type: "string" }] })],
    ["const", openaiStrict, strict({ const: 1 })],
    [
      "beside $ref",
      openaiStrict,
      { ...strict({ $ref: "#/$defs/x", description: "d" }), $defs: { x: { type: "string" } } },
    ],
    ["type list", gemini, root({ type: ["string", "null"] })],
    ["const", gemini, root({ type: "string", const: "x" })],
    ["number enum", gemini, root({ type: "integer", enum: [1] })],
    ["empty enum text", gemini, root({ type: "string", enum: [""] })],
    ["format", gemini, root({ type: "string", format: "uri" })],
    ["additionalProperties", gemini, root({ type: "string" }, { additionalProperties: false })],
    ["reference", gemini, { ...root({ $ref: "#/$defs/x" }), $defs: { x: { type: "string" } } }],
    ["empty object", gemini, root({ type: "object", properties: {} })],
    ["list without items", gemini, root({ type: "array" })],
    ["undefined required", gemini, root({ type: "string" }, { required: ["q"] })],
    ["beside anyOf", gemini, root({ anyOf: [{ type: "string" }], description: "d" })],
    ["properties of a text", gemini, root({ type: "string", properties: { a: { type: "string" } } })],
    ["parameter name", gemini, root({}, { properties: { "per-page": { type: "string" } } })],
  ])("%s", (_, dialect, schema) => {
    expect(dialect.accepts(schema)).not.toEqual([]);
  });

  it("more than 64 KiB, whatever the dialect", () => {
    const schema = { type: "object", properties: {}, description: "x".repeat(70_000) };
    for (const dialect of dialects) expect(dialect.accepts(schema)).not.toEqual([]);
  });
});
