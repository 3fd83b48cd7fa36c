/** OpenAI functions in strict mode (Structured Outputs). Rules and sources: docs/dialects.md. */
import type { JsonSchema } from "../../core/contracts.ts";
import { SchemaRejected } from "../../core/errors.ts";
import { commonProblems, makeReport, subschemas } from "./checking.ts";
import { makeDialect, type Problem, type SchemaDialect } from "./dialect.ts";
import { intricatePattern } from "./modern.ts";
import { isObject, own } from "./references/keywords.ts";
import type { Alternative, Reading } from "./rewriting/alternatives.ts";
import { changeAll, inOrder, shortenEnums } from "./rewriting/fit.ts";
import type { ObjectRoot } from "./rewriting/object-root.ts";
import { describePart, makeWriter, type Style } from "./rewriting/typed-writer.ts";

const formats = new Set(["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]);
const numeric = new Set(["enum", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]);
const keeps: Readonly<Record<string, ReadonlySet<string>>> = {
  string: new Set(["enum", "pattern", "format"]),
  number: numeric,
  integer: numeric,
  boolean: new Set(["enum"]),
  array: new Set(["minItems", "maxItems"]),
  object: new Set(),
};

const scalars: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean"]);
const depthMax = 10;
const propertiesMax = 5000;
const enumsMax = 1000;
const textMax = 120_000;
const longEnum = 250;
const longEnumText = 15_000;

const withNull = (part: JsonSchema): JsonSchema => {
  const values = own(part, "enum");
  return { ...part, type: [part["type"], "null"], ...(Array.isArray(values) && { enum: [...values, null] }) };
};

/** A union; null joins the type of a single scalar, and is a member otherwise. A reference stands alone. */
const join: Style["join"] = (parts, nullable, annotations) => {
  const [only] = parts;
  if (parts.length === 1 && only) {
    const bare = Object.hasOwn(only, "$ref");
    if (!nullable && !(bare && Object.keys(annotations).length > 0)) return describePart(only, annotations);
    if (nullable && scalars.has(only["type"])) return describePart(withNull(only), annotations);
  }
  if (parts.length === 0) return { type: "null", ...annotations };
  return { ...annotations, anyOf: nullable ? [...parts, { type: "null" }] : parts };
};

const style: Style = {
  keeps,
  formats: { string: formats },
  closed: true,
  expands: false,
  depthMax,
  adapt: (alternative) => alternative,
  join,
};

interface Totals {
  readonly properties: number;
  readonly enums: number;
  readonly text: number;
  readonly longEnums: boolean;
}

const textOf = (values: ReadonlyArray<unknown>): number =>
  values.reduce<number>((sum, value) => sum + String(value).length, 0);

const totalsOf = (schema: unknown): Totals => {
  const nodes = subschemas(schema).map((visited) => visited.schema);
  const names = nodes.flatMap((node) => Object.keys((own(node, "properties") ?? {}) as object));
  const definitions = nodes.flatMap((node) => Object.keys((own(node, "$defs") ?? {}) as object));
  const lists = nodes.map((node) => own(node, "enum")).filter((values) => Array.isArray(values));
  return {
    properties: names.length,
    enums: lists.flat().length,
    text: textOf(names) + textOf(definitions) + textOf(lists.flat()),
    longEnums: lists.some((values) => values.length > longEnum && textOf(values) > longEnumText),
  };
};

const isOver = ({ enums, text, longEnums }: Totals): boolean => enums > enumsMax || text > textMax || longEnums;

interface Whole {
  readonly top: JsonSchema | undefined;
  readonly $defs: ReadonlyArray<[string, JsonSchema]>;
}

/** The object and the definitions it uses. A definition that nothing can fit is known for that in a second round. */
const writeAll = (object: Alternative, reading: Reading): Whole => {
  const writer = makeWriter(style, reading);
  const top = writer.writeObject(object, 0);
  const $defs: Array<[string, JsonSchema]> = [];
  // Writing a definition may use further ones; the loop sees those too.
  for (const name of writer.used) {
    const definition = writer.write(reading.$defs[name] ?? true, 1, false);
    if (!definition) return writeAll(object, { ...reading, $defs: { ...reading.$defs, [name]: false } });
    $defs.push([name, definition]);
  }
  return { top, $defs };
};

const write = ({ object, annotations, reading }: ObjectRoot, tool: string): JsonSchema => {
  const { additionalProperties: further } = object;
  const names = [
    ...Object.keys((own(object, "properties") ?? {}) as object),
    ...((own(object, "required") ?? []) as Array<string>),
  ];
  if (names.length === 0 && isObject(further) && Object.keys(further).length > 0) {
    throw new SchemaRejected({ tool, reason: "strict mode knows no arguments with free names" });
  }
  const { top, $defs } = writeAll(object, reading);
  if (!top) throw new SchemaRejected({ tool, reason: "no arguments can ever satisfy it" });
  const { title, description } = annotations;
  const written = {
    ...describePart(top, { ...(title !== undefined && { title }), ...(description !== undefined && { description }) }),
    ...($defs.length > 0 && { $defs: Object.fromEntries($defs) }),
  };
  const longest = [1000, 250, 50, 10].find((max) => !isOver(totalsOf(changeAll(written, shortenEnums(max)))));
  return inOrder(changeAll(written, shortenEnums(longest ?? 0)));
};

const annotationKeys = ["title", "description"];

const nodeProblems = (node: JsonSchema, say: (broken: boolean, message: string) => void): void => {
  const types = [own(node, "type") ?? []].flat();
  const keys = Object.keys(node).filter((key) => !annotationKeys.includes(key) && key !== "$defs");
  if (Object.hasOwn(node, "$ref")) return say(Object.keys(node).length > 1, "nothing may stand beside $ref");
  if (Object.hasOwn(node, "anyOf")) return say(keys.length > 1, "anyOf stands without other keywords");
  say(types.length === 0, "needs a type");
  const allowed = new Set(types.flatMap((type) => [...(keeps[String(type)] ?? [])]));
  for (const key of keys) {
    const structural = ["type", "properties", "required", "additionalProperties", "items"].includes(key);
    say(!structural && !allowed.has(key), `'${key}' is not supported`);
  }
  say(
    Object.hasOwn(node, "format") && !formats.has(String(node["format"])),
    `format '${String(node["format"])}' is not supported`,
  );
  say(intricatePattern.test(String(own(node, "pattern") ?? "")), "the pattern uses lookaround or references to groups");
  say(types.includes("array") && !isObject(own(node, "items")), "a list needs items");
  if (!types.includes("object")) return;
  const names = Object.keys((own(node, "properties") ?? {}) as object);
  const required = (own(node, "required") ?? []) as Array<string>;
  say(!isObject(own(node, "properties")), "an object needs properties");
  say(own(node, "additionalProperties") !== false, "additionalProperties must be false");
  say(
    names.length !== required.length || !names.every((name) => required.includes(name)),
    "every property must be required",
  );
};

const accepts = (schema: unknown): ReadonlyArray<Problem> => {
  const { problems, say } = makeReport();
  say(isObject(schema) && Object.hasOwn(schema, "anyOf"), "/anyOf", "is not allowed at the top level");
  for (const { schema: node, pointer, depth } of subschemas(schema)) {
    nodeProblems(node, (broken, message) => say(broken, pointer, message));
    say(depth > depthMax, pointer, `nests deeper than ${depthMax} levels`);
  }
  const totals = totalsOf(schema);
  say(totals.properties > propertiesMax, "", `has more than ${propertiesMax} properties`);
  say(totals.enums > enumsMax, "", `has more than ${enumsMax} enum values`);
  say(totals.text > textMax, "", `has more than ${textMax} characters in names and values`);
  say(totals.longEnums, "", `has a list of more than ${longEnum} values with more than ${longEnumText} characters`);
  return [...commonProblems(schema), ...problems];
};

export const openaiStrict: SchemaDialect = makeDialect({
  name: "openai-strict",
  descriptionMax: 1024,
  write,
  accepts,
  stub: { type: "string" },
});
