/** Pure: one page of a value. Texts break on code-point borders, lists by items, objects by keys. */
import {
  childAt,
  cursorOf,
  type Cursor,
  keysOf,
  isRecord,
  keyAt,
  scalarSize,
  sizeWithin,
  splitsPair,
  textEnd,
} from "./json.ts";
import { shownDepth } from "./mcp-artifact.ts";
import { countOf, kindOf, stubText, type ValueKind } from "./summary.ts";

export interface Page {
  readonly kind: ValueKind;
  /** Characters (UTF-16 units), items or keys of the whole value. */
  readonly total: number;
  /** Where this page starts. */
  readonly offset: number;
  readonly value: unknown;
  /** Offset of the next page; absent on the last one. */
  readonly next?: number | undefined;
  /** Keys of entries too large for any page: a short text stands for each; read them by their own pointer. */
  readonly cut?: ReadonlyArray<string | number> | undefined;
}

export interface PageOptions {
  /** Default 0. */
  readonly offset?: number | undefined;
  /** At most so many characters, items or keys. Default: as many as fit. */
  readonly length?: number | undefined;
  /** Bytes of `value` as JSON text. */
  readonly maxBytes: number;
  /** How an entry is shown; `undefined` when that takes more than `maxBytes`. Default: as it is. */
  readonly show?: ((key: string | number, entry: unknown, maxBytes: number) => Sized | undefined) | undefined;
}

interface Sized {
  readonly value: unknown;
  readonly size: number;
}

const asItIs = (_key: string | number, entry: unknown, maxBytes: number): Sized | undefined => {
  const size = sizeWithin(entry, maxBytes, shownDepth);
  return size === undefined ? undefined : { value: entry, size };
};

/** Keys of large objects, so that reading one page after the other does not list them each time. */
const keyCache = new WeakMap<object, ReadonlyArray<string>>();

const pagedCursor = (value: object): Cursor => {
  if (!isRecord(value)) return cursorOf(value);
  let keys = keyCache.get(value);
  if (!keys) keyCache.set(value, (keys = keysOf(value)));
  return { value, keys, count: keys.length, at: 0 };
};

const textPage = (text: string, options: PageOptions): Page => {
  const asked = Math.min(options.offset ?? 0, text.length);
  const offset = splitsPair(text, asked) ? asked - 1 : asked;
  const length = options.length ?? text.length;
  const end = textEnd(text, offset, length, options.maxBytes - 2, true);
  const next = end < text.length ? { next: end } : {};
  return { kind: "text", total: text.length, offset, value: text.slice(offset, end), ...next };
};

const containerPage = (container: object, options: PageOptions): Page => {
  const show = options.show ?? asItIs;
  const cursor = pagedCursor(container);
  const offset = Math.min(options.offset ?? 0, cursor.count);
  const end = Math.min(cursor.count, offset + (options.length ?? cursor.count));
  const entries: Array<[string | number, unknown]> = [];
  const cut: Array<string | number> = [];
  let left = options.maxBytes - 2;
  let i = offset;
  for (; i < end; i++) {
    const key = keyAt(cursor, i);
    const keySize = (typeof key === "string" ? scalarSize(key) + 1 : 0) + 1;
    const shown = show(key, childAt(cursor, i), options.maxBytes - 2 - keySize);
    const value = shown ? shown.value : stubText(childAt(cursor, i));
    const size = keySize + (shown ? shown.size : scalarSize(value) + scalarSize(key) + 1);
    if (size > left && entries.length > 0) break;
    left -= size;
    entries.push([key, value]);
    if (!shown) cut.push(key);
  }
  return {
    kind: kindOf(container),
    total: cursor.count,
    offset,
    value: cursor.keys ? Object.fromEntries(entries) : entries.map(([, item]) => item),
    ...(i < cursor.count ? { next: i } : {}),
    ...(cut.length > 0 ? { cut } : {}),
  };
};

/** Takes one page of a value. It always moves on: it holds at least one character or entry, where there is one. */
export const takePage = (value: unknown, options: PageOptions): Page => {
  if (typeof value === "string") return textPage(value, options);
  if (typeof value === "object" && value !== null) return containerPage(value, options);
  return { kind: kindOf(value), total: countOf(value), offset: 0, value };
};
