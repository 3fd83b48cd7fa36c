/** Pure: makes a written schema small enough to send. */
import type { JsonSchema } from "../../../core/contracts.ts";
import { SchemaRejected } from "../../../core/errors.ts";
import { isObject, mapSubschemas, own, type Subschema } from "../references/keywords.ts";
import { remark, withRemarks } from "./notes.ts";

/** Largest schema of one tool, in bytes of JSON. */
export const schemaBytesMax: number = 64 * 1024;

const encoder = new TextEncoder();
export const bytesOf = (value: unknown): number => encoder.encode(JSON.stringify(value)).length;

/** Every subschema changed, the innermost first. */
export const changeAll = (schema: JsonSchema, change: (schema: JsonSchema) => JsonSchema): JsonSchema => {
  const deep = (member: Subschema): Subschema => (isObject(member) ? change(mapSubschemas(member, deep)) : member);
  return deep(schema) as JsonSchema;
};

const order = ["title", "description", "type", "nullable", "enum", "format", "pattern"];
const rank = (key: string): number => (order.includes(key) ? order.indexOf(key) : order.length);

/** Keywords in one order, so that the same meaning is the same text. */
export const inOrder = (schema: JsonSchema): JsonSchema =>
  changeAll(schema, (node) =>
    Object.fromEntries(Object.entries(node).toSorted(([a], [b]) => rank(a) - rank(b) || (a < b ? -1 : 1))),
  );

/** Lists of more than `longest` values become a remark that shows the first ones. */
export const shortenEnums =
  (longest: number) =>
  (schema: JsonSchema): JsonSchema => {
    const { enum: values, ...rest } = schema;
    if (!Array.isArray(values) || values.length <= longest) return schema;
    return withRemarks(rest, [remark(`one of ${values.length} values`, values.slice(0, 10))]);
  };

const shortenTexts =
  (longest: number) =>
  (schema: JsonSchema): JsonSchema => {
    const { default: fallback, examples, title, ...rest } = schema;
    const description = own(rest, "description");
    return {
      ...rest,
      ...(typeof title === "string" && { title: title.slice(0, longest) }),
      ...(fallback !== undefined && bytesOf(fallback) <= longest && { default: fallback }),
      ...(examples !== undefined && bytesOf(examples) <= longest && { examples }),
      ...(typeof description === "string" && { description: description.slice(0, longest) }),
    };
  };

/** Last of all: references go, with the definitions they point at. */
const withoutReferences =
  (stub: JsonSchema) =>
  (schema: JsonSchema): JsonSchema => {
    const { $ref, $defs: _, ...rest } = schema;
    return $ref === undefined ? rest : { ...stub, ...rest };
  };

/**
 * The schema within the limit: long value lists, then long texts, then references give way.
 *
 * @throws SchemaRejected when even that is not enough
 */
export const fitBytes = (
  schema: JsonSchema,
  tool: string,
  stub: JsonSchema,
  diagnose: (message: string) => void,
): JsonSchema => {
  if (bytesOf(schema) <= schemaBytesMax) return schema;
  diagnose("it is too large; long lists of values, descriptions or definitions are shortened");
  let fitted = schema;
  for (const change of [
    shortenEnums(200),
    shortenTexts(400),
    shortenEnums(20),
    shortenTexts(80),
    withoutReferences(stub),
  ]) {
    fitted = changeAll(fitted, change);
    if (bytesOf(fitted) <= schemaBytesMax) return fitted;
  }
  throw new SchemaRejected({ tool, reason: `it does not fit into ${schemaBytesMax} bytes even when shortened` });
};
