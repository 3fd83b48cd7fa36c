/** Pure: where a JSON Schema holds further schemas, for all drafts at once. */
import type { JsonSchema } from "../../../core/contracts.ts";

/** A schema is an object or a boolean (2020-12 core, section 4.3). */
export type Subschema = JsonSchema | boolean;

export const isObject = (value: unknown): value is JsonSchema =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export const isSubschema = (value: unknown): value is Subschema => isObject(value) || typeof value === "boolean";

/** An own property; never one of the prototype, whatever a schema calls its properties. */
export const own = (object: JsonSchema, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);

/** Keywords whose value is one schema. */
const single: ReadonlySet<string> = new Set([
  "additionalItems",
  "additionalProperties",
  "contains",
  "contentSchema",
  "else",
  "if",
  "items",
  "not",
  "propertyNames",
  "then",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/** Keywords whose value is a list of schemas; `items` was one up to 2019-09. */
const list: ReadonlySet<string> = new Set(["allOf", "anyOf", "items", "oneOf", "prefixItems"]);

/** Keywords whose value maps names to schemas. */
const map: ReadonlySet<string> = new Set([
  "$defs",
  "definitions",
  "dependencies",
  "dependentSchemas",
  "patternProperties",
  "properties",
]);

const change = (value: unknown, into: (schema: Subschema) => unknown): unknown =>
  isSubschema(value) ? into(value) : value;

const mapKeyword = (key: string, value: unknown, into: (schema: Subschema) => unknown): unknown => {
  if (single.has(key) && isSubschema(value)) return into(value);
  if (list.has(key) && Array.isArray(value)) return value.map((member) => change(member, into));
  if (map.has(key) && isObject(value)) {
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, change(member, into)]));
  }
  return value;
};

/** True when the keyword's value holds schemas; all others hold plain data. */
export const holdsSchemas = (key: string, value: unknown): boolean =>
  (single.has(key) && isSubschema(value)) ||
  (list.has(key) && Array.isArray(value)) ||
  (map.has(key) && isObject(value));

/** A copy of the schema with each direct subschema replaced; `omit` names keywords left out. */
export const mapSubschemas = (
  schema: JsonSchema,
  into: (schema: Subschema) => unknown,
  omit?: ReadonlySet<string>,
): JsonSchema => {
  const entries: Array<[string, unknown]> = [];
  for (const [key, value] of Object.entries(schema)) {
    if (!omit?.has(key)) entries.push([key, mapKeyword(key, value, into)]);
  }
  // fromEntries defines properties, so a key "__proto__" stays a plain key.
  return Object.fromEntries(entries);
};

/** Calls `visit` for each direct subschema. */
export const eachSubschema = (schema: JsonSchema, visit: (schema: Subschema) => void): void => {
  for (const key of Object.keys(schema)) {
    const value = schema[key];
    if (!holdsSchemas(key, value)) continue;
    if (single.has(key) && isSubschema(value)) visit(value);
    else for (const member of Object.values(value as object)) if (isSubschema(member)) visit(member);
  }
};
