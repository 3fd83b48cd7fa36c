/**
 * The default normalizer: passes a schema through faithfully, without references and
 * without the keywords that only identify it, and refuses what is no object schema.
 */
import type { SchemaNormalizer } from "../../core/contracts.ts";
import { SchemaRejected } from "../../core/errors.ts";
import { inlineReferences } from "./references/inline.ts";
import { isObject, own } from "./references/keywords.ts";

const members = (schema: unknown, keyword: string): ReadonlyArray<unknown> => {
  const value = isObject(schema) ? own(schema, keyword) : undefined;
  return Array.isArray(value) ? value : [];
};

/** True when the schema is about objects: by `type`, by `properties`, or by all branches of a union. */
const describesObjects = (schema: unknown): boolean => {
  if (!isObject(schema)) return false;
  const type = own(schema, "type");
  if (type === "object" || (Array.isArray(type) && type.includes("object"))) return true;
  if (isObject(own(schema, "properties"))) return true;
  const union = [...members(schema, "anyOf"), ...members(schema, "oneOf")];
  return (union.length > 0 && union.every(describesObjects)) || members(schema, "allOf").some(describesObjects);
};

const kindOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "a list" : typeof value);

/**
 * Inlines references of the same document (JSON Pointers, `$anchor`, `$id`-relative, dynamic
 * anchors) and drops unused `$defs`; strips `$schema`, `$id`, `$anchor` and `$comment`. What
 * points outside or nowhere becomes `{"type":"object"}` with a diagnostic. Cycles, and schemas
 * that would grow beyond 64 KiB, keep `$ref` and `$defs`. Nothing is ever fetched.
 *
 * @throws SchemaRejected when the top level is neither an object schema nor has `properties`.
 */
export const inlineRefs: SchemaNormalizer = {
  name: "inline-refs",
  normalize: (schema, tool) => {
    if (!isObject(schema)) {
      const found = schema === undefined ? "it is missing" : `it is ${kindOf(schema)}`;
      throw new SchemaRejected({ tool: tool.name, reason: `${found}, where an object schema belongs` });
    }
    const inlined = inlineReferences(schema, tool.name);
    if (!describesObjects(inlined.schema)) {
      throw new SchemaRejected({ tool: tool.name, reason: "its top level does not describe an object" });
    }
    return inlined;
  },
};
