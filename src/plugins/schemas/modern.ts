/**
 * Pure: any JSON Schema as a well-formed one of draft 2020-12. Older drafts and OpenAPI
 * are told by their forms, since each has forms of its own; what no draft can read goes.
 */
import type { JsonSchema } from "../../core/contracts.ts";
import { isObject, isSubschema, mapSubschemas, own, type Subschema } from "./references/keywords.ts";

const types: ReadonlySet<unknown> = new Set(["null", "boolean", "object", "array", "number", "integer", "string"]);

/** True when the text is a regular expression as JSON Schema means it (ECMA-262 with the u flag). */
export const isPattern = (pattern: string): boolean => {
  try {
    return new RegExp(pattern, "u") instanceof RegExp;
  } catch {
    return false;
  }
};

/** Lookaround, references to groups and named groups: providers refuse them, or read them differently. */
export const intricatePattern: RegExp = /\(\?(?!:)|\\[1-9kpP]/;

/** Answers the readable part of a keyword's value; undefined when there is none. */
type Read = (value: unknown) => unknown;

const when =
  (fits: (value: any) => boolean): Read =>
  (value) =>
    fits(value) ? value : undefined;
const text = when((value) => typeof value === "string");
const flag = when((value) => typeof value === "boolean");
const number = when(Number.isFinite);
const count = when((value) => Number.isInteger(value) && value >= 0);
const list = when(Array.isArray);
const schema = when(isSubschema);
const names = (value: unknown): unknown =>
  Array.isArray(value) ? [...new Set(value.filter((name) => typeof name === "string"))] : undefined;
const schemas: Read = (value) => {
  const readable = Array.isArray(value) ? value.filter(isSubschema) : [];
  return readable.length > 0 ? readable : undefined;
};
const entries =
  (read: Read, readName: (name: string) => string = (name) => name): Read =>
  (value) => {
    if (!isObject(value)) return undefined;
    const kept = Object.entries(value).map(([name, member]) => [readName(name), read(member)] as const);
    return Object.fromEntries(kept.filter(([, member]) => member !== undefined));
  };

const readers: Readonly<Record<string, Read>> = {
  type: (value) => {
    const known = [...new Set([value].flat())].filter((name) => types.has(name));
    return known.length > 1 ? known : known[0];
  },
  enum: list,
  pattern: when((value) => typeof value === "string" && isPattern(value)),
  format: text,
  title: text,
  description: text,
  contentEncoding: text,
  contentMediaType: text,
  $ref: text,
  deprecated: flag,
  readOnly: flag,
  writeOnly: flag,
  uniqueItems: flag,
  examples: list,
  multipleOf: when((value) => Number.isFinite(value) && value > 0),
  minimum: number,
  maximum: number,
  exclusiveMinimum: number,
  exclusiveMaximum: number,
  minLength: count,
  maxLength: count,
  minItems: count,
  maxItems: count,
  minContains: count,
  maxContains: count,
  minProperties: count,
  maxProperties: count,
  required: names,
  dependentRequired: entries(names),
  properties: entries(schema),
  $defs: entries(schema),
  dependentSchemas: entries(schema),
  // A name pattern nobody can read may stand for any name.
  patternProperties: entries(schema, (name) => (isPattern(name) ? name : "")),
  allOf: schemas,
  anyOf: schemas,
  oneOf: schemas,
  prefixItems: schemas,
  ...Object.fromEntries(
    [
      "items",
      "contains",
      "additionalProperties",
      "propertyNames",
      "unevaluatedItems",
      "unevaluatedProperties",
      "not",
      "if",
      "then",
      "else",
      "contentSchema",
    ].map((key) => [key, schema]),
  ),
};

/** Keywords of older drafts, and one that would change how a validator runs. */
const replaced: ReadonlySet<string> = new Set([
  "$async",
  "additionalItems",
  "definitions",
  "dependencies",
  "id",
  "nullable",
]);

/** Draft 4: a flag that makes the limit beside it exclusive. */
const readLimit = (given: JsonSchema, out: Record<string, unknown>, limit: string, exclusive: string): void => {
  if (own(given, exclusive) !== true || typeof out[limit] !== "number") return;
  out[exclusive] = out[limit];
  delete out[limit];
};

/** Up to 2019-09: a list of `items`, and `additionalItems` for what comes after. */
const readItems = (given: JsonSchema, out: Record<string, unknown>): void => {
  const items = own(given, "items");
  if (!Array.isArray(items)) return;
  const prefix = schemas(items);
  if (prefix !== undefined) out["prefixItems"] = prefix;
  const rest = own(given, "additionalItems");
  if (isSubschema(rest)) out["items"] = rest;
};

/** Up to draft 7: one keyword for required names and for schemas. */
const readDependencies = (given: JsonSchema, out: Record<string, unknown>): void => {
  const dependencies = own(given, "dependencies");
  if (!isObject(dependencies)) return;
  const requirements = Object.entries(dependencies).filter(([, value]) => Array.isArray(value));
  const further = Object.entries(dependencies).filter(([, value]) => isSubschema(value));
  if (requirements.length > 0) {
    out["dependentRequired"] = { ...Object.fromEntries(requirements), ...(out["dependentRequired"] as object) };
  }
  if (further.length > 0) {
    out["dependentSchemas"] = { ...Object.fromEntries(further), ...(out["dependentSchemas"] as object) };
  }
};

/** OpenAPI 3.0: a flag that admits null. */
const readNullable = (given: JsonSchema, out: Record<string, unknown>): void => {
  if (own(given, "nullable") !== true) return;
  if (out["type"] !== undefined) out["type"] = [...new Set([out["type"], "null"].flat())];
  if (Array.isArray(out["enum"]) && !out["enum"].includes(null)) out["enum"] = [...out["enum"], null];
  for (const union of ["anyOf", "oneOf"]) {
    if (Array.isArray(out[union])) out[union] = [...out[union], { type: "null" }];
  }
};

const read = (given: JsonSchema): JsonSchema => {
  const kept = Object.entries(given)
    .filter(([key]) => !replaced.has(key))
    .map(([key, value]) => [key, Object.hasOwn(readers, key) ? readers[key]!(value) : value] as const)
    .filter(([, value]) => value !== undefined);
  const out: Record<string, unknown> = Object.fromEntries(kept);
  readLimit(given, out, "minimum", "exclusiveMinimum");
  readLimit(given, out, "maximum", "exclusiveMaximum");
  readItems(given, out);
  readDependencies(given, out);
  readNullable(given, out);
  if (Array.isArray(out["enum"]) && out["enum"].length === 0) {
    delete out["enum"];
    out["allOf"] = [...((out["allOf"] as Array<unknown>) ?? []), false];
  }
  return out;
};

/** Draft 2020-12 in every form; the input is not altered. Expects references to be inlined or under `$defs`. */
export const toModern = (given: JsonSchema): JsonSchema => {
  const deep = (member: Subschema): Subschema => (isObject(member) ? read(mapSubschemas(member, deep)) : member);
  return read(mapSubschemas(given, deep));
};
