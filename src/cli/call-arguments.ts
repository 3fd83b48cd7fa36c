/** Pure: a tool's arguments from the words of a command line. */
import { isRecord } from "../core/artifact/json.ts";
import type { ArgumentIssue } from "../core/errors.ts";

type Schema = Readonly<Record<string, any>>;

const typeOf = (value: unknown): string => (value === null ? "null" : Array.isArray(value) ? "array" : typeof value);

/** The types a property may have, as far as its schema says. References are inlined already. */
const typesOf = (schema: unknown): ReadonlyArray<string> => {
  if (!isRecord(schema)) return [];
  const { type, const: constant, enum: values } = schema;
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.map(String);
  if (constant !== undefined) return [typeOf(constant)];
  if (Array.isArray(values)) return values.map(typeOf);
  return [schema["anyOf"], schema["oneOf"], schema["allOf"]].flatMap((list) =>
    Array.isArray(list) ? list.flatMap(typesOf) : [],
  );
};

/** JSON where the schema wants something else than a string and the text is JSON; else the text. */
const convert = (text: string, schema: unknown): unknown => {
  const types = typesOf(schema);
  if (types.length === 0 || types.includes("string")) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};

export interface GivenArguments {
  /** The text of `--arguments`: one JSON object. */
  readonly json: string | undefined;
  /** Words of the form `key=value`; they win over `json`. */
  readonly pairs: ReadonlyArray<string>;
}

/** The arguments, or what is wrong with the words. */
export const readArguments = (
  { json, pairs }: GivenArguments,
  inputSchema: Schema,
): Schema | { readonly issues: ReadonlyArray<ArgumentIssue> } => {
  const issues: Array<ArgumentIssue> = [];
  const given = new Map<string, unknown>();
  let parsed: unknown = {};
  try {
    parsed = json === undefined ? {} : JSON.parse(json);
  } catch {
    parsed = undefined;
  }
  if (isRecord(parsed)) for (const [key, value] of Object.entries(parsed)) given.set(key, value);
  else issues.push({ pointer: "", message: "the text after --json is no JSON object" });

  const seen = new Set<string>();
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    const key = pair.slice(0, at);
    if (at < 1) issues.push({ pointer: "", message: `'${pair}' is not of the form key=value; JSON goes after --json` });
    else if (seen.has(key)) issues.push({ pointer: `/${key}`, message: "is given twice; give a list as JSON" });
    else given.set(key, convert(pair.slice(at + 1), inputSchema["properties"]?.[key]));
    seen.add(key);
  }
  return issues.length > 0 ? { issues } : { arguments: Object.fromEntries(given) };
};
