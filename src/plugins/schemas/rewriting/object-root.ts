/** Pure: the top level of a tool's schema as one plain object schema. */
import type { JsonSchema } from "../../../core/contracts.ts";
import { SchemaRejected } from "../../../core/errors.ts";
import { exposedProperty } from "../../../core/property-name.ts";
import { toModern } from "../modern.ts";
import { inlineReferences } from "../references/inline.ts";
import { isObject, own, type Subschema } from "../references/keywords.ts";
import { type Alternative, alternatives, type Reading, readingOf } from "./alternatives.ts";
import { bytesOf, changeAll, schemaBytesMax, shortenEnums } from "./fit.ts";
import { remark } from "./notes.ts";

export interface ObjectRoot {
  /** One object alternative: no unions, no references at the top; `$defs` apart. */
  readonly object: Alternative;
  readonly annotations: JsonSchema;
  /** What the one object no longer says; what is written below it may add more. */
  readonly remarks: Array<string>;
  readonly reading: Reading;
  readonly diagnostics: ReadonlyArray<string>;
}

type Properties = Readonly<Record<string, Subschema>>;

const propertiesOf = (object: Alternative): Properties => (own(object, "properties") ?? {}) as Properties;
const requiredOf = (object: Alternative): ReadonlyArray<string> => (own(object, "required") ?? []) as Array<string>;

/** Several schemas for one property: fixed values together, anything else as a union. */
const either = (schemas: ReadonlyArray<Subschema>): Subschema => {
  const distinct = [...new Map(schemas.map((schema) => [JSON.stringify(schema), schema])).values()];
  if (distinct.length === 1) return distinct[0]!;
  const fixed = distinct.map((schema) =>
    isObject(schema) && Object.hasOwn(schema, "const") ? [schema["const"]] : undefined,
  );
  const values = fixed.flatMap((value) => value ?? []);
  if (values.length < distinct.length) return { anyOf: distinct };
  const types = new Set(values.map((value) => typeof value));
  const [type] = types;
  return { ...(types.size === 1 && (type === "string" || type === "boolean") && { type }), enum: values };
};

/** One object that admits what any of the objects does; which belongs to which is told in words. */
const merge = (
  objects: ReadonlyArray<Alternative>,
): { readonly object: Alternative; readonly remarks: Array<string> } => {
  const names = [...new Set(objects.flatMap((object) => Object.keys(propertiesOf(object))))];
  const properties = names.map((name): [string, Subschema] => [
    name,
    either(
      objects.flatMap((object) => (Object.hasOwn(propertiesOf(object), name) ? [propertiesOf(object)[name]!] : [])),
    ),
  ]);
  const required = requiredOf(objects[0]!).filter((name) =>
    objects.every((object) => requiredOf(object).includes(name)),
  );
  const closed = objects.every((object) => own(object, "additionalProperties") === false);
  const forms = objects.map((object) => {
    const fixed = Object.entries(propertiesOf(object)).flatMap(([name, schema]) =>
      isObject(schema) && Object.hasOwn(schema, "const") ? [`${name} = ${JSON.stringify(schema["const"])}`] : [],
    );
    return [
      ...requiredOf(object).filter((name) => !fixed.some((text) => text.startsWith(`${name} = `))),
      ...fixed,
    ].join(", ");
  });
  return {
    object: {
      type: "object",
      properties: Object.fromEntries(properties),
      ...(required.length > 0 && { required }),
      ...(closed && { additionalProperties: false }),
    },
    remarks: [`one of these combinations: ${forms.map((form) => `{${form || "any"}}`).join(" or ")}`],
  };
};

const kindOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "a list" : typeof value);

/** @throws SchemaRejected when the schema does not describe an object */
export const readObjectRoot = (schema: unknown, tool: string): ObjectRoot => {
  if (!isObject(schema)) {
    const found = schema === undefined ? "it is missing" : `it is ${kindOf(schema)}`;
    throw new SchemaRejected({ tool, reason: `${found}, where an object schema belongs` });
  }
  const inlined = inlineReferences(schema, tool);
  const whole = toModern(inlined.schema);
  // What is far too large is cut before the work, not after it.
  const modern = bytesOf(whole) > 2 * schemaBytesMax ? changeAll(whole, shortenEnums(200)) : whole;
  const lost: Array<string> = [];
  const reading = readingOf(modern, (keyword, value) => void lost.push(remark(keyword, value)));
  const { $defs: _, ...top } = modern;
  const { annotations, list } = alternatives(top, reading);
  const objects = list.filter((alternative) => own(alternative, "type") === "object");
  if (objects.length === 0) throw new SchemaRejected({ tool, reason: "its top level does not describe an object" });
  const { object, remarks } = objects.length === 1 ? { object: objects[0]!, remarks: [] } : merge(objects);
  lost.push(...remarks);
  return { object, annotations, remarks: lost, reading, diagnostics: inlined.diagnostics };
};

/** The object with the parameters that a provider refuses under their exposed names. */
export const exposeParameters = (object: Alternative, accepted: RegExp): Alternative => {
  const expose = (name: string): string => (accepted.test(name) ? name : exposedProperty(name));
  const properties = own(object, "properties");
  if (!isObject(properties) || Object.keys(properties).every((name) => accepted.test(name))) return object;
  const required = own(object, "required");
  return {
    ...object,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, schema]) => [
        expose(name),
        accepted.test(name) || !isObject(schema) ? schema : { ...schema, title: own(schema, "title") ?? name },
      ]),
    ),
    ...(Array.isArray(required) && { required: required.map(expose) }),
  };
};
