/** Pure: what of a tool is pinned, and how two versions of it are told apart. */
import { isRecord, keysOf, sameJson } from "../artifact/json.ts";
import { digest } from "../identity.ts";

/** The parts of a tool that a model or a host acts on. Icons and `_meta` are none of them. */
export type PinnedField = "name" | "title" | "description" | "inputSchema" | "outputSchema" | "annotations";

const pinnedFields: ReadonlyArray<PinnedField> = [
  "name",
  "title",
  "description",
  "inputSchema",
  "outputSchema",
  "annotations",
];

/** The pinned parts of a tool, as the server listed it. */
export type PinnedDefinition = Readonly<Partial<Record<PinnedField, unknown>>>;

export const definitionOf = (tool: Readonly<Record<string, unknown>>): PinnedDefinition =>
  Object.fromEntries(pinnedFields.flatMap((field) => (tool[field] === undefined ? [] : [[field, tool[field]]])));

/**
 * JSON text in which the order of keys does not matter, after RFC 8785: keys sorted by
 * UTF-16 units, no blanks. Recursive: for values that `isDeep` passes.
 */
export const canonicalJson = (value: unknown): string => {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (isRecord(value)) {
    const members = keysOf(value)
      .toSorted()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key])}`);
    return `{${members.join(",")}}`;
  }
  return typeof value === "bigint" ? String(value) : (JSON.stringify(value) ?? "null");
};

/** SHA-256 of the definition's canonical JSON, lower-case hex. */
export const fingerprint = (definition: PinnedDefinition): string => digest(canonicalJson(definition), 64);

/** Names of the parts that differ. */
export const changedFields = (before: PinnedDefinition, after: PinnedDefinition): ReadonlyArray<string> =>
  pinnedFields.filter((field) => !sameJson(before[field], after[field]));
