/** Pure: what the checkers of all dialects share. */
import type { JsonSchema } from "../../core/contracts.ts";
import type { Problem } from "./dialect.ts";
import { toModern } from "./modern.ts";
import { isObject, own } from "./references/keywords.ts";
import { bytesOf, schemaBytesMax } from "./rewriting/fit.ts";

export interface Visited {
  readonly schema: JsonSchema;
  readonly pointer: string;
  /** Levels of objects and lists above. */
  readonly depth: number;
}

const escape = (token: string): string => token.replace(/~/g, "~0").replace(/\//g, "~1");

const inMaps = ["properties", "patternProperties", "$defs", "dependentSchemas"];
const inLists = ["anyOf", "oneOf", "allOf", "prefixItems"];
const alone = ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"];
const deeper: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "items",
  "prefixItems",
  "additionalProperties",
]);

/** Every subschema with its place, the schema itself first; values that are no schema are visited as they are. */
export const subschemas = (schema: unknown, pointer = "", depth = 0): ReadonlyArray<Visited> => {
  if (!isObject(schema)) return [{ schema: { invalid: schema }, pointer, depth }];
  const found: Array<Visited> = [{ schema, pointer, depth }];
  const add = (member: unknown, path: string, key: string): void => {
    if (typeof member === "boolean" && key === "additionalProperties") return;
    for (const visited of subschemas(member, path, depth + (deeper.has(key) ? 1 : 0))) found.push(visited);
  };
  for (const key of inMaps) {
    const members = own(schema, key);
    if (!isObject(members)) continue;
    for (const name of Object.keys(members)) add(members[name], `${pointer}/${key}/${escape(name)}`, key);
  }
  for (const key of inLists) {
    const members = own(schema, key);
    if (Array.isArray(members)) members.forEach((member, i) => add(member, `${pointer}/${key}/${i}`, key));
  }
  for (const key of alone) if (Object.hasOwn(schema, key)) add(schema[key], `${pointer}/${key}`, key);
  return found;
};

/** Collects problems of one schema. */
export const makeReport = (): {
  readonly problems: Array<Problem>;
  readonly say: (broken: boolean, pointer: string, message: string) => void;
} => {
  const problems: Array<Problem> = [];
  const say = (broken: boolean, pointer: string, message: string): void => {
    if (broken) problems.push({ pointer, message });
  };
  return { problems, say };
};

/** Whatever the provider: an object schema of draft 2020-12, sound references, bounded size. */
export const commonProblems = (schema: unknown): ReadonlyArray<Problem> => {
  const { problems, say } = makeReport();
  if (!isObject(schema)) return [{ pointer: "", message: "must be a schema object" }];
  say(own(schema, "type") !== "object", "", "the top level must have type object");
  say(bytesOf(schema) > schemaBytesMax, "", `must not be larger than ${schemaBytesMax} bytes`);
  say(JSON.stringify(toModern(schema)) !== JSON.stringify(schema), "", "must be well-formed draft 2020-12");
  const names = Object.keys((own(schema, "$defs") as object | undefined) ?? {});
  for (const { schema: node, pointer } of subschemas(schema)) {
    const reference = own(node, "$ref");
    const sound = reference === undefined || reference === "#" || names.some((name) => reference === `#/$defs/${name}`);
    say(!sound, pointer, `reference ${JSON.stringify(reference)} does not resolve`);
  }
  return problems;
};

/** The top level may not use these keywords. */
export const forbidAtRoot = (schema: unknown, keywords: ReadonlyArray<string>): ReadonlyArray<Problem> =>
  isObject(schema)
    ? keywords
        .filter((key) => Object.hasOwn(schema, key))
        .map((key) => ({ pointer: `/${key}`, message: "is not allowed at the top level" }))
    : [];

/** Names of the parameters must match. */
export const parameterNames = (schema: unknown, accepted: RegExp): ReadonlyArray<Problem> => {
  const properties = isObject(schema) ? own(schema, "properties") : undefined;
  return isObject(properties)
    ? Object.keys(properties)
        .filter((name) => !accepted.test(name))
        .map((name) => ({ pointer: `/properties/${escape(name)}`, message: `the name must match ${accepted.source}` }))
    : [];
};
