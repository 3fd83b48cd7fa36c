/**
 * Pure: a document as templates. A template is a schema whose references are slots;
 * every target of a reference has one. Dynamic references are decided here: a target
 * is a schema together with what its dynamic anchors stand for on the way to it.
 */
import { SchemaRejected } from "../../../core/errors.ts";
import type { JsonSchema } from "../../../core/contracts.ts";
import { holdsSchemas, isObject, mapSubschemas, own, type Subschema } from "./keywords.ts";
import { depthMax, type Document, type Located, type Resource } from "./resources.ts";

/** The place of a reference in a template. */
export class Slot {
  target: Target | undefined;
  /** Title, description and the like beside the reference; they win over the target's own. */
  annotations: JsonSchema;
  constructor(target: Target | undefined, annotations: JsonSchema) {
    this.target = target;
    this.annotations = annotations;
  }
}

/** What references point at. */
export interface Target {
  readonly name: string;
  template: Subschema | Slot;
  /** Own size in bytes as JSON, without what its slots stand for. */
  bytes: number;
  depth: number;
  readonly slots: Array<{ readonly slot: Slot; readonly depth: number }>;
}

/** What each dynamic anchor stands for: bound by the outermost resource on the way (2020-12 core, 8.2.3.2). */
type Bindings = ReadonlyMap<string, JsonSchema>;

interface Place {
  readonly resource: Resource;
  readonly bindings: Bindings;
  readonly depth: number;
}

/** More than any model could read; it bounds the work a hostile schema can cause. */
const schemasMax = 20_000;

const identity: ReadonlySet<string> = new Set([
  "$schema",
  "$id",
  "$anchor",
  "$comment",
  "$dynamicAnchor",
  "$recursiveAnchor",
  "$vocabulary",
]);
const references: ReadonlyArray<string> = ["$ref", "$dynamicRef", "$recursiveRef"];
const definitions: ReadonlyArray<string> = ["$defs", "definitions"];
const left: ReadonlySet<string> = new Set([...identity, ...references, ...definitions]);
const annotation: ReadonlySet<string> = new Set([
  "title",
  "description",
  "default",
  "examples",
  "deprecated",
  "readOnly",
  "writeOnly",
]);

const encoder = new TextEncoder();
const bytesOf = (value: unknown): number => {
  const json = JSON.stringify(value) ?? "null";
  return json.length < 32 ? json.length : encoder.encode(json).length;
};

/** How deep plain data nests, read without recursion; stops counting above the limit. */
const nesting = (value: unknown): number => {
  let level = new Set<unknown>([value]);
  for (let depth = 0; ; depth++) {
    const next = new Set<unknown>();
    for (const item of level) {
      if (typeof item !== "object" || item === null) continue;
      for (const member of Object.values(item)) if (typeof member === "object") next.add(member);
    }
    if (next.size === 0 || depth > depthMax) return depth;
    level = next;
  }
};

/** Entering a resource binds its dynamic anchors, unless one further out did. */
const enter = (resource: Resource, bindings: Bindings): Bindings => {
  if (resource.dynamic.size === 0) return bindings;
  const fresh = [...resource.dynamic].filter(([key]) => !bindings.has(key));
  return fresh.length === 0 ? bindings : new Map([...bindings, ...fresh]);
};

export const readTemplates = (
  document: Document,
  tool: string,
  unresolved: JsonSchema,
  diagnose: (message: string) => void,
): { readonly root: Target; readonly targets: ReadonlyArray<Target> } => {
  const targets: Array<Target> = [];
  const pending: Array<() => void> = [];
  const known = new Map<JsonSchema, Map<string, Target>>();
  const numbers = new Map<JsonSchema, number>();
  let seen = 0;

  const number = (schema: JsonSchema): number => {
    if (!numbers.has(schema)) numbers.set(schema, numbers.size);
    return numbers.get(schema)!;
  };

  /** The one target for a schema under these bindings; new ones are read later. */
  const targetOf = (schema: JsonSchema, name: string, resource: Resource, outer: Bindings): Target => {
    const bindings = enter(resource, outer);
    const key = bindings.size === 0 ? "" : JSON.stringify([...bindings].map(([k, v]) => [k, number(v)]).toSorted());
    const variants = known.get(schema) ?? new Map<string, Target>();
    known.set(schema, variants);
    const existing = variants.get(key);
    if (existing) return existing;
    const target: Target = { name, template: true, bytes: 0, depth: 0, slots: [] };
    variants.set(key, target);
    targets.push(target);
    pending.push(() => (target.template = read(schema, { resource, bindings, depth: 0 }, target)));
    return target;
  };

  const locate = (keyword: string, reference: string, place: Place): Located | undefined => {
    const found = document.resolve(reference, place.resource);
    if (!found || keyword === "$ref") return found;
    const dynamicKey = keyword === "$recursiveRef" ? "" : found.dynamicKey;
    const bookend = keyword === "$recursiveRef" ? found.resource.dynamic.has("") : dynamicKey !== undefined;
    const bound = bookend ? place.bindings.get(dynamicKey!) : undefined;
    return bound ? { ...found, schema: bound, resource: document.resourceOf(bound)! } : found;
  };

  /** One reference keyword as a slot, a boolean, or what stands in for it. */
  const refer = (keyword: string, value: unknown, annotations: JsonSchema, place: Place): Subschema | Slot => {
    const found = typeof value === "string" ? locate(keyword, value, place) : undefined;
    if (!found) {
      diagnose(
        `${keyword} ${JSON.stringify(value)} points at nothing in this schema; ${JSON.stringify(unresolved)} stands there`,
      );
      return { ...unresolved, ...annotations };
    }
    if (isObject(found.schema)) {
      return new Slot(targetOf(found.schema, found.name, found.resource, place.bindings), annotations);
    }
    if (Object.keys(annotations).length === 0) return found.schema;
    return found.schema ? annotations : { not: {}, ...annotations };
  };

  const plain = (schema: JsonSchema, place: Place, owner: Target): JsonSchema => {
    const omit = new Set(left);
    for (const [key, value] of Object.entries(schema)) {
      if (left.has(key)) continue;
      owner.bytes += bytesOf(key) + 2;
      if (holdsSchemas(key, value)) {
        if (isObject(value)) for (const name of Object.keys(value)) owner.bytes += bytesOf(name) + 2;
      } else if (nesting(value) > depthMax) {
        diagnose(`${JSON.stringify(key)} nests deeper than ${depthMax} levels and is left out`);
        omit.add(key);
      } else owner.bytes += bytesOf(value);
    }
    return mapSubschemas(schema, (member) => read(member, { ...place, depth: place.depth + 1 }, owner), omit);
  };

  const read = (schema: Subschema, outer: Place, owner: Target): Subschema | Slot => {
    owner.bytes += 5;
    owner.depth = Math.max(owner.depth, outer.depth);
    if (typeof schema === "boolean") return schema;
    if (++seen > schemasMax) {
      throw new SchemaRejected({ tool, reason: `it holds more than ${schemasMax} subschemas` });
    }
    if (outer.depth > depthMax) {
      diagnose(`subschemas nested deeper than ${depthMax} levels are left out; anything is allowed there`);
      return {};
    }
    const resource = document.resourceOf(schema) ?? outer.resource;
    const place: Place = { resource, bindings: enter(resource, outer.bindings), depth: outer.depth };
    const used = references.filter((key) => Object.hasOwn(schema, key) && !(resource.legacy && key !== "$ref"));
    if (used.length === 0) return plain(schema, place, owner);

    const beside = Object.keys(schema).filter((key) => !left.has(key));
    const notes = beside.filter((key) => annotation.has(key) || key.startsWith("x-"));
    const annotations = Object.fromEntries(notes.map((key) => [key, schema[key]]));
    const alone = used.length === 1 && (resource.legacy || notes.length === beside.length);
    const note = (slot: Subschema | Slot): Subschema | Slot => {
      if (slot instanceof Slot) owner.slots.push({ slot, depth: outer.depth });
      return slot;
    };
    if (alone) {
      owner.bytes += bytesOf(annotations);
      return note(refer(used[0]!, schema[used[0]!], annotations, place));
    }
    const rest = plain(schema, place, owner);
    const all = used.map((key) => note(refer(key, schema[key], {}, place)));
    const given = own(rest, "allOf");
    return { ...rest, allOf: [...all, ...(Array.isArray(given) ? given : [])] };
  };

  const root = targetOf(document.main.root, "root", document.main, new Map());
  for (let next = pending.pop(); next; next = pending.pop()) next();
  return { root, targets };
};
