/** Schemas made to hurt, by what they are. */

const times = <A>(count: number, make: (index: number) => A): Array<A> =>
  Array.from({ length: count }, (_, i) => make(i));

const chain = (levels: number, step: (next: string) => unknown, end: unknown): Record<string, unknown> => ({
  type: "object",
  properties: { a: { $ref: "#/$defs/d0" } },
  $defs: Object.fromEntries(times(levels, (i) => [`d${i}`, i < levels - 1 ? step(`#/$defs/d${i + 1}`) : end])),
});

const nest = (levels: number, inner: unknown, wrap: (inner: unknown) => unknown): unknown => {
  let value = inner;
  for (let i = 0; i < levels; i++) value = wrap(value);
  return value;
};

export const hostile: Record<string, Record<string, unknown>> = {
  "diamond of 30 levels": chain(30, ($ref) => ({ type: "object", properties: { l: { $ref }, r: { $ref } } }), {
    type: "string",
  }),
  "3,000 references to one definition of 10 KB": {
    type: "object",
    properties: Object.fromEntries(times(3000, (i) => [`p${i}`, { $ref: "#/$defs/x" }])),
    $defs: { x: { type: "object", description: "y".repeat(10_000) } },
  },
  "10,000 levels of objects": nest(10_000, { type: "string" }, (a) => ({
    type: "object",
    properties: { a },
  })) as Record<string, unknown>,
  "10,000 levels of unions": {
    type: "object",
    properties: { a: nest(10_000, { type: "string" }, (a) => ({ anyOf: [a, { type: "null" }] })) },
  },
  "10,000 levels of data": { type: "object", properties: { a: { const: nest(10_000, "x", (a) => [a]) } } },
  "chain of 2,000 definitions": chain(2000, ($ref) => ({ type: "object", properties: { n: { $ref } } }), {
    type: "string",
  }),
  "chain of 5,000 bare references": chain(5000, ($ref) => ({ $ref }), { type: "string" }),
  "root that refers to itself": { $ref: "#" },
  "properties that refer to the root": { type: "object", properties: { a: { $ref: "#" }, b: { $ref: "#" } } },
  "ring of bare references": {
    type: "object",
    properties: { a: { $ref: "#/$defs/x" } },
    $defs: { x: { $ref: "#/$defs/y" }, y: { $ref: "#/$defs/x" } },
  },
  "keys of the prototype": JSON.parse(
    `{"type":"object","required":["__proto__"],"properties":{"__proto__":{"$ref":"#/$defs/__proto__"},
      "constructor":{"type":"string"},"toString":{"$ref":"#/$defs/x/properties/__proto__"}},
      "$defs":{"__proto__":{"type":"number"},"x":{"properties":{}}}}`,
  ),
  "recursive definition named __proto__": JSON.parse(
    `{"type":"object","properties":{"a":{"$ref":"#/$defs/__proto__"}},
      "$defs":{"__proto__":{"type":"object","properties":{"__proto__":{"$ref":"#/$defs/__proto__"}}}}}`,
  ),
  "1 MB enum": { type: "object", properties: { e: { enum: times(80_000, (i) => `value${i}`) } } },
};
