/** JSON values that break assumptions: wrong types, extremes, keys of the prototype, depth and length. */
import * as fc from "fast-check";

export type Json = { readonly [key: string]: unknown };

const nested = (levels: number, wrap: (inner: unknown) => unknown): unknown => {
  let value: unknown = 1;
  for (let level = 0; level < levels; level++) value = wrap(value);
  return value;
};

const list = (inner: unknown): unknown => [inner];
const object = (inner: unknown): unknown => ({ a: inner });

/** JSON text, so that `__proto__` is an own key as it is on the wire. */
const parsed = (text: string): unknown => JSON.parse(text) as unknown;

/** Keys that objects seem to have without having them, and keys the protocol itself uses. */
export const oddKeys: ReadonlyArray<string> = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "valueOf",
  "toJSON",
  "then",
  "hasOwnProperty",
  "length",
  "",
  "0",
  "-1",
  "\ud800",
  "\u0000",
  "a/b",
  "m~n",
  "id",
  "method",
  "params",
  "result",
  "error",
  "_meta",
  "type",
  "$ref",
];

const usual: ReadonlyArray<unknown> = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  0.5,
  1e308,
  -1e308,
  5e-324,
  2 ** 31,
  2 ** 53,
  2 ** 63,
  "",
  " ",
  "0",
  "1e999",
  "true",
  "null",
  "undefined",
  "NaN",
  "[object Object]",
  "\ud800",
  "\udfff\ud800",
  "\u0000",
  "\ufeff",
  "\u2028",
  "%",
  "%ff",
  "http://",
  "javascript:alert(1)",
  "file:///etc/passwd",
  "data:,",
  ...oddKeys,
  [],
  [null],
  [[]],
  [{}],
  {},
  parsed('{"then":1}'),
  { length: 1e9 },
  { toString: 1, valueOf: 1 },
  { toString: null },
  { toJSON: "x" },
  { constructor: null },
  { constructor: { prototype: null } },
  { hasOwnProperty: 1 },
  parsed('{"__proto__":{"polluted":true}}'),
  parsed('{"__proto__":null}'),
  parsed('{"constructor":{"prototype":{"polluted":true}}}'),
  { "": "" },
];

const large: ReadonlyArray<unknown> = [
  nested(600, list),
  nested(600, object),
  nested(12_000, list),
  nested(12_000, object),
  "x".repeat(70_000),
  "\ud83d\ude00".repeat(3000),
  `${"[".repeat(3000)}${"]".repeat(3000)}`,
  "<".repeat(5000),
  "{a}".repeat(400),
  Array.from({ length: 2000 }, (_, i) => i),
  Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`k${i}`, i])),
];

export const oddKey: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: fc.constantFrom(...oddKeys) },
  { weight: 1, arbitrary: fc.string({ maxLength: 8, unit: "binary" }) },
);

/** Any of them; the large ones are rare, as they cost most of the time. */
export const oddValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 100, arbitrary: fc.constantFrom(...usual) },
  { weight: 10, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
  { weight: 10, arbitrary: fc.string({ maxLength: 20, unit: "binary" }) },
  { weight: 10, arbitrary: fc.array(fc.constantFrom(...usual), { maxLength: 4 }) },
  { weight: 10, arbitrary: fc.dictionary(oddKey, fc.constantFrom(...usual), { maxKeys: 4 }) },
  { weight: 1, arbitrary: fc.constantFrom(...large) },
);
