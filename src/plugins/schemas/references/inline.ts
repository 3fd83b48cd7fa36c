/** Pure: replaces references by what they point at, within a budget. */
import type { JsonSchema } from "../../../core/contracts.ts";
import { isObject, mapSubschemas, type Subschema } from "./keywords.ts";
import { depthMax, readDocument } from "./resources.ts";
import { readTemplates, Slot, type Target } from "./templates.ts";

/** Bytes of JSON up to which a schema is written out in full. */
export const inlineBytesMax: number = 64 * 1024;

export interface Inlined {
  readonly schema: JsonSchema;
  readonly diagnostics: ReadonlyArray<string>;
}

const children = (target: Target): ReadonlyArray<Target> => target.slots.flatMap(({ slot }) => slot.target ?? []);

/** Takes away, again and again, every target with no `next` among those left; answers what went, in order. */
const peel = (all: ReadonlyArray<Target>, next: (target: Target) => ReadonlyArray<Target>): ReadonlyArray<Target> => {
  const back = new Map<Target, Array<Target>>(all.map((target) => [target, []]));
  const open = new Map<Target, number>();
  for (const target of all) {
    const edges = next(target).filter((other) => back.has(other));
    open.set(target, edges.length);
    for (const other of edges) back.get(other)!.push(target);
  }
  const gone = all.filter((target) => open.get(target) === 0);
  for (let at = 0; at < gone.length; at++) {
    for (const other of back.get(gone[at]!)!) {
      open.set(other, open.get(other)! - 1);
      if (open.get(other) === 0) gone.push(other);
    }
  }
  return gone;
};

/** Targets on a cycle (or between two): their references stay. */
const cyclic = (targets: ReadonlyArray<Target>): ReadonlySet<Target> => {
  const ends = new Set(peel(targets, children));
  const rest = targets.filter((target) => !ends.has(target));
  const parents = new Map<Target, Array<Target>>(rest.map((target) => [target, []]));
  for (const target of rest) for (const child of children(target)) parents.get(child)?.push(target);
  const starts = new Set(peel(rest, (target) => parents.get(target)!));
  return new Set(rest.filter((target) => !starts.has(target)));
};

/** True when everything but `kept` can be written out within the budget of bytes and depth. */
const fits = (root: Target, targets: ReadonlyArray<Target>, kept: ReadonlySet<Target>): boolean => {
  const bytes = new Map<Target, number>();
  const depths = new Map<Target, number>();
  for (const target of peel(targets, (target) => children(target).filter((child) => !kept.has(child)))) {
    let size = target.bytes;
    let depth = target.depth;
    for (const { slot, depth: at } of target.slots) {
      const inline = slot.target && !kept.has(slot.target);
      size += inline ? bytes.get(slot.target!)! : (slot.target?.name.length ?? 0) + 20;
      depth = Math.max(depth, inline ? at + depths.get(slot.target!)! : at);
    }
    bytes.set(target, size);
    depths.set(target, depth);
  }
  const emitted = [...new Set([root, ...kept])];
  const total = emitted.reduce((sum, target) => sum + bytes.get(target)!, 0);
  return total <= inlineBytesMax && emitted.every((target) => depths.get(target)! <= depthMax);
};

/** The reference a reference leads to, when it leads to nothing else. */
const after = (slot: Slot): Slot | undefined =>
  slot.target?.template instanceof Slot ? slot.target.template : undefined;

/** A reference to a bare reference is one to its end; a ring of them points at nothing. */
const shorten = (slots: ReadonlyArray<Slot>, diagnose: (message: string) => void): void => {
  const done = new Set<Slot>();
  for (const first of slots) {
    const path = new Set<Slot>();
    for (let slot: Slot | undefined = first; slot && !done.has(slot); slot = after(slot)) {
      path.add(slot);
      done.add(slot);
      const next = after(slot);
      if (!next || !path.has(next)) continue;
      diagnose(`a reference to ${JSON.stringify(slot.target!.name)} only leads back to itself`);
      slot.target = undefined;
    }
    for (const slot of [...path].toReversed()) {
      const next = after(slot);
      if (!next) continue;
      slot.target = next.target;
      slot.annotations = { ...next.annotations, ...slot.annotations };
    }
  }
};

const annotate = (schema: Subschema, annotations: JsonSchema): Subschema => {
  if (Object.keys(annotations).length === 0) return schema;
  return isObject(schema) ? { ...schema, ...annotations } : { ...(schema ? {} : { not: {} }), ...annotations };
};

/** A name that needs no escaping in a reference. */
const plainName = (name: string): string => name.replace(/[^\w.-]/g, "_").replace(/^_+/, "") || "schema";

/**
 * The schema without references, where that is possible: targets are written out in place,
 * except those on a cycle, and except all of them when the whole would be over the budget;
 * these stay `$ref`s into `$defs`. Identity keywords and `$comment` go. The input is not altered.
 * `unresolved` stands where a reference points outside or nowhere.
 *
 * @throws SchemaRejected only for a schema of more than 20,000 subschemas.
 */
export const inlineReferences = (
  schema: JsonSchema,
  tool: string,
  unresolved: JsonSchema = { type: "object" },
): Inlined => {
  const diagnostics = new Set<string>();
  const diagnose = (message: string): void => void diagnostics.add(message);
  const { root, targets } = readTemplates(readDocument(schema), tool, unresolved, diagnose);
  const slots = targets.flatMap((target) => target.slots.map(({ slot }) => slot));
  shorten(slots, diagnose);

  let kept = cyclic(targets);
  if (!fits(root, targets, kept)) {
    const referred = new Set(targets.flatMap(children));
    if (referred.size > kept.size) diagnose("written out in full it would be too large; its references are kept");
    kept = referred;
  }

  const names = new Map<Target, string>([[root, "#"]]);
  const definitions = new Map<string, Target>();
  const referenceTo = (target: Target): string => {
    const given = names.get(target);
    if (given !== undefined) return given;
    const wanted = plainName(target.name);
    let name = wanted;
    for (let n = 2; definitions.has(name); n++) name = `${wanted}_${n}`;
    definitions.set(name, target);
    names.set(target, `#/$defs/${name}`);
    return names.get(target)!;
  };

  const fill = (slot: Slot, target: Target | undefined): Subschema =>
    target ? annotate(write(target.template), slot.annotations) : { ...unresolved, ...slot.annotations };
  const write = (template: Subschema | Slot): Subschema => {
    if (!(template instanceof Slot)) return isObject(template) ? mapSubschemas(template, write) : template;
    const { target, annotations } = template;
    return target && kept.has(target) ? { $ref: referenceTo(target), ...annotations } : fill(template, target);
  };

  // The top level is written out even where it is a reference to something that stays one.
  const top = root.template instanceof Slot ? fill(root.template, root.template.target) : write(root.template);
  const written: JsonSchema = isObject(top) ? top : top ? {} : { not: {} };
  // Writing a definition may add further ones; the loop sees those too.
  const $defs: Array<[string, unknown]> = [];
  for (const [name, target] of definitions) $defs.push([name, write(target.template)]);
  return {
    schema: $defs.length === 0 ? written : { ...written, $defs: Object.fromEntries($defs) },
    diagnostics: [...diagnostics],
  };
};
