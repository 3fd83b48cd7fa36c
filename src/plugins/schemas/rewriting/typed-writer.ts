/**
 * Pure: writes schemas for providers that know few keywords. Everything becomes a node of
 * one type or a union of such; what the provider does not know is told in the description.
 */
import type { JsonSchema } from "../../../core/contracts.ts";
import { intricatePattern } from "../modern.ts";
import { isObject, own, type Subschema } from "../references/keywords.ts";
import { type Alternative, type Alternatives, alternatives, lookUp, type Reading, unique } from "./alternatives.ts";
import { joinDescriptions, remark, withRemarks } from "./notes.ts";

/** What one provider takes. */
export interface Style {
  /** Constraints kept, by type; the others become remarks. */
  readonly keeps: Readonly<Record<string, ReadonlySet<string>>>;
  readonly formats: Readonly<Record<string, ReadonlySet<string>>>;
  /** Every object lists all its properties as required and admits no others; null stands for "left out". */
  readonly closed: boolean;
  /** References are written out, as far as a budget goes. */
  readonly expands: boolean;
  /** Levels of objects and lists; what nests deeper is given as JSON text. */
  readonly depthMax: number;
  /** Adapts one alternative before it is written. */
  readonly adapt: (alternative: Alternative) => Alternative;
  /** One node of the parts; `parts` is not empty unless `nullable`. */
  readonly join: (parts: ReadonlyArray<JsonSchema>, nullable: boolean, annotations: JsonSchema) => JsonSchema;
}

export interface Writer {
  /** Undefined when nothing can fit. */
  readonly write: (schema: Subschema, depth: number, optional: boolean) => JsonSchema | undefined;
  readonly writeObject: (object: Alternative, depth: number) => JsonSchema | undefined;
  /** Names of definitions that what was written refers to. */
  readonly used: ReadonlySet<string>;
}

const shapeMax = 400;
/** Nodes written in place of references. */
const expandedMax = 300;

const anyValue: ReadonlyArray<JsonSchema> = [{ type: "string" }, { type: "number" }, { type: "boolean" }];

/** Says more of further properties than that they may be there. */
const isOpen = (further: unknown): further is JsonSchema => isObject(further) && Object.keys(further).length > 0;

const always: ReadonlySet<string> = new Set(["type", "title", "description"]);

/** Keywords that say nothing a model needs to know. */
const idle = (key: string, value: unknown): boolean =>
  (key === "propertyNames" && JSON.stringify(value) === '{"type":"string"}') ||
  (key === "uniqueItems" && value === false) ||
  ((key === "minItems" || key === "minProperties" || key === "minLength") && value === 0);

export const makeWriter = (style: Style, reading: Reading): Writer => {
  const used = new Set<string>();
  const texts = new WeakSet<JsonSchema>();
  const expanding: Array<unknown> = [];
  let expanded = 0;

  /** The value as JSON text; the call reads it back, since the tool's own schema refuses text there. */
  const asText = (alternative: Alternative): JsonSchema => {
    const { title: _, description, default: _d, examples: _e, deprecated: _p, ...bare } = alternative;
    const type = String(own(bare, "type") ?? "value");
    const telling = Object.entries(bare).filter(
      ([key, value]) => key !== "additionalProperties" || value === false || isOpen(value),
    );
    const shape = JSON.stringify(Object.fromEntries(telling.filter((entry) => !idle(...entry))));
    const untold = shape === `{"type":"${type}"}` || shape.length > shapeMax || shape.includes('"$ref"');
    const fits = untold ? "" : ` that fits ${shape}`;
    const how = `(JSON text of ${/^[aio]/.test(type) ? "an" : "a"} ${type}${fits})`;
    const text = { type: "string", description: joinDescriptions(description, how) };
    texts.add(text);
    return text;
  };

  const keeps = (type: string, key: string, value: unknown): boolean => {
    if (!style.keeps[type]?.has(key)) return false;
    if (key === "format") return style.formats[type]?.has(value as string) ?? false;
    return key !== "pattern" || !intricatePattern.test(value as string);
  };

  /** Constraints kept, and remarks on those that are not. */
  const constrain = (alternative: Alternative): JsonSchema => {
    const type = alternative["type"] as string;
    const rest = Object.entries(alternative);
    const stays = ([key, value]: [string, unknown]): boolean => always.has(key) || keeps(type, key, value);
    const lost = rest.filter((entry) => !stays(entry) && !idle(...entry));
    return withRemarks(
      Object.fromEntries(rest.filter(stays)),
      lost.map(([key, value]) => remark(key, value)),
    );
  };

  /** A list has one schema for all its items; one by position becomes a union, and its order a remark. */
  const writeList = (alternative: Alternative, depth: number): JsonSchema => {
    const {
      prefixItems: given,
      maxItems,
      ...open
    } = alternative as {
      items?: Subschema;
      prefixItems?: Array<Subschema>;
      maxItems?: number;
    };
    const last = given?.indexOf(false) ?? -1;
    const prefixItems = last < 0 ? given : given!.slice(0, last);
    const { items, ...rest } = last < 0 ? open : { ...open, items: false };
    const positions = prefixItems?.length ?? 0;
    const ended = prefixItems && (items === undefined || items === false || (maxItems ?? Infinity) <= positions);
    const element = prefixItems ? { anyOf: ended ? prefixItems : [...prefixItems, items!] } : (items ?? true);
    const written = write(element, depth + 1, false);
    const most = !written ? 0 : ended ? Math.min(positions, maxItems ?? positions) : maxItems;
    const list = constrain({ ...rest, ...(most !== undefined && { maxItems: most }) });
    const order = prefixItems ? [remark("items in this order", prefixItems)] : [];
    return withRemarks({ ...list, items: written ?? { type: "string" } }, order);
  };

  const writeObject = (alternative: Alternative, depth: number): JsonSchema | undefined => {
    const {
      properties = {},
      required = [],
      additionalProperties: further,
      ...rest
    } = alternative as {
      properties?: Readonly<Record<string, Subschema>>;
      required?: Array<string>;
      additionalProperties?: Subschema;
    };
    const members: Array<[string, JsonSchema]> = [];
    for (const name of new Set([...Object.keys(properties), ...required])) {
      const member = Object.hasOwn(properties, name) ? properties[name]! : isOpen(further) ? further : true;
      const needed = required.includes(name);
      const written = write(member, depth + 1, style.closed && !needed);
      if (written) members.push([name, written]);
      else if (needed) return undefined;
    }
    const names = members.map(([name]) => name);
    const listed = style.closed ? names : names.filter((name) => required.includes(name));
    const object = {
      ...constrain(rest),
      properties: Object.fromEntries(members),
      ...((style.closed || listed.length > 0) && { required: listed }),
      ...(style.closed && { additionalProperties: false }),
    };
    return withRemarks(object, isOpen(further) ? ["further properties are possible, but cannot be given here"] : []);
  };

  const writeValues = (alternative: Alternative): JsonSchema => {
    const type = alternative["type"] as string;
    if (type !== "object" && type !== "array") return constrain(alternative);
    const values = (alternative["enum"] as Array<unknown>).map((value) => JSON.stringify(value));
    return constrain({ ...alternative, type: "string", enum: values });
  };

  const isFreeForm = (alternative: Alternative): boolean => {
    const { properties = {}, required, additionalProperties } = alternative;
    if (Object.keys(properties as object).length > 0 || (required as Array<string> | undefined)?.length) return false;
    return additionalProperties !== false || Object.hasOwn(alternative, "patternProperties") || !style.closed;
  };

  const writeReference = (reference: unknown, depth: number): ReadonlyArray<JsonSchema> => {
    const target = lookUp(reference, reading);
    if (target === false) return [];
    if (!style.expands) {
      if (reference !== "#") used.add(String(reference).replace("#/$defs/", ""));
      return [{ $ref: reference }];
    }
    const again = expanding.filter((other) => other === reference).length;
    if (again > 1 || expanded > expandedMax) {
      const types = new Set(alternatives(target, reading).list.map((alternative) => own(alternative, "type")));
      const [type] = types;
      return [asText(types.size === 1 && type !== undefined ? { type } : {})];
    }
    expanding.push(reference);
    const written = write(target, depth, false);
    expanding.pop();
    return written ? [written] : [];
  };

  const writePart = (given: Alternative, depth: number): ReadonlyArray<JsonSchema> => {
    if (Object.hasOwn(given, "$ref")) return writeReference(given["$ref"], depth);
    if (expanding.length > 0) expanded++;
    const alternative = style.adapt(given);
    const type = own(alternative, "type");
    if (Object.hasOwn(alternative, "enum")) return [writeValues(alternative)];
    if (type !== "object" && type !== "array") return [constrain(alternative)];
    if (depth >= style.depthMax || (type === "object" && isFreeForm(alternative))) return [asText(alternative)];
    const written = type === "array" ? writeList(alternative, depth) : writeObject(alternative, depth);
    return written ? [written] : [];
  };

  const write = (schema: Subschema, depth: number, optional: boolean): JsonSchema | undefined => {
    const { annotations, list }: Alternatives = alternatives(schema, reading);
    const nullable = optional || list.some((alternative) => own(alternative, "type") === "null");
    const others = list.filter((alternative) => own(alternative, "type") !== "null");
    const free = others.find(
      (alternative) => !Object.hasOwn(alternative, "type") && !Object.hasOwn(alternative, "$ref"),
    );
    const parts = free
      ? anyValue.map((value) => ({ ...value }))
      : others.flatMap((alternative) => writePart(alternative, depth));
    if (parts.length === 0 && (optional || !nullable)) return undefined;
    // Where plain text is welcome, JSON text could not be told from it.
    const plain = parts.some(
      (part) => own(part, "type") === "string" && !texts.has(part) && !Object.hasOwn(part, "enum"),
    );
    const tellable = plain ? parts.filter((part) => !texts.has(part)) : parts;
    const distinct = unique(tellable);
    const remarks = [
      ...(free ? ["any JSON value; here text, a number, true or false"] : []),
      ...Object.entries(free ?? {}).flatMap(([key, value]) => (always.has(key) ? [] : [remark(key, value)])),
      ...(tellable.length < parts.length ? ["other forms are possible, but cannot be given here"] : []),
      ...["default", "examples"].flatMap((key) =>
        Object.hasOwn(annotations, key) ? [remark(key, annotations[key])] : [],
      ),
      ...(own(annotations, "deprecated") === true ? ["deprecated"] : []),
    ];
    const { title, description } = withRemarks(annotations, remarks);
    return style.join(distinct, nullable, {
      ...(title !== undefined && { title }),
      ...(description !== undefined && { description }),
    });
  };

  return { write, writeObject, used };
};

/** Adds the description of the whole to that of its only part. */
export const describePart = (part: JsonSchema, annotations: JsonSchema): JsonSchema => {
  const description = joinDescriptions(own(annotations, "description"), own(part, "description"));
  return { ...part, ...annotations, ...(description !== undefined && { description }) };
};
