/** Damages bytes the way pipes, proxies and bad servers do, and cuts them into chunks anywhere. */
import * as fc from "fast-check";
import { jsonText } from "../../src/core/artifact/json.ts";

export type ByteEdit =
  | { readonly op: "flip"; readonly at: number; readonly bit: number }
  | { readonly op: "insert"; readonly at: number; readonly bytes: ReadonlyArray<number> }
  | { readonly op: "cut" | "drop" | "double"; readonly at: number; readonly length: number };

const ascii = (text: string): ReadonlyArray<number> => Array.from(text, (character) => character.charCodeAt(0));

const odd: ReadonlyArray<ReadonlyArray<number>> = [
  ascii("\n"),
  ascii("\n\n"),
  ascii("\r"),
  ascii("\r\n"),
  ascii("\0"),
  [0xef, 0xbb, 0xbf],
  [0xff],
  [0xc0, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xe2, 0x80],
  [0xf0, 0x9f, 0x98],
  [0xe2, 0x80, 0xa8],
  ascii("{"),
  ascii("}"),
  ascii('"'),
  ascii("\\"),
  ascii("\\u"),
  ascii("\\ud800"),
  ascii(","),
  ascii("["),
  ascii("null"),
  ascii("data: "),
  ascii(": "),
  ascii('"id":1,'),
  ascii('"__proto__":{},'),
  ascii("1e999"),
];

const at = fc.nat(4000);

const byteEdit: fc.Arbitrary<ByteEdit> = fc.oneof(
  fc.record({ op: fc.constant("flip" as const), at, bit: fc.nat(7) }),
  fc.record({ op: fc.constant("insert" as const), at, bytes: fc.constantFrom(...odd) }),
  fc.record({ op: fc.constantFrom("cut" as const, "drop", "double"), at, length: fc.integer({ min: 1, max: 40 }) }),
);

const applied = (bytes: Uint8Array, edit: ByteEdit): Uint8Array => {
  const place = bytes.length === 0 ? 0 : edit.at % (bytes.length + 1);
  const before = bytes.subarray(0, place);
  if (edit.op === "cut") return before;
  if (edit.op === "flip") {
    const copy = bytes.slice();
    if (place < copy.length) copy[place]! ^= 1 << edit.bit;
    return copy;
  }
  if (edit.op === "insert") return joined([before, Uint8Array.from(edit.bytes), bytes.subarray(place)]);
  const after = bytes.subarray(place + edit.length);
  return edit.op === "drop"
    ? joined([before, after])
    : joined([before, bytes.subarray(place, place + edit.length), bytes.subarray(place)]);
};

export const joined = (parts: ReadonlyArray<Uint8Array>): Uint8Array => {
  const all = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let size = 0;
  for (const part of parts) {
    all.set(part, size);
    size += part.length;
  }
  return all;
};

/** What happens to the bytes on their way; most messages are damaged little or not at all. */
export interface Damage {
  readonly edits: ReadonlyArray<ByteEdit>;
  /** Where the bytes are split into chunks. */
  readonly splits: ReadonlyArray<number>;
}

export const damage: fc.Arbitrary<Damage> = fc.record({
  edits: fc.oneof(
    { weight: 2, arbitrary: fc.constant([]) },
    { weight: 3, arbitrary: fc.array(byteEdit, { minLength: 1, maxLength: 3, size: "max" }) },
  ),
  splits: fc.array(at, { maxLength: 3, size: "max" }),
});

const encoder = new TextEncoder();

/** The bytes of a value as JSON, of any depth. */
export const wireText = (message: unknown): string => jsonText(message);

export const damaged = (text: string, { edits }: Damage): Uint8Array => edits.reduce(applied, encoder.encode(text));

export const chunksOf = (bytes: Uint8Array, splits: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  if (bytes.length === 0) return [];
  const places = [...new Set(splits.map((split) => split % bytes.length))].toSorted((a, b) => a - b);
  return [0, ...places].map((start, i) => bytes.subarray(start, places[i] ?? bytes.length));
};
