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

/** Children of a container with their keys; values that JSON leaves out are left out. */
export const entriesOf = (value: object): ReadonlyArray<readonly [string | number, unknown]> =>
  Array.isArray(value)
    ? value.map((item, i) => [i, item] as const)
    : Object.entries(value).filter(([, item]) => item !== undefined && typeof item !== "function");

/**
 * Bytes of a value as JSON text, or `undefined` when it has more than `maxBytes`
 * bytes or more than `maxDepth` levels. Stops as soon as that is known.
 */
export const sizeWithin = (value: unknown, maxBytes: number, maxDepth: number): number | undefined => {
  let size = 0;
  const stack: Array<{ readonly value: unknown; readonly depth: number }> = [{ value, depth: 0 }];
  for (let top = stack.pop(); top; top = stack.pop()) {
    if (!isContainer(top.value)) {
      if (typeof top.value === "string" && top.value.length + 2 > maxBytes - size) return undefined;
      size += scalarSize(top.value);
    } else {
      if (top.depth >= maxDepth) return undefined;
      const count = Array.isArray(top.value) ? top.value.length : Object.keys(top.value).length;
      size += 2 + Math.max(0, count - 1);
      if (size + count > maxBytes) return undefined;
      for (const [key, child] of entriesOf(top.value)) {
        if (typeof key === "string") size += stringSize(key) + 1;
        stack.push({ value: child, depth: top.depth + 1 });
      }
    }
    if (size > maxBytes) return undefined;
  }
  return size;
};

/** JSON text piece by piece; memory and stack stay small however deep the value is. */
export function* jsonPieces(value: unknown): Generator<string> {
  type Frame = { readonly entries: ReadonlyArray<readonly [string | number, unknown]>; at: number; close: string };
  const stack: Array<Frame> = [];
  const open = (next: unknown): string => {
    if (!isContainer(next)) return scalarText(next);
    const list = Array.isArray(next);
    stack.push({ entries: entriesOf(next), at: 0, close: list ? "]" : "}" });
    return list ? "[" : "{";
  };
  yield open(value);
  for (let frame = stack.at(-1); frame; frame = stack.at(-1)) {
    const entry = frame.entries[frame.at];
    if (!entry) {
      stack.pop();
      yield frame.close;
      continue;
    }
    const comma = frame.at++ === 0 ? "" : ",";
    const key = typeof entry[0] === "string" ? `${JSON.stringify(entry[0])}:` : "";
    yield comma + key + open(entry[1]);
  }
}

/** `JSON.stringify` that does not overflow on deep values; what is no JSON at all becomes a short note. */
export const jsonText = (value: unknown): string => {
  try {
    return scalarText(value);
  } catch (cause) {
    return cause instanceof RangeError ? Array.from(jsonPieces(value)).join("") : '"[not JSON]"';
  }
};

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
    if (Object.is(a, b) || a === b) continue;
    if (!isContainer(a) || !isContainer(b) || Array.isArray(a) !== Array.isArray(b)) return false;
    const entries = entriesOf(a);
    if (entries.length !== entriesOf(b).length) return false;
    for (const [key, child] of entries) {
      if (!Object.hasOwn(b, key)) return false;
      stack.push([child, (b as Record<string | number, unknown>)[key]]);
    }
  }
  return true;
};
