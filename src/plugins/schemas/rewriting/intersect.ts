/** Pure: one schema that says what two say together. Both are modern and single: no unions, no references. */
import type { JsonSchema } from "../../../core/contracts.ts";
import { isObject, own, type Subschema } from "../references/keywords.ts";

/** Told what could not be said in one schema, so that it is not lost without a word. */
export type Lose = (keyword: string, value: unknown) => void;

/** JSON Schema types of a schema; undefined when it does not say. */
export const typesOf = (schema: JsonSchema): ReadonlyArray<string> | undefined => {
  const type = own(schema, "type");
  return type === undefined ? undefined : ([type].flat() as Array<string>);
};

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

const commonTypes = (a: ReadonlyArray<string>, b: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(
    a.flatMap((type) => {
      if (b.includes(type)) return [type];
      if (type === "number" && b.includes("integer")) return ["integer"];
      return type === "integer" && b.includes("number") ? ["integer"] : [];
    }),
  ),
];

const largest: ReadonlySet<string> = new Set([
  "minimum",
  "exclusiveMinimum",
  "minLength",
  "minItems",
  "minContains",
  "minProperties",
]);
const smallest: ReadonlySet<string> = new Set([
  "maximum",
  "exclusiveMaximum",
  "maxLength",
  "maxItems",
  "maxContains",
  "maxProperties",
]);
/** Merged together, not one by one. */
const structural: ReadonlySet<string> = new Set(["type", "properties", "additionalProperties"]);
const schemas: ReadonlySet<string> = new Set(["items", "propertyNames", "contains"]);
const never: Subschema = false;

/** Both at once for subschemas; `allOf` is left to whoever reads them. */
export const both = (a: Subschema, b: Subschema): Subschema => {
  if (a === true || b === false || same(a, b)) return b;
  if (b === true || a === false) return a;
  if (isObject(a) && Object.keys(a).length === 0) return b;
  if (isObject(b) && Object.keys(b).length === 0) return a;
  return { allOf: [a, b] };
};

const record = (schema: JsonSchema, key: string): Readonly<Record<string, Subschema>> =>
  (own(schema, key) ?? {}) as Readonly<Record<string, Subschema>>;

const furtherOf = (schema: JsonSchema): Subschema => (own(schema, "additionalProperties") ?? true) as Subschema;

/** What a schema says of a property by name. A pattern may speak of it too; then only the pattern does. */
const propertyOf = (schema: JsonSchema, name: string): Subschema => {
  const properties = record(schema, "properties");
  if (Object.hasOwn(properties, name)) return properties[name]!;
  const patterns = Object.entries(record(schema, "patternProperties"));
  const hit = patterns.find(([pattern]) => new RegExp(pattern, "u").test(name));
  return hit ? hit[1] : furtherOf(schema);
};

const mergeObjects = (a: JsonSchema, b: JsonSchema): Record<string, unknown> => {
  const names = new Set([...Object.keys(record(a, "properties")), ...Object.keys(record(b, "properties"))]);
  const merged: Record<string, unknown> = {};
  if (names.size > 0) {
    const members = [...names].map((name) => [name, both(propertyOf(a, name), propertyOf(b, name))] as const);
    // A property that may never be there is better not shown.
    merged["properties"] = Object.fromEntries(members.filter(([, member]) => member !== never));
  }
  const further = both(furtherOf(a), furtherOf(b));
  if (further !== true) merged["additionalProperties"] = further;
  return merged;
};

const mergeKeyword = (key: string, a: unknown, b: unknown, lose: Lose): unknown => {
  if (same(a, b)) return a;
  if (largest.has(key)) return Math.max(a as number, b as number);
  if (smallest.has(key)) return Math.min(a as number, b as number);
  if (schemas.has(key)) return both(a as Subschema, b as Subschema);
  if (key === "required") return [...new Set([...(a as Array<string>), ...(b as Array<string>)])];
  if (key === "uniqueItems") return a === true || b === true;
  if (key === "enum") {
    const others = new Set((b as Array<unknown>).map((value) => JSON.stringify(value)));
    return (a as Array<unknown>).filter((value) => others.has(JSON.stringify(value)));
  }
  if (key === "prefixItems") {
    const [x, y] = [a as Array<Subschema>, b as Array<Subschema>];
    return Array.from({ length: Math.max(x.length, y.length) }, (_, i) => both(x[i] ?? true, y[i] ?? true));
  }
  if (["title", "description", "default", "examples"].includes(key)) return a;
  lose(key, b);
  return a;
};

/** `const` as a list of one value. */
export const fixedAsList = (schema: JsonSchema): JsonSchema => {
  if (!Object.hasOwn(schema, "const")) return schema;
  const { const: value, ...rest } = schema;
  const given = own(schema, "enum");
  if (Array.isArray(given) && !given.some((other) => same(other, value))) return { ...rest, enum: [] };
  return { ...rest, enum: [value] };
};

/** Undefined when nothing can fit both. */
export const intersect = (one: JsonSchema, other: JsonSchema, lose: Lose): JsonSchema | undefined => {
  const [a, b] = [fixedAsList(one), fixedAsList(other)];
  const out: Record<string, unknown> = {};
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (structural.has(key)) continue;
    const [x, y] = [own(a, key), own(b, key)];
    out[key] = x === undefined ? y : y === undefined ? x : mergeKeyword(key, x, y, lose);
  }
  const [typesA, typesB] = [typesOf(a), typesOf(b)];
  const types = typesA && typesB ? commonTypes(typesA, typesB) : (typesA ?? typesB);
  if (types?.length === 0) return undefined;
  if (types) out["type"] = types.length === 1 ? types[0] : types;
  if (Array.isArray(out["enum"]) && out["enum"].length === 0) return undefined;
  return { ...out, ...mergeObjects(a, b) };
};
