/** Pure: a server's schema as validators take it. */
import type { JsonSchema } from "../../../core/contracts.ts";
import { toModern } from "../modern.ts";
import { inlineReferences } from "../references/inline.ts";
import { isObject, mapSubschemas, type Subschema } from "../references/keywords.ts";

/** `format` is an annotation (2020-12 validation, section 7), so nothing checks it. */
const annotations: ReadonlySet<string> = new Set(["format", "contentEncoding", "contentMediaType", "contentSchema"]);

const withoutAnnotations = (schema: Subschema): Subschema =>
  isObject(schema) ? mapSubschemas(schema, withoutAnnotations, annotations) : schema;

/**
 * The same constraints in one draft and one document. Inlining keeps every verdict, and
 * spares validators the corners of referencing. What is not in the document may be anything.
 */
export const prepare = (schema: JsonSchema): JsonSchema =>
  withoutAnnotations(toModern(inlineReferences(schema, "(schema)", {}).schema)) as JsonSchema;
