import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import type { ArgumentIssue } from "../../src/core/errors.ts";
import { exposedProperty } from "../../src/core/property-name.ts";
import { restoreArguments } from "../../src/core/restore-arguments.ts";
import { schemaValidator } from "../../src/plugins/schemas/validator.ts";

const restore = async (schema: Record<string, unknown>, args: Record<string, unknown>) => {
  const check = (await schemaValidator.compile(schema)) as (value: unknown) => ReadonlyArray<ArgumentIssue>;
  const before = JSON.stringify(args);
  const restored = restoreArguments(args, schema, check);
  expect(JSON.stringify(args)).toBe(before);
  return restored;
};

const schema = {
  type: "object",
  properties: {
    owner: { type: "string" },
    page: { type: "integer" },
    note: { type: ["string", "null"] },
    labels: {
      type: "array",
      items: { type: "object", properties: { name: { type: "string" }, color: { type: "string" } } },
    },
    filter: { type: "object", additionalProperties: { type: "number" } },
    target: {
      oneOf: [
        {
          type: "object",
          properties: { kind: { const: "user" }, id: { type: "integer" } },
          required: ["kind"],
          additionalProperties: false,
        },
        {
          type: "object",
          properties: { kind: { const: "team" }, id: { type: "string" } },
          required: ["kind"],
          additionalProperties: false,
        },
      ],
    },
    "StartTime<": { type: "string" },
  },
  required: ["owner"],
};

describe("arguments of a provider's form become the tool's", () => {
  it("null goes where the schema refuses it, and stays where it means something", async () => {
    const given = { owner: "a", page: null, note: null, labels: [{ name: "x", color: null }] };
    expect(await restore(schema, given)).toEqual({
      arguments: { owner: "a", note: null, labels: [{ name: "x" }] },
      issues: [],
    });
  });

  it("null goes from inside the branch of a union that was meant", async () => {
    const { arguments: args, issues } = await restore(schema, { owner: "a", target: { kind: "team", id: null } });
    expect(issues).toEqual([]);
    expect(args).toEqual({ owner: "a", target: { kind: "team" } });
  });

  it("JSON text is read where text is refused, and stays where it is not", async () => {
    const given = { owner: '{"a":1}', page: "3", filter: '{"a":1}' };
    expect((await restore(schema, given)).arguments).toEqual({ owner: '{"a":1}', page: 3, filter: { a: 1 } });
  });

  it("an exposed parameter name becomes the tool's own", async () => {
    const given = { owner: "a", [exposedProperty("StartTime<")]: "now" };
    expect((await restore(schema, given)).arguments).toEqual({ owner: "a", "StartTime<": "now" });
  });

  it("what cannot be mended is answered as it was given, with what is wrong beyond mending", async () => {
    const given = { owner: "a", page: "three", note: null, filter: null };
    const restored = await restore(schema, given);
    expect(restored.arguments).toBe(given);
    expect(restored.issues.map(({ pointer }) => pointer)).toEqual(["/page"]);
  });

  it("a required null is an issue, not an omission", async () => {
    expect((await restore(schema, { owner: null })).issues).toEqual([
      { pointer: "", message: 'required property "owner" is missing' },
    ]);
  });

  it("hundreds of nulls are mended too", async () => {
    const labels = Array.from({ length: 150 }, () => ({ name: "x", color: null }));
    expect((await restore(schema, { owner: "a", labels })).issues).toEqual([]);
  });

  it("keys of the prototype are plain keys", async () => {
    const given = JSON.parse('{"owner":"a","__proto__":null,"page":null}');
    const { arguments: args } = await restore(schema, given);
    expect(Object.keys(args)).toEqual(["owner", "__proto__"]);
  });

  it("property: what fits is never changed", async () => {
    const check = (await schemaValidator.compile(schema)) as (value: unknown) => ReadonlyArray<ArgumentIssue>;
    const fitting = fc.record(
      {
        owner: fc.string(),
        page: fc.integer(),
        note: fc.option(fc.string()),
        filter: fc.dictionary(fc.string(), fc.integer()),
      },
      { requiredKeys: ["owner"] },
    );
    fc.assert(
      fc.property(fitting, (args) => {
        expect(restoreArguments(args, schema, check).arguments).toBe(args);
      }),
    );
  });
});

describe("exposed parameter names", () => {
  it("property: legal for every provider, the name itself where it is, different for different names", () => {
    const name = fc.oneof(fc.string(), fc.stringMatching(/^[a-z]{1,3}[<>.$ -]?$/), fc.constant("x".repeat(80)));
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(exposedProperty(a)).toMatch(/^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/);
        if (/^[a-zA-Z_]\w{0,63}$/.test(a)) expect(exposedProperty(a)).toBe(a);
        expect(exposedProperty(a) === exposedProperty(b)).toBe(a === b);
      }),
    );
  });
});
