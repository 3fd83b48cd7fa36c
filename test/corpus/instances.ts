/** Values that fit a schema, as fast-check arbitraries; for schemas that a dialect wrote. */
import * as fc from "fast-check";
import type { JsonSchema } from "../../src/core/contracts.ts";
import { toModern } from "../../src/plugins/schemas/modern.ts";

type Schema = any;

const depthMax = 6;

const anything = fc.oneof(fc.string({ maxLength: 8 }), fc.integer(), fc.boolean(), fc.constant(null));

/** A JSON text stands for a value of the shape its description tells. */
const textOf = (schema: Schema): Schema | undefined => {
  const [, type, shape] = /\(JSON text of an? (\w+)(?: that fits (\{.*\}))?\)/.exec(schema.description ?? "") ?? [];
  if (type === undefined) return undefined;
  return shape ? JSON.parse(shape) : type === "value" ? {} : { type };
};

const strings = (schema: Schema): fc.Arbitrary<unknown> => {
  const minLength = Math.min(schema.minLength ?? 0, 5000);
  const maxLength = Math.max(minLength, Math.min(schema.maxLength ?? minLength + 12, minLength + 12));
  if (schema.pattern !== undefined) {
    // Generators know no lookaround; what does not fit without it is filtered out later.
    const plain = schema.pattern.replace(/\(\?[!=<][^()]*\)/g, "");
    try {
      return fc.stringMatching(new RegExp(plain, "u"));
    } catch {
      return fc.constant("");
    }
  }
  return fc.string({ minLength, maxLength });
};

const numbers = (schema: Schema): fc.Arbitrary<unknown> => {
  const step = schema.multipleOf;
  const whole = schema.type === "integer" || step !== undefined;
  const min =
    schema.minimum ??
    (schema.exclusiveMinimum !== undefined ? schema.exclusiveMinimum + (whole ? 1 : 1e-6) : undefined);
  const max =
    schema.maximum ??
    (schema.exclusiveMaximum !== undefined ? schema.exclusiveMaximum - (whole ? 1 : 1e-6) : undefined);
  if (!whole)
    return fc
      .double({ noNaN: true, noDefaultInfinity: true, min: min ?? -1e6, max: max ?? Math.max(1e6, min ?? 0) })
      .map((n) => n + 0);
  const unit = step ?? 1;
  const low = Math.ceil((min ?? -1000) / unit);
  return fc
    .integer({ min: low, max: Math.max(low, Math.floor((max ?? (min ?? 0) + 1000) / unit)) })
    .map((n) => n * unit);
};

/** `open` says whether an object that does not speak of further properties gets some. */
export const instances = (given: JsonSchema, open: boolean): fc.Arbitrary<unknown> => {
  const root: Schema = toModern(given);

  const objects = (schema: Schema, depth: number): fc.Arbitrary<unknown> => {
    const required = new Set<string>(schema.required ?? []);
    const possible = Object.keys(schema.properties ?? {}).filter((name) => !isNever(schema.properties[name]));
    const names = [...new Set([...possible, ...required])];
    const shown = depth > depthMax ? names.filter((name) => required.has(name)) : names;
    const members = shown.map((name): [string, fc.Arbitrary<unknown>] => [
      name,
      build(Object.hasOwn(schema.properties ?? {}, name) ? schema.properties[name] : {}, depth + 1),
    ]);
    const known = fc.record(Object.fromEntries(members), { requiredKeys: shown.filter((name) => required.has(name)) });
    const further = schema.additionalProperties ?? open;
    if (further === false || depth > depthMax) return known;
    const fewest = Math.max(0, (schema.minProperties ?? 0) - required.size);
    const extra = fc.dictionary(fc.stringMatching(/^extra[a-z]{1,4}$/), build(further, depth + 1), {
      minKeys: fewest,
      maxKeys: fewest + (names.length === 0 ? 2 : 0),
    });
    return fc.tuple(extra, known).map(([a, b]) => ({ ...a, ...(b as object) }));
  };

  const build = (schema: Schema, depth: number): fc.Arbitrary<unknown> => {
    if (typeof schema === "boolean" || schema === undefined) return anything;
    if (schema.$ref !== undefined) {
      const target = schema.$ref === "#" ? root : root.$defs?.[schema.$ref.replace("#/$defs/", "")];
      return fc.constant(null).chain(() => build(target ?? {}, depth + 1));
    }
    if (schema.const !== undefined) return fc.constant(schema.const);
    if (schema.enum !== undefined) return fc.constantFrom(...schema.enum);
    const union = schema.anyOf ?? schema.oneOf;
    if (union !== undefined) {
      const members = depth > depthMax && union.some((m: Schema) => m.type === "null") ? [{ type: "null" }] : union;
      return fc.oneof(...members.map((member: Schema) => build({ ...omit(schema), ...member }, depth)));
    }
    if (schema.allOf !== undefined) return build([omit(schema), ...schema.allOf].reduce(together), depth);
    const types: Array<string> = [schema.type ?? []].flat();
    if (types.length > 1) {
      const kept = depth > depthMax && types.includes("null") ? ["null"] : types;
      return fc.oneof(...kept.map((type) => build({ ...schema, type }, depth)));
    }
    switch (types[0]) {
      case "null":
        return fc.constant(null);
      case "boolean":
        return fc.boolean();
      case "string": {
        const text = textOf(schema);
        return text ? instances(text, true).map((value) => JSON.stringify(value)) : strings(schema);
      }
      case "number":
      case "integer":
        return numbers(schema);
      case "array": {
        if (schema.prefixItems) {
          const last = schema.prefixItems.findIndex(isNever);
          return fc.tuple(
            ...schema.prefixItems.slice(0, last < 0 ? undefined : last).map((item: Schema) => build(item, depth + 1)),
          );
        }
        const minLength = schema.minItems ?? 0;
        const spare = depth > depthMax || isNever(schema.items) ? 0 : 2;
        return fc.array(build(schema.items ?? {}, depth + 1), {
          minLength,
          maxLength: Math.max(minLength, Math.min(schema.maxItems ?? minLength + spare, minLength + spare)),
        });
      }
      case "object":
        return objects(schema, depth);
      default:
        return schema.properties ? objects(schema, depth) : anything;
    }
  };

  return build(root, 0);
};

const isNever = (schema: Schema): boolean => schema === false || JSON.stringify(schema?.not) === "{}";

/** Near enough for generating; what does not fit is filtered out later. */
const together = (a: Schema, b: Schema): Schema => ({
  ...a,
  ...b,
  ...((a.properties || b.properties) && { properties: { ...b.properties, ...a.properties } }),
  ...((a.required || b.required) && { required: [...(a.required ?? []), ...(b.required ?? [])] }),
});

const omit = ({ anyOf: _a, oneOf: _o, allOf: _l, ...rest }: Schema): Schema => rest;
