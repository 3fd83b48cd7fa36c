/** Gemini function declarations, field `parameters` (a subset of OpenAPI 3.0). Rules and sources: docs/dialects.md. */
import type { JsonSchema } from "../../core/contracts.ts";
import { SchemaRejected } from "../../core/errors.ts";
import { commonProblems, makeReport, parameterNames, subschemas } from "./checking.ts";
import { makeDialect, type Problem, type SchemaDialect } from "./dialect.ts";
import { intricatePattern } from "./modern.ts";
import { isObject, own } from "./references/keywords.ts";
import type { Alternative } from "./rewriting/alternatives.ts";
import { inOrder } from "./rewriting/fit.ts";
import { remark, withRemarks } from "./rewriting/notes.ts";
import { exposeParameters, type ObjectRoot } from "./rewriting/object-root.ts";
import { describePart, makeWriter, type Style } from "./rewriting/typed-writer.ts";

const parameter = /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/;

const formats: Readonly<Record<string, ReadonlySet<string>>> = {
  string: new Set(["date-time"]),
  number: new Set(["float", "double"]),
  integer: new Set(["int32", "int64"]),
};
const numeric = new Set(["format", "minimum", "maximum"]);
const keeps: Readonly<Record<string, ReadonlySet<string>>> = {
  string: new Set(["enum", "pattern", "format", "minLength", "maxLength"]),
  number: numeric,
  integer: numeric,
  boolean: new Set(),
  array: new Set(["minItems", "maxItems"]),
  object: new Set(["minProperties", "maxProperties"]),
};

/** Fixed values are texts, and none is empty; others are given as JSON text, which the call reads back. */
const adaptValues = (alternative: Alternative): Alternative => {
  const values = own(alternative, "enum");
  if (!Array.isArray(values)) return alternative;
  if (alternative["type"] !== "string") {
    const { type, enum: _, description } = alternative;
    const texts = values.map((value) => JSON.stringify(value));
    return withRemarks({ type: "string", enum: texts, ...(typeof description === "string" && { description }) }, [
      `JSON text of a ${String(type)}`,
    ]);
  }
  const filled = values.filter((value) => value !== "");
  if (filled.length === values.length) return alternative;
  const { enum: _, ...rest } = alternative;
  return withRemarks({ ...rest, ...(filled.length > 0 && { enum: filled }) }, [
    remark("the empty text is allowed too", ""),
  ]);
};

/** Only limits that include their value are known. */
const adaptLimits = (alternative: Alternative): Alternative => {
  const { exclusiveMinimum: above, exclusiveMaximum: below, ...rest } = alternative;
  if (typeof above !== "number" && typeof below !== "number") return alternative;
  const whole = alternative["type"] === "integer";
  const least = typeof above === "number" ? (whole ? Math.floor(above) + 1 : above) : undefined;
  const most = typeof below === "number" ? (whole ? Math.ceil(below) - 1 : below) : undefined;
  const { minimum, maximum } = rest as { minimum?: number; maximum?: number };
  const adapted = {
    ...rest,
    ...(least !== undefined && { minimum: Math.max(least, minimum ?? least) }),
    ...(most !== undefined && { maximum: Math.min(most, maximum ?? most) }),
  };
  if (whole) return adapted;
  return withRemarks(adapted, [
    ...(typeof above === "number" ? [`greater than ${above}`] : []),
    ...(typeof below === "number" ? [`less than ${below}`] : []),
  ]);
};

/** `anyOf` stands alone, so what concerns the whole goes to its first member. */
const join: Style["join"] = (parts, nullable, annotations) => {
  const [first, ...others] = parts;
  if (!first) return describePart({ type: "string", enum: ["null"] }, annotations);
  const described = describePart(nullable ? { ...first, nullable: true } : first, annotations);
  return others.length === 0 ? described : { anyOf: [described, ...others] };
};

const style: Style = {
  keeps,
  formats,
  closed: false,
  expands: true,
  depthMax: 16,
  adapt: (alternative) => adaptLimits(adaptValues(alternative)),
  join,
};

const write = ({ object, annotations, reading }: ObjectRoot, tool: string): JsonSchema => {
  const top = makeWriter(style, reading).writeObject(exposeParameters(object, parameter), 0);
  if (!top) throw new SchemaRejected({ tool, reason: "no arguments can ever satisfy it" });
  const { title, description } = annotations;
  return inOrder(
    describePart(top, {
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
    }),
  );
};

const types: ReadonlySet<unknown> = new Set(["string", "number", "integer", "boolean", "array", "object"]);
const everywhere = ["type", "title", "description", "nullable"];
const byType: Readonly<Record<string, ReadonlyArray<string>>> = {
  array: ["items"],
  object: ["properties", "required", "propertyOrdering"],
};

const nodeProblems = (node: JsonSchema, isRoot: boolean, say: (broken: boolean, message: string) => void): void => {
  if (Object.hasOwn(node, "anyOf")) return say(Object.keys(node).length > 1, "anyOf must be the only field");
  const type = own(node, "type");
  say(!types.has(type), `type must be a single known type, not ${JSON.stringify(type)}`);
  const known = new Set([...everywhere, ...(keeps[String(type)] ?? []), ...(byType[String(type)] ?? [])]);
  for (const key of Object.keys(node)) say(!known.has(key), `'${key}' is unknown for ${String(type)}`);
  const values = own(node, "enum");
  const texts =
    Array.isArray(values) && values.length > 0 && values.every((value) => typeof value === "string" && value !== "");
  say(values !== undefined && !texts, "enum must be a list of texts that are not empty");
  const format = own(node, "format");
  say(
    format !== undefined && !formats[String(type)]?.has(String(format)),
    `format '${String(format)}' is not supported`,
  );
  say(intricatePattern.test(String(own(node, "pattern") ?? "")), "the pattern uses lookaround or references to groups");
  say(type === "array" && !isObject(own(node, "items")), "a list needs items");
  if (type !== "object") return;
  const names = Object.keys((own(node, "properties") ?? {}) as object);
  say(names.length === 0 && !isRoot, "an object needs properties");
  const required = (own(node, "required") ?? []) as Array<string>;
  say(!required.every((name) => names.includes(name)), "a required property is not defined");
};

const accepts = (schema: unknown): ReadonlyArray<Problem> => {
  const { problems, say } = makeReport();
  for (const { schema: node, pointer } of subschemas(schema)) {
    nodeProblems(node, pointer === "", (broken, message) => say(broken, pointer, message));
  }
  // `nullable` is no keyword of JSON Schema; all else is held to its form.
  const common = commonProblems(schema).filter(({ message }) => !message.includes("well-formed"));
  return [...common, ...parameterNames(schema, parameter), ...problems];
};

export const gemini: SchemaDialect = makeDialect({ name: "gemini", write, accepts, stub: { type: "string" } });
