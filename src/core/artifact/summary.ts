/** Pure: short descriptions of values that are too large to show. */
import { cursorOf, isRecord, jsonPieces, textEnd, utf8Size } from "./json.ts";
import { isMedia } from "./media.ts";

export type ValueKind = "text" | "list" | "object" | "binary" | "number" | "boolean" | "null";

/** What a model sees in place of a value. */
export interface Summary {
  readonly kind: ValueKind;
  /** Bytes: of the text, of the JSON of a list or object, of the binary itself. */
  readonly size?: number | undefined;
  /** Characters, items or keys. */
  readonly count?: number | undefined;
  /** How it begins. */
  readonly head?: string | undefined;
}

export const kindOf = (value: unknown): ValueKind => {
  if (typeof value === "string") return "text";
  if (Array.isArray(value)) return "list";
  if (isRecord(value)) return "object";
  return typeof value === "number" ? "number" : typeof value === "boolean" ? "boolean" : "null";
};

/** How many things a value holds: characters, items or keys; one for anything else. */
export const countOf = (value: unknown): number =>
  typeof value === "string" ? value.length : typeof value === "object" && value !== null ? cursorOf(value).count : 1;

const clip = (text: string, maxBytes: number): string => {
  const end = textEnd(text, 0, maxBytes, maxBytes, false);
  // A lone surrogate has no form in UTF-8.
  return text.slice(0, end).replace(/\p{Surrogate}/gu, "\uFFFD");
};

/** The first bytes of a value's text: of a text itself, of a list its JSON, of an object its keys. */
const headOf = (value: unknown, maxBytes: number): string => {
  if (typeof value === "string") return clip(value, maxBytes);
  if (isRecord(value)) return clip(`keys: ${cursorOf(value).keys!.slice(0, maxBytes).join(", ")}`, maxBytes);
  let head = "";
  for (const piece of jsonPieces(value, maxBytes)) {
    head += piece;
    if (head.length >= maxBytes) break;
  }
  return clip(head, maxBytes);
};

/** Describes a value; `size` is its JSON size where the caller knows it, `head` the bytes of its beginning to show. */
export const summarize = (value: unknown, head: number, size?: number): Summary => {
  if (isMedia(value)) return { kind: "binary", size: value.size };
  const bytes = typeof value === "string" ? utf8Size(value) : size;
  return {
    kind: kindOf(value),
    ...(bytes === undefined ? {} : { size: bytes }),
    count: countOf(value),
    head: headOf(value, head),
  };
};

/** One line that stands for a value on a page, for example `[list of 1204 items: [1,2,3…]`. */
export const stubText = (value: unknown): string => {
  const { kind, count, size, head } = summarize(value, 120);
  const unit = { text: "characters", list: "items", object: "keys" }[kind as "text" | "list" | "object"];
  return kind === "binary" ? `[binary of ${size} bytes]` : `[${kind} of ${count} ${unit}: ${head}…]`;
};
