/** Generators: any JSON, and small schemas full of references. */
import * as fc from "fast-check";

export const anyJson: fc.Arbitrary<unknown> = fc.jsonValue({ maxDepth: 3 }).map((value) =>
  // Through text, so that "__proto__" is an own key as it is on the wire.
  JSON.parse(JSON.stringify(value)),
);

const names = ["a", "b", "c", "a/b", "m~n", "per%cent"] as const;
const name = fc.constantFrom(...names);

const escape = (text: string): string => encodeURIComponent(text.replace(/~/g, "~0").replace(/\//g, "~1"));

const reference = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.tuple(fc.constantFrom("$defs", "definitions"), name).map(([c, n]) => `#/${c}/${escape(n)}`),
  },
  { weight: 1, arbitrary: name.map((n) => `#/properties/${escape(n)}`) },
  { weight: 1, arbitrary: fc.constantFrom("#", "#anchor") },
);

const leaf = fc.oneof(
  fc.constantFrom<unknown>(
    { type: "string" },
    { type: "integer" },
    { const: 1 },
    { enum: ["a", null] },
    true,
    false,
    {},
  ),
  fc.record({ type: fc.constant("string"), maxLength: fc.nat(3), description: fc.constant("text") }),
);

const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthIdentifier: "schema" },
    leaf,
    fc.record({ $ref: reference }),
    fc.record({ $ref: reference, description: fc.constant("beside") }),
    fc.record({ $ref: reference, type: fc.constantFrom("object", "string") }),
    fc.record({
      $ref: reference,
      properties: fc.dictionary(name, tie("schema"), { maxKeys: 2 }),
      unevaluatedProperties: fc.boolean(),
    }),
    fc.record({ type: fc.constant("object"), properties: fc.dictionary(name, tie("schema"), { maxKeys: 3 }) }),
    fc.record({ type: fc.constant("array"), items: tie("schema") }),
    fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 2 }) }),
  ),
}));

export const schemaWithReferences: fc.Arbitrary<Record<string, unknown>> = fc.record({
  type: fc.constant("object"),
  properties: fc.dictionary(name, schema, { minKeys: 1, maxKeys: 4 }),
  $defs: fc.record(
    Object.fromEntries(
      names.map((n) => [
        n,
        n === "a" ? schema.map((s) => (typeof s === "object" ? { ...s, $anchor: "anchor" } : s)) : schema,
      ]),
    ),
  ),
  definitions: fc.record(Object.fromEntries(names.map((n) => [n, schema]))),
}) as fc.Arbitrary<Record<string, unknown>>;
