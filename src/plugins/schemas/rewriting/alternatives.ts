/**
 * Pure: a schema as a list of alternatives, each of one type and without unions. Providers
 * that know few keywords can be served from this form alone.
 */
import type { JsonSchema } from "../../../core/contracts.ts";
import { isObject, own, type Subschema } from "../references/keywords.ts";
import { fixedAsList, intersect, type Lose, typesOf } from "./intersect.ts";
import { joinDescriptions } from "./notes.ts";

/** A schema with one `type`; or `{}` plus annotations for any value; or a bare `$ref`. */
export type Alternative = JsonSchema;

export interface Alternatives {
  /** Description and the like of the whole. */
  readonly annotations: JsonSchema;
  readonly list: ReadonlyArray<Alternative>;
}

export interface Reading {
  readonly $defs: Readonly<Record<string, Subschema>>;
  readonly root: JsonSchema;
  readonly lose: Lose;
  /** Steps left; a schema that needs more is read as less than it says, never for ever. */
  readonly budget: { left: number };
}

export const readingOf = (root: JsonSchema, lose: Lose): Reading => ({
  $defs: (own(root, "$defs") ?? {}) as Readonly<Record<string, Subschema>>,
  root,
  lose,
  budget: { left: 20_000 },
});

/** Unions multiply; beyond this many alternatives the further union is only told in words. */
const alternativesMax = 48;

const annotationKeys = ["title", "description", "default", "examples", "deprecated"] as const;

const byType: Readonly<Record<string, ReadonlyArray<string>>> = {
  string: ["minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"],
  number: ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"],
  array: [
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "unevaluatedItems",
  ],
  object: [
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
  ],
};
const anyType = ["not", "if", "then", "else", "enum", ...annotationKeys];

const keywordsOf = (type: string): ReadonlySet<string> =>
  new Set([...anyType, ...(byType[type === "integer" ? "number" : type] ?? [])]);

const pick = (schema: JsonSchema, keys: ReadonlySet<string>): JsonSchema =>
  Object.fromEntries(Object.entries(schema).filter(([key]) => keys.has(key)));

const typeOfValue = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return Number.isInteger(value) ? "integer" : typeof value;
};

const admits = (types: ReadonlyArray<string>, value: unknown): boolean => {
  const type = typeOfValue(value);
  return types.includes(type) || (type === "integer" && types.includes("number"));
};

/** A schema that names no type is read as being of the type its keywords speak of. */
const impliedTypes = (schema: JsonSchema): ReadonlyArray<string> =>
  Object.entries(byType).flatMap(([type, keys]) => (keys.some((key) => Object.hasOwn(schema, key)) ? [type] : []));

const fixedValues = (schema: JsonSchema): ReadonlyArray<Alternative> => {
  const types = typesOf(schema);
  const fitting = (own(schema, "enum") as Array<unknown>).filter((value) => !types || admits(types, value));
  const groups = new Map<string, Array<unknown>>();
  for (const value of fitting) {
    const exact = typeOfValue(value);
    const type = exact === "integer" && types?.includes("number") ? "number" : exact;
    const group = groups.get(type);
    if (group) group.push(value);
    else groups.set(type, [value]);
  }
  return [...groups].map(([type, values]) => ({ ...pick(schema, keywordsOf(type)), type, enum: values }));
};

const splitTypes = (given: JsonSchema): ReadonlyArray<Alternative> => {
  if (Object.hasOwn(given, "$ref")) return [given];
  const schema = fixedAsList(given);
  if (Object.hasOwn(schema, "enum")) return fixedValues(schema);
  const named = typesOf(schema) ?? impliedTypes(schema);
  const types = named.includes("number") ? named.filter((type) => type !== "integer") : named;
  if (types.length === 0) return [pick(schema, new Set(anyType))];
  return types.map((type) => ({ type, ...pick(schema, keywordsOf(type)) }));
};

export const unique = (list: ReadonlyArray<JsonSchema>): ReadonlyArray<JsonSchema> =>
  list.length < 2 ? list : [...new Map(list.map((schema) => [JSON.stringify(schema), schema])).values()];

/** The schema a reference that was kept points at. */
export const lookUp = (reference: unknown, reading: Reading): Subschema => {
  if (reference === "#") return reading.root;
  const name = String(reference).replace("#/$defs/", "");
  return Object.hasOwn(reading.$defs, name) ? reading.$defs[name]! : true;
};

const cross = (
  left: ReadonlyArray<Alternative>,
  right: ReadonlyArray<Alternative>,
  reading: Reading,
): ReadonlyArray<Alternative> => {
  if (left.length * right.length > alternativesMax) {
    reading.lose("anyOf", right);
    return left;
  }
  return unique(
    left.flatMap((a) =>
      right.flatMap((b): ReadonlyArray<Alternative> => {
        const common = intersect(a, b, reading.lose);
        return common ? [common] : [];
      }),
    ),
  );
};

/** A reference beside other constraints is looked up, once; a bare one stays. */
const open = (alternative: Alternative, reading: Reading, opened: ReadonlySet<unknown>): ReadonlyArray<Alternative> => {
  const { $ref, ...rest } = alternative;
  if ($ref === undefined || opened.has($ref)) return [rest];
  const target = flatten(lookUp($ref, reading), reading, new Set([...opened, $ref]));
  return cross([rest], target, reading);
};

const isBare = (schema: JsonSchema): boolean => Object.keys(schema).every((key) => key === "$ref");

const flatten = (schema: Subschema, reading: Reading, opened: ReadonlySet<unknown>): ReadonlyArray<Alternative> => {
  if (typeof schema === "boolean") return schema ? [{}] : [];
  if (--reading.budget.left < 0) return [{}];
  if (schema["not"] === true || JSON.stringify(schema["not"]) === "{}") return [];
  const { allOf, anyOf, oneOf, ...base } = schema;
  const single = allOf === undefined && anyOf === undefined && oneOf === undefined;
  if (single && isBare(base)) return [base];
  const members = (list: unknown): ReadonlyArray<ReadonlyArray<Alternative>> =>
    ((list ?? []) as Array<Subschema>).map((member) => flatten(member, reading, opened));
  const factors = [...members(allOf), ...[anyOf, oneOf].flatMap((union) => (union ? [members(union).flat()] : []))];
  if (factors.length === 1 && Object.keys(base).length === 0) return unique(factors[0]!);
  const opening = (list: ReadonlyArray<Alternative>): ReadonlyArray<Alternative> =>
    list.flatMap((alternative) => open(alternative, reading, opened));
  const product = factors.reduce((left, right) => cross(left, opening(right), reading), opening([base]));
  return unique(product.flatMap(splitTypes));
};

/** Alternatives of one type that are nothing but fixed values are one alternative. */
const joinValues = (list: ReadonlyArray<Alternative>): ReadonlyArray<Alternative> => {
  const pure = (alternative: Alternative): boolean =>
    Object.hasOwn(alternative, "enum") && Object.keys(alternative).every((key) => key === "type" || key === "enum");
  const types = [...new Set(list.filter(pure).map((alternative) => alternative["type"]))];
  const joined = new Map(
    types.map((type) => {
      const values = list.filter((each) => pure(each) && each["type"] === type).flatMap((each) => each["enum"]);
      return [type, { type, enum: [...new Set(values)] }];
    }),
  );
  return unique(list.map((alternative) => (pure(alternative) ? joined.get(alternative["type"])! : alternative)));
};

/** All ways in which a value can fit; an empty list when none can. */
export const alternatives = (schema: Subschema, reading: Reading): Alternatives => {
  if (!isObject(schema)) return { annotations: {}, list: flatten(schema, reading, new Set()) };
  const annotations = pick(schema, new Set(annotationKeys));
  const bare = Object.fromEntries(Object.entries(schema).filter(([key]) => !Object.hasOwn(annotations, key)));
  const list = joinValues(flatten(bare, reading, new Set()));
  const [only] = list;
  if (list.length !== 1 || !only) return { annotations, list };
  // Of one alternative the annotations are those of the whole.
  const inner = pick(only, new Set(annotationKeys));
  const description = joinDescriptions(own(annotations, "description"), own(inner, "description"));
  const rest = Object.fromEntries(Object.entries(only).filter(([key]) => !Object.hasOwn(inner, key)));
  return {
    annotations: { ...inner, ...annotations, ...(description !== undefined && { description }) },
    list: [rest],
  };
};
