/** Pure: JSON values of any depth and size, without recursion. */

/** What a traversal needs of a container: its children, in order. */
const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

/** A plain JSON object, not a list. */
export const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  isContainer(value) && !Array.isArray(value);

/** Bytes of one UTF-16 unit at `i` in UTF-8; a surrogate pair counts on its first unit. */
const unitBytes = (text: string, i: number): number => {
  const unit = text.charCodeAt(i);
  if (unit < 0x80) return 1;
  if (unit < 0x800) return 2;
  if (unit < 0xd800 || unit > 0xdfff) return 3;
  if (unit > 0xdbff) return 3;
  const next = text.charCodeAt(i + 1);
  return next >= 0xdc00 && next <= 0xdfff ? 4 : 3;
};

const isPairAt = (text: string, i: number): boolean => unitBytes(text, i) === 4;

/** True between the two halves of a surrogate pair. */
export const splitsPair = (text: string, index: number): boolean =>
  index > 0 && index < text.length && isPairAt(text, index - 1);

/** Bytes of a text in UTF-8. A lone surrogate counts as the three bytes of U+FFFD. */
export const utf8Size = (text: string): number => {
  let size = 0;
  for (let i = 0; i < text.length; i++) {
    const bytes = unitBytes(text, i);
    size += bytes;
    if (bytes === 4) i++;
  }
  return size;
};

/** Bytes that JSON adds to or needs for one unit: escapes of quotes, controls and lone surrogates. */
const escapedBytes = (text: string, i: number): number => {
  const unit = text.charCodeAt(i);
  if (unit === 0x22 || unit === 0x5c) return 2;
  if (unit < 0x20) return unit === 8 || unit === 9 || unit === 10 || unit === 12 || unit === 13 ? 2 : 6;
  if (unit >= 0xd800 && unit <= 0xdfff) return isPairAt(text, i) ? 4 : 6;
  return unitBytes(text, i);
};

/**
 * Where a piece of `text` that starts at `start` must end to stay within `maxBytes`
 * and `maxUnits`. Never between the halves of a pair; always moves on by at least
 * one code point. `escaped` counts the bytes of the text as a JSON string.
 */
export const textEnd = (text: string, start: number, maxUnits: number, maxBytes: number, escaped: boolean): number => {
  let end = start;
  let size = 0;
  while (end < text.length) {
    const bytes = escaped ? escapedBytes(text, end) : unitBytes(text, end);
    const units = isPairAt(text, end) ? 2 : 1;
    if (end > start && (size + bytes > maxBytes || end - start + units > maxUnits)) break;
    size += bytes;
    end += units;
  }
  return end;
};

/** Stands for what cannot be written. */
const notJson = '"[not JSON]"';

const scalarText = (value: unknown): string => {
  const text = JSON.stringify(value) as string | undefined;
  return text ?? "null";
};

/** Bytes of a string as JSON text, quotes included. */
const stringSize = (text: string): number => {
  let size = 2;
  for (let i = 0; i < text.length; i++) {
    const bytes = escapedBytes(text, i);
    size += bytes;
    if (bytes === 4) i++;
  }
  return size;
};

/** Bytes of a value that holds no others, as JSON text. */
export const scalarSize = (value: unknown): number =>
  typeof value === "string" ? stringSize(value) : scalarText(value).length;

/** Keys of an object in order; entries that JSON leaves out are left out. */
export const keysOf = (value: Readonly<Record<string, unknown>>): ReadonlyArray<string> => {
  const keys = Object.keys(value);
  const kept = (key: string): boolean => value[key] !== undefined && typeof value[key] !== "function";
  return keys.every(kept) ? keys : keys.filter(kept);
};

/** The place of a traversal in one container. */
export interface Cursor {
  readonly value: object;
  /** Keys of an object; `undefined` for a list. */
  readonly keys: ReadonlyArray<string> | undefined;
  readonly count: number;
  /** Index of the next child. */
  at: number;
}

export const cursorOf = (value: object): Cursor => {
  if (Array.isArray(value)) return { value, keys: undefined, count: value.length, at: 0 };
  const keys = keysOf(value as Record<string, unknown>);
  return { value, keys, count: keys.length, at: 0 };
};

/** Key of the child at `index`: a list's index, an object's key. */
export const keyAt = (cursor: Cursor, index: number): string | number => cursor.keys?.[index] ?? index;

export const childAt = (cursor: Cursor, index: number): unknown =>
  (cursor.value as Readonly<Record<string | number, unknown>>)[keyAt(cursor, index)];

/** Bytes of a container's brackets, commas and keys. */
export const frameSize = (cursor: Cursor): number => {
  let size = 2 + Math.max(0, cursor.count - 1);
  if (cursor.keys) for (const key of cursor.keys) size += stringSize(key) + 1;
  return size;
};

/**
 * Bytes of a value as JSON text, or `undefined` when it has more than `maxBytes`
 * bytes or more than `maxDepth` levels. Stops as soon as that is known.
 */
export const sizeWithin = (value: unknown, maxBytes: number, maxDepth: number): number | undefined => {
  const stack: Array<Cursor> = [];
  let size = 0;
  const enter = (next: unknown): boolean => {
    if (!isContainer(next)) {
      if (typeof next === "string" && next.length + 2 > maxBytes - size) return false;
      size += scalarSize(next);
      return size <= maxBytes;
    }
    if (stack.length >= maxDepth) return false;
    const cursor = cursorOf(next);
    if (size + cursor.count > maxBytes) return false;
    size += frameSize(cursor);
    stack.push(cursor);
    return size <= maxBytes;
  };
  if (!enter(value)) return undefined;
  for (let top = stack.at(-1); top; top = stack.at(-1)) {
    if (top.at >= top.count) stack.pop();
    else if (!enter(childAt(top, top.at++))) return undefined;
  }
  return size;
};

/**
 * JSON text piece by piece, strings cut to `maxString` units; the call stack stays
 * small however deep the value is. A value inside itself becomes a short note.
 */
export function* jsonPieces(value: unknown, maxString: number = Number.POSITIVE_INFINITY): Generator<string> {
  const stack: Array<Cursor> = [];
  const around = new Set<object>();
  const open = (next: unknown): string => {
    if (!isContainer(next))
      return scalarText(typeof next === "string" && next.length > maxString ? next.slice(0, maxString) : next);
    if (around.has(next)) return notJson;
    around.add(next);
    const cursor = cursorOf(next);
    stack.push(cursor);
    return cursor.keys ? "{" : "[";
  };
  yield open(value);
  for (let top = stack.at(-1); top; top = stack.at(-1)) {
    if (top.at >= top.count) {
      stack.pop();
      around.delete(top.value);
      yield top.keys ? "}" : "]";
      continue;
    }
    const comma = top.at === 0 ? "" : ",";
    const key = top.keys ? `${JSON.stringify(keyAt(top, top.at))}:` : "";
    yield comma + key + open(childAt(top, top.at++));
  }
}

/** True when a value has more levels than the built-in writer is trusted with. */
export const isDeep = (value: unknown): boolean => {
  const stack: Array<Cursor> = isContainer(value) ? [cursorOf(value)] : [];
  for (let top = stack.at(-1); top && stack.length <= 500; top = stack.at(-1)) {
    if (top.at >= top.count) stack.pop();
    else {
      const child = childAt(top, top.at++);
      if (isContainer(child)) stack.push(cursorOf(child));
    }
  }
  return stack.length > 0;
};

/**
 * `JSON.stringify` for values of any depth: the built-in one overflows on deep values,
 * and takes a second to do so on one runtime. What is no JSON at all becomes a short note.
 */
export const jsonText = (value: unknown): string => {
  try {
    return isDeep(value) ? Array.from(jsonPieces(value)).join("") : scalarText(value);
  } catch {
    return notJson;
  }
};

/**
 * Any value of a message as a text to show: a text as it is, all else as JSON. `String`
 * fails on objects whose own `toString` is no function, and on very deep lists.
 */
export const shownText = (value: unknown): string => (typeof value === "string" ? value : jsonText(value));

/** `JSON.parse` that answers `undefined` for what is no JSON. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** Equality of JSON values; the order of keys does not count. */
export const sameJson = (left: unknown, right: unknown): boolean => {
  const stack: Array<readonly [unknown, unknown]> = [[left, right]];
  for (let top = stack.pop(); top; top = stack.pop()) {
    const [a, b] = top;
    if (a === b) continue;
    if (!isContainer(a) || !isContainer(b) || Array.isArray(a) !== Array.isArray(b)) return false;
    const one = cursorOf(a);
    const two = cursorOf(b);
    if (one.count !== two.count) return false;
    for (let i = 0; i < one.count; i++) {
      const key = keyAt(one, i);
      if (!Object.hasOwn(b, key)) return false;
      stack.push([childAt(one, i), (b as Readonly<Record<string | number, unknown>>)[key]]);
    }
  }
  return true;
};
