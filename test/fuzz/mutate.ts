/** Changes JSON values at places inside them: other types, fields more, fewer, twice, moved. */
import * as fc from "fast-check";
import { type Json, oddKey, oddValue } from "./odd-values.ts";

type Change = "drop" | "wrap" | "quote" | "repeat" | "hoist";

export type Edit =
  | { readonly op: "replace" | "add"; readonly at: number; readonly key: string; readonly value: unknown }
  | { readonly op: Change; readonly at: number };

/** Places looked at; deeper and wider ones stay as they are. */
const placesMax = 80;

type Path = ReadonlyArray<string | number>;

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

const places = (root: unknown): ReadonlyArray<Path> => {
  const found: Array<{ readonly path: Path; readonly value: unknown }> = [{ path: [], value: root }];
  for (let i = 0; i < found.length && found.length < placesMax; i++) {
    const { path, value } = found[i]!;
    if (!isContainer(value)) continue;
    const keys: ReadonlyArray<string | number> = Array.isArray(value)
      ? value.slice(0, placesMax).map((_, index) => index)
      : Object.keys(value).slice(0, placesMax);
    for (const key of keys)
      found.push({ path: [...path, key], value: (value as Record<string | number, unknown>)[key] });
  }
  return found.map(({ path }) => path);
};

const removed = Symbol("removed");

/** A copy of `root` in which the value at `path` is what `change` makes of it. */
const changed = (root: unknown, path: Path, change: (value: unknown) => unknown): unknown => {
  if (path.length === 0) return change(root);
  const [key, ...rest] = path;
  if (Array.isArray(root)) {
    const next = changed(root[key as number], rest, change);
    return next === removed ? root.toSpliced(key as number, 1) : root.with(key as number, next);
  }
  const next = changed((root as Json)[key as string], rest, change);
  const entries = Object.entries(root as Json).flatMap(([name, value]) =>
    name !== key ? [[name, value] as const] : next === removed ? [] : [[name, next] as const],
  );
  return Object.fromEntries(entries);
};

const text = (value: unknown): string => {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
};

const edited = (edit: Edit): ((value: unknown) => unknown) => {
  switch (edit.op) {
    case "replace":
      return () => edit.value;
    case "add":
      return (value) => {
        if (Array.isArray(value)) return [...value, edit.value];
        return isContainer(value) ? Object.fromEntries([...Object.entries(value), [edit.key, edit.value]]) : edit.value;
      };
    case "drop":
      return () => removed;
    case "wrap":
      return (value) => [value];
    case "quote":
      return text;
    case "repeat":
      return (value) => (Array.isArray(value) ? [...value, ...value] : [value, value]);
    case "hoist":
      return (value) => (isContainer(value) ? Object.values(value)[0] : { value });
  }
};

export const mutated = (root: unknown, edits: ReadonlyArray<Edit>): unknown => {
  let value = root;
  for (const edit of edits) {
    const all = places(value);
    value = changed(value, all[edit.at % all.length]!, edited(edit));
    if (value === removed) value = undefined;
  }
  // Nothing is no message: what was dropped whole arrives as null.
  return value === undefined ? null : value;
};

const at = fc.nat(placesMax);

export const edit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({ op: fc.constant("replace" as const), at, key: fc.constant(""), value: oddValue }),
  },
  { weight: 3, arbitrary: fc.record({ op: fc.constant("add" as const), at, key: oddKey, value: oddValue }) },
  {
    weight: 5,
    arbitrary: fc.record({ op: fc.constantFrom<Change>("drop", "wrap", "quote", "repeat", "hoist"), at }),
  },
);

/** Mostly one or two edits; now and then none, so that valid messages come between the others. */
export const edits: fc.Arbitrary<ReadonlyArray<Edit>> = fc.array(edit, { maxLength: 3, size: "max" });

/** One of the values, mutated. */
export const mutationOf = (values: ReadonlyArray<unknown>): fc.Arbitrary<unknown> =>
  fc.tuple(fc.constantFrom(...values), edits).map(([value, changes]) => mutated(value, changes));
