import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import type { JsonSchema, SchemaValidator } from "../../../src/core/contracts.ts";
import { makeSchemaValidator, schemaValidator } from "../../../src/plugins/schemas/validator.ts";
import { drafts, ownGroups, suiteGroups } from "../../corpus/read.ts";
import { survivors } from "../../support/collect-garbage.ts";
import { nodeBinary } from "../../support/node-binary.ts";
import { anyJson } from "./arbitrary.ts";
import { hostile } from "./hostile.ts";

type Check = (value: unknown) => ReadonlyArray<{ readonly pointer: string; readonly message: string }>;

const compile = async (schema: unknown, validator: SchemaValidator = schemaValidator): Promise<Check> =>
  (await validator.compile(schema as JsonSchema)) as Check;

const engines: ReadonlyArray<[string, SchemaValidator]> = [
  ["generated", makeSchemaValidator(() => true)],
  ["interpreted", makeSchemaValidator(() => false)],
];

/** Groups of the public suite this validator does not follow: it fetches nothing and knows no meta-schemas. */
const beyond = new Set(["refRemote.json", "vocabulary.json"]);

describe.each(engines)("%s", (_, validator) => {
  const groups = [...ownGroups(), ...suiteGroups()].filter(
    ({ file, schema }) =>
      typeof schema === "object" &&
      !beyond.has(file) &&
      !/"https?:\/\/json-schema.org[^"]*"|"\$(ref|dynamicRef)":"(https?:|[a-z-]+\.json)/.test(
        JSON.stringify(schema).replace(/"\$schema":"[^"]*",?/, ""),
      ),
  );

  it("gives the right verdict on every group of the suites", { timeout: 60_000 }, async () => {
    const wrong: Array<string> = [];
    for (const { draft, file, description, schema, tests } of groups) {
      const check = await compile({ $schema: drafts[draft], ...(schema as object) }, validator);
      for (const test of tests) {
        // ajv skips the one property name that no object literal can hold.
        if (description.includes("Javascript object property names") && test.description?.includes("__proto__"))
          continue;
        if ((check(test.data).length === 0) !== test.valid)
          wrong.push(`${draft}/${file}: ${description} / ${test.description}`);
      }
    }
    expect(wrong).toEqual([]);
  });

  it("reads older drafts and OpenAPI forms as what they are", async () => {
    const check = await compile(
      {
        $schema: "http://json-schema.org/draft-04/schema#",
        id: "x",
        type: "object",
        properties: {
          above: { type: "number", minimum: 1, exclusiveMinimum: true },
          maybe: { type: "string", nullable: true, enum: ["a"] },
          pair: { type: "array", items: [{ type: "string" }], additionalItems: false },
        },
        dependencies: { above: ["maybe"] },
      },
      validator,
    );
    expect(check({ above: 2, maybe: null, pair: ["s"] })).toEqual([]);
    expect(check({ above: 1, maybe: "a" })).toHaveLength(1);
    expect(check({ above: 2 })).toHaveLength(1);
    expect(check({ pair: ["s", "t"] })).toHaveLength(1);
  });

  it("C-061: formats are annotations, and nothing is written to the console", async () => {
    const written: Array<unknown> = [];
    const original = { ...console };
    const levels = ["log", "info", "warn", "error", "debug"] as const;
    for (const level of levels) console[level] = (...args: Array<unknown>) => void written.push(args);
    try {
      const properties = Object.fromEntries(
        ["uri", "date-time", "email", "uint", "regex", "", 42].map((format, i) => [
          `p${i}`,
          { type: "string", format },
        ]),
      );
      const check = await compile(
        {
          type: "object",
          properties: {
            ...properties,
            n: { type: "integer", format: "int64" },
            behind: { type: "string", pattern: "(?<=a)b" },
            python: { type: "string", pattern: "(?P<x>a)" },
            encoded: { type: "string", contentEncoding: "base64" },
            unknown: { type: "string", optional: true, "x-y": 1 },
          },
        },
        validator,
      );
      expect(check({ p0: "no uri", p1: "no time", p3: "x", n: 1, behind: "ab", python: "zzz", encoded: "?" })).toEqual(
        [],
      );
      expect(check({ behind: "b" })).toHaveLength(1);
    } finally {
      Object.assign(console, original);
    }
    expect(written).toEqual([]);
  });

  it("unevaluated items see what contains found", async () => {
    const check = await compile(
      {
        type: "object",
        properties: { l: { prefixItems: [true], contains: { type: "string" }, unevaluatedItems: false } },
      },
      validator,
    );
    expect(check({ l: [1, "a", "b"] })).toEqual([]);
    expect(check({ l: [1, 2, "a"] })).toHaveLength(1);
  });

  it("malformed keywords are ignored, the rest still counts", async () => {
    const check = await compile(
      {
        type: "object",
        required: true,
        properties: { a: { type: "any" }, b: { type: "string", minLength: -1 }, c: null },
      },
      validator,
    );
    expect(check({ a: 1, b: "", c: 2 })).toEqual([]);
    expect(check({ b: 1 })).toHaveLength(1);
  });

  it("names of the prototype are no properties", async () => {
    const check = await compile({ type: "object", required: ["constructor", "toString"] }, validator);
    expect(check({})).toHaveLength(2);
    expect(check({ constructor: 1, toString: 2 })).toEqual([]);
  });

  it("a schema that leads back to itself without end accepts, and ends", async () => {
    const check = await compile({ type: "object", allOf: [{ $ref: "#" }] }, validator);
    expect(check({ a: 1 })).toEqual([]);
  });

  it("$async does not turn the check into a promise", async () => {
    const check = await compile({ $async: true, type: "object", required: ["a"] }, validator);
    expect(check({})).toHaveLength(1);
  });

  it("hostile schemas compile or are refused, and check a value", async () => {
    for (const schema of Object.values(hostile)) {
      const check = await compile(schema, validator);
      expect(Array.isArray(check({ a: {} }))).toBe(true);
    }
  });

  it("property: any JSON as a schema gives a check that answers", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.dictionary(fc.constantFrom("type", "properties", "items", "anyOf", "enum", "$ref", "x"), anyJson),
        anyJson,
        async (schema, value) => {
          expect(Array.isArray((await compile(schema, validator))(value))).toBe(true);
        },
      ),
      { numRuns: 100 },
    );
  });

  it("keeps no schema that its owner let go of", async () => {
    const alive = await survivors(50, async (index) => {
      const values = [{ index }];
      (await compile({ type: "object", properties: { [`p${index}`]: { enum: values } } }, validator))({});
      return values;
    });
    // Some runtimes look at the stack without knowing which of its words are pointers.
    expect(alive).toBeLessThan(10);
  });

  it("one check per schema object", async () => {
    const schema = { type: "object" };
    expect(await compile(schema, validator)).toBe(await compile(schema, validator));
  });
});

describe("issues are words a model can act on", () => {
  const schema = {
    type: "object",
    properties: {
      owner: { type: "string" },
      state: { enum: ["open", "closed"] },
      page: { type: "integer", minimum: 1 },
      tags: { type: "array", items: { type: "string" } },
      target: {
        anyOf: [
          {
            type: "object",
            properties: { kind: { const: "user" }, id: { type: "integer" } },
            required: ["kind", "id"],
          },
          {
            type: "object",
            properties: { kind: { const: "team" }, slug: { type: "string" } },
            required: ["kind", "slug"],
          },
          { type: "null" },
        ],
      },
      size: { oneOf: [{ type: "integer" }, { type: "number" }] },
    },
    required: ["owner"],
    additionalProperties: false,
  };
  it.each<[string, unknown, string, RegExp]>([
    ["missing", {}, "", /required property "owner" is missing/],
    ["type", { owner: 1 }, "/owner", /must be string, but is integer/],
    ["enum", { owner: "a", state: "x" }, "/state", /must be one of "open", "closed"/],
    ["minimum", { owner: "a", page: 0 }, "/page", />= 1/],
    ["in a list", { owner: "a", tags: ["x", null] }, "/tags/1", /must be string, but is null/],
    ["unknown", { owner: "a", ownr: 1 }, "", /unknown property "ownr"; known are "owner", "state"/],
    [
      "the branch that was meant",
      { owner: "a", target: { kind: "team" } },
      "/target",
      /required property "slug" is missing/,
    ],
    [
      "no branch",
      { owner: "a", target: 5 },
      "/target",
      /must fit one of: object with "kind", "id" \| object with "kind", "slug" \| null/,
    ],
    ["two branches", { owner: "a", size: 1 }, "/size", /several/],
  ])("%s", async (_, value, pointer, message) => {
    const issues = (await compile(schema))(value);
    expect(issues).toEqual([{ pointer, message: expect.stringMatching(message) }]);
  });

  it("the interpreter names the place and the fault too", async () => {
    const check = await compile(
      schema,
      makeSchemaValidator(() => false),
    );
    expect(check({ owner: 1 })).toEqual([{ pointer: "/owner", message: expect.stringMatching(/string/) }]);
    expect(check({})).toEqual([{ pointer: "", message: expect.stringMatching(/required property "owner"/) }]);
    expect(check({ owner: "a", x: 1 })).toEqual([{ pointer: "/x", message: "is not allowed" }]);
  });

  it("the list is short, whatever is wrong", async () => {
    const check = await compile({ type: "object", properties: { l: { type: "array", items: { type: "string" } } } });
    const issues = check({ l: Array.from({ length: 1000 }, (_, i) => i) });
    expect(issues.length).toBeLessThanOrEqual(20);
  });
});

describe("cost and platform", () => {
  it("checking a small argument object costs well below 5 µs", async () => {
    const check = await compile({
      type: "object",
      properties: {
        owner: { type: "string" },
        page: { type: "integer" },
        labels: { type: "array", items: { type: "string" } },
      },
      required: ["owner"],
      additionalProperties: false,
    });
    const value = { owner: "a", page: 1, labels: ["x", "y"] };
    const round = (): number => {
      const started = performance.now();
      for (let i = 0; i < 10_000; i++) check(value);
      return ((performance.now() - started) / 10_000) * 1000;
    };
    expect(Math.min(...Array.from({ length: 10 }, round))).toBeLessThan(2);
  });

  it("where code generation is forbidden the interpreter takes over", () => {
    const module = fileURLToPath(new URL("../../../src/plugins/schemas/validator.ts", import.meta.url));
    const program = `
      const { schemaValidator } = await import(${JSON.stringify(module)});
      const check = await schemaValidator.compile({ type: "object", required: ["a"] });
      console.log(JSON.stringify([check({ a: 1 }).length, check({}).length]));`;
    const flags = ["--disallow-code-generation-from-strings", "--input-type=module", "-e", program];
    expect(execFileSync(nodeBinary, flags, { encoding: "utf8" }).trim()).toBe("[0,1]");
  });
});
