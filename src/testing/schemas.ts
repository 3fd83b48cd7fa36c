/** The contracts of `SchemaNormalizer` and `SchemaValidator`. */
import type { JsonSchema, SchemaNormalizer, SchemaValidator } from "../core/contracts.ts";
import { SchemaRejected } from "../core/errors.ts";
import { answerOf, ContractBreach, type ContractSuite, demand, demandSame, frozen } from "./contract-case.ts";

export interface SchemaNormalizerContractOptions {
  readonly normalizer: SchemaNormalizer;
  /** What the provider would refuse in a schema that came out; an empty list is good. */
  readonly accepts?: (schema: unknown) => ReadonlyArray<unknown>;
  /** Further schemas that have to come out, for example recorded ones. */
  readonly schemas?: ReadonlyArray<JsonSchema>;
}

const good: ReadonlyArray<JsonSchema> = [
  { type: "object" },
  { type: "object", properties: {} },
  { type: "object", properties: { path: { type: "string", description: "a path" } }, required: ["path"] },
  {
    type: "object",
    properties: { n: { type: ["integer", "null"] }, tags: { type: "array", items: { type: "string" } } },
  },
  {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
    properties: { at: { $ref: "#/$defs/point" }, mode: { enum: ["a", "b"] } },
    $defs: { point: { type: "object", properties: { x: { type: "number" } } } },
  },
  { type: "object", properties: { tree: { $ref: "#/$defs/node" } }, $defs: { node: recursive() } },
];

function recursive(): JsonSchema {
  return { type: "object", properties: { next: { $ref: "#/$defs/node" } } };
}

const nested = (levels: number): JsonSchema => {
  let schema: JsonSchema = { type: "string" };
  for (let i = 0; i < levels; i++) schema = { type: "object", properties: { a: schema } };
  return schema;
};

const hostile: Readonly<Record<string, unknown>> = {
  undefined: undefined,
  null: null,
  "a number": 7,
  "a string schema": { type: "string" },
  "a root that refers to itself": { $ref: "#" },
  "a reference to nowhere": { type: "object", properties: { a: { $ref: "#/$defs/none" } } },
  "a reference to another host": { type: "object", properties: { a: { $ref: "https://example.com/s.json" } } },
  "1,000 levels": nested(1000),
  "keys of the prototype": JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'),
  "keywords with values of wrong types": { type: "object", properties: { a: { type: 5, enum: "x", items: 3 } } },
};

/** Cases every schema normalizer has to pass. */
export const schemaNormalizerContract = (options: SchemaNormalizerContractOptions): ContractSuite => {
  const { normalizer, accepts = () => [] } = options;
  const tool = { name: "contract" };
  const every = [...good, ...(options.schemas ?? [])];

  const check = (schema: unknown): void => {
    const { schema: out, diagnostics, note } = normalizer.normalize(schema, tool);
    const text = JSON.stringify(out);
    demand(typeof out === "object" && out !== null && !Array.isArray(out), "the schema is no object");
    demandSame(
      "diagnostics that are no text",
      diagnostics.filter((line) => typeof line !== "string"),
      [],
    );
    demand(note === undefined || typeof note === "string", "the note is no text");
    demandSame("what the provider would refuse", accepts(out), []);
    demandSame("a second time", JSON.stringify(normalizer.normalize(schema, tool).schema), text);
  };

  return [
    {
      name: "has a name",
      run: async () => demand(typeof normalizer.name === "string" && normalizer.name !== "", "the name is empty"),
    },
    {
      name: "is pure: the same schema comes out each time, and what went in is unchanged",
      run: async () => {
        for (const schema of every) check(frozen(structuredClone(schema)));
      },
    },
    {
      name: "keeps the properties of a plain schema, and what is required",
      run: async () => {
        const { schema } = normalizer.normalize(good[2], tool);
        demandSame("properties", Object.keys((schema["properties"] ?? {}) as object), ["path"]);
        demandSame("required", schema["required"], ["path"]);
      },
    },
    ...Object.entries(hostile).map(([what, schema]) => ({
      name: `takes ${what}, or refuses it with SchemaRejected`,
      run: async () => {
        try {
          check(frozen(schema));
        } catch (cause) {
          if (!(cause instanceof SchemaRejected)) throw cause;
          demandSame("tool of the error", cause.tool, tool.name);
        }
      },
    })),
  ];
};

export interface SchemaValidatorContractOptions {
  readonly validator: SchemaValidator;
}

const person: JsonSchema = {
  type: "object",
  properties: { name: { type: "string", minLength: 1 }, tags: { type: "array", items: { enum: ["a/b", "c"] } } },
  required: ["name"],
  additionalProperties: false,
};

/** Value, and the pointers of its issues. */
const verdicts: ReadonlyArray<readonly [value: unknown, pointers: ReadonlyArray<string>]> = [
  [{ name: "Ada" }, []],
  [{ name: "Ada", tags: ["a/b", "c"] }, []],
  [{ name: "" }, ["/name"]],
  [{ name: 5 }, ["/name"]],
  [{ name: "Ada", tags: ["c", "d"] }, ["/tags/1"]],
];

const senseless: ReadonlyArray<JsonSchema> = [
  { type: "no-such-type" },
  { properties: { a: { type: 5 } } },
  { properties: { a: { pattern: "(" } } },
  { $ref: "#/$defs/none" },
  { $ref: "#" },
  { required: "a", enum: 5 },
];

/** Cases every schema validator has to pass. */
export const schemaValidatorContract = ({ validator }: SchemaValidatorContractOptions): ContractSuite => {
  const compile = (schema: JsonSchema) => answerOf("compile", () => validator.compile(schema));
  return [
    {
      name: "says where a value breaks its schema, by JSON Pointer, and why",
      run: async () => {
        const check = await compile(person);
        for (const [value, pointers] of verdicts) {
          const issues = check(frozen(value));
          demandSame(
            `pointers of ${JSON.stringify(value)}`,
            issues.map(({ pointer }) => pointer),
            pointers,
          );
          for (const { message } of issues)
            demand(typeof message === "string" && message !== "", "an issue says nothing");
        }
      },
    },
    {
      name: "refuses values with missing and with unknown properties",
      run: async () => {
        const check = await compile(person);
        demand(check({}).length > 0, "a missing property passes");
        demand(check({ name: "Ada", age: 5 }).length > 0, "an unknown property passes");
        for (const value of [null, "x", 5, []]) demand(check(value).length > 0, `${String(value)} passes`);
      },
    },
    {
      name: "escapes names in pointers (RFC 6901)",
      run: async () => {
        const check = await compile({ properties: { "a/b~c": { type: "string" } } });
        demandSame("pointer", check({ "a/b~c": 1 })[0]?.pointer, "/a~1b~0c");
      },
    },
    {
      name: "keeps checks apart: a second schema changes nothing for the first",
      run: async () => {
        const texts = await compile({ $id: "https://example.com/same", type: "string" });
        const numbers = await compile({ $id: "https://example.com/same", type: "number" });
        demandSame("issues", [texts("x").length, numbers(1).length], [0, 0]);
        demand(texts(1).length > 0 && numbers("x").length > 0, "the two schemas are confused");
      },
    },
    {
      name: "changes neither schema nor value",
      run: async () => {
        const check = await compile(frozen({ properties: { a: { type: "integer", default: 5 } } }));
        demandSame("issues", check(frozen({})), []);
      },
    },
    {
      name: "refuses to compile a schema that makes no sense, or checks by it without a throw",
      run: async () => {
        for (const schema of senseless) {
          const check = await compile(schema).catch((cause: unknown) => {
            if (cause instanceof ContractBreach) throw cause;
          });
          if (check) demand(Array.isArray(check({ a: 1 })), `no list of issues for ${JSON.stringify(schema)}`);
        }
      },
    },
  ];
};
