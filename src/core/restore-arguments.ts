/**
 * Pure: turns arguments that a model wrote for a provider's form of a schema into arguments
 * for the tool's own schema. What already fits is never touched.
 *
 * Provider forms rename awkward parameters, ask for every optional field (null stands for
 * "left out"), and give some values as JSON text. Models do the last two unasked as well.
 */
import { isRecord } from "./artifact/json.ts";
import type { ArgumentIssue } from "./errors.ts";
import { exposedProperty } from "./property-name.ts";

type Arguments = Readonly<Record<string, unknown>>;
type Check = (value: unknown) => ReadonlyArray<ArgumentIssue>;

export interface Restored {
  readonly arguments: Arguments;
  /** What is still wrong after mending; then the arguments are the given ones. */
  readonly issues: ReadonlyArray<ArgumentIssue>;
}

/** Each round mends what one list of issues names; a list is short, so a few rounds may be needed. */
const roundsMax = 20;

const declaredNames = (schema: unknown): ReadonlyArray<string> => {
  if (!isRecord(schema)) return [];
  const own = (key: string): unknown => (Object.hasOwn(schema, key) ? schema[key] : undefined);
  const properties = own("properties");
  const members = ["allOf", "anyOf", "oneOf"].flatMap((key) => own(key) ?? []);
  return [...(isRecord(properties) ? Object.keys(properties) : []), ...members.flatMap(declaredNames)];
};

const renamedNames = new WeakMap<object, ReadonlyMap<string, string>>();

/** Exposed name to the tool's own, for the parameters where they differ: for most tools none. */
const renamed = (schema: unknown): ReadonlyMap<string, string> => {
  if (!isRecord(schema)) return new Map();
  let names = renamedNames.get(schema);
  if (!names) {
    const pairs = declaredNames(schema).map((name) => [exposedProperty(name), name] as const);
    names = new Map(pairs.filter(([exposed, name]) => exposed !== name));
    renamedNames.set(schema, names);
  }
  return names;
};

/** Gives parameters back the names the tool knows. */
const rename = (args: Arguments, schema: unknown): Arguments => {
  const names = renamed(schema);
  if (names.size === 0 || !Object.keys(args).some((name) => names.has(name))) return args;
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [names.get(name) ?? name, value]));
};

/** The value without null properties, all the way down. */
const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).filter(([, member]) => member !== null);
  return Object.fromEntries(kept.map(([name, member]) => [name, withoutNulls(member)]));
};

const absent: unique symbol = Symbol("absent");

/** What may have been meant by a single value that does not fit. */
const mend = (value: unknown): unknown => {
  if (value === null) return absent;
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
};

/** A copy with the value at the place changed; the same object when there is no such place. */
const changeAt = (value: unknown, path: ReadonlyArray<string>, change: (value: unknown) => unknown): unknown => {
  const [key, ...rest] = path;
  if (key === undefined) return change(value);
  if (Array.isArray(value)) {
    const index = Number(key);
    if (!(index in value)) return value;
    const changed = changeAt(value[index], rest, change);
    // Leaving out an element would shift the others.
    return changed === absent ? value : value.with(index, changed);
  }
  if (!isRecord(value) || !Object.hasOwn(value, key)) return value;
  const changed = changeAt(value[key], rest, change);
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, member]) =>
      name !== key ? [[name, member]] : changed === absent ? [] : [[name, changed]],
    ),
  );
};

const tokens = (pointer: string): ReadonlyArray<string> =>
  pointer
    .split("/")
    .slice(1)
    .map((token) => token.replace(/~1/g, "/").replace(/~0/g, "~"));

/** Undefined when nothing changed. */
const changeAll = (
  args: Arguments,
  paths: ReadonlyArray<ReadonlyArray<string>>,
  change: (value: unknown) => unknown,
): Arguments | undefined => {
  const changed = paths.reduce<unknown>((value, path) => changeAt(value, path, change), args) as Arguments;
  return JSON.stringify(changed) === JSON.stringify(args) ? undefined : changed;
};

/**
 * The arguments the tool wants, with what is still wrong with them. Nulls go where the schema
 * refuses them, JSON text is read where the schema refuses text, exposed names become the tool's.
 */
export const restoreArguments = (given: Arguments, schema: unknown, check: Check): Restored => {
  let args = rename(given, schema);
  let issues = check(args);
  for (let round = 0; issues.length > 0 && round < roundsMax; round++) {
    const paths = issues.map(({ pointer }) => tokens(pointer));
    const changed = changeAll(args, paths, mend) ?? changeAll(args, paths, withoutNulls);
    if (!changed) break;
    args = changed;
    issues = check(args);
  }
  return { arguments: issues.length === 0 ? args : given, issues };
};
