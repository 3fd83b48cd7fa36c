import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { Framer } from "../../src/transports/stdio-framing.ts";

interface Seen {
  readonly messages: Array<any>;
  readonly skipped: Array<string>;
  readonly tooLarge: Array<{ readonly id: string | number | undefined; readonly size: number }>;
}

const feed = (chunks: Iterable<Uint8Array>, max = 1_000_000): Seen => {
  const seen: Seen = { messages: [], skipped: [], tooLarge: [] };
  const framer = new Framer(max, {
    onMessage: (message) => seen.messages.push(message),
    onSkip: (line) => seen.skipped.push(line),
    onTooLarge: (fault) => seen.tooLarge.push(fault),
  });
  for (const chunk of chunks) framer.push(chunk);
  return seen;
};

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** A response of exactly this many bytes, and its newline. */
const frame = (length: number): string => {
  const empty = JSON.stringify({ jsonrpc: "2.0", id: 1, result: "" }).length;
  return `${JSON.stringify({ jsonrpc: "2.0", id: 1, result: "x".repeat(length - empty) })}\n`;
};

/** Cuts bytes at the given places, taken modulo the length. */
const cut = (all: Uint8Array, places: ReadonlyArray<number>): Array<Uint8Array> => {
  const at = [...new Set(places.map((place) => place % (all.length + 1)))].toSorted((a, b) => a - b);
  return [0, ...at].map((from, i) => all.slice(from, at[i] ?? all.length));
};

const message = fc.record({
  jsonrpc: fc.constant("2.0"),
  id: fc.oneof(fc.integer(), fc.string()),
  result: fc.jsonValue(),
});
const noise = fc.oneof(
  fc.constantFrom("", "   ", "{ not json", "plain banner", "42", '"text"', "null", "[]", "[1]", '{"level":"info"}'),
  fc.string({ unit: "grapheme" }).map((text) => `log ${text.replaceAll(/[\r\n]/g, " ")}`),
);
const line = fc.oneof(
  message.map((value) => ({ text: JSON.stringify(value), messages: [value], skipped: [] as Array<string> })),
  fc.array(message, { minLength: 1, maxLength: 3 }).map((batch) => ({
    text: JSON.stringify(batch),
    messages: batch,
    skipped: [],
  })),
  noise.map((text) => ({ text, messages: [], skipped: [text] })),
);

describe("stdio framing", () => {
  it("gives back every message and every stray line, however the bytes are cut", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(line, fc.constantFrom("\n", "\r\n")), { maxLength: 12 }),
        fc.array(fc.nat(), { maxLength: 30 }),
        (lines, places) => {
          const input = bytes(lines.map(([{ text }, ending]) => text + ending).join(""));
          const seen = feed(cut(input, places));
          // JSON has one way to write a number that JavaScript has two of: -0 comes back as 0.
          expect(JSON.stringify(seen.messages)).toBe(JSON.stringify(lines.flatMap(([{ messages }]) => messages)));
          expect(seen.skipped.map((text) => text.replace(/\r$/, ""))).toEqual(
            lines.flatMap(([{ skipped }]) => skipped),
          );
          expect(seen.tooLarge).toEqual([]);
        },
      ),
      { numRuns: 500 },
    );
  });

  it("C-006: keeps multi-byte characters that are split over chunks", () => {
    const text = "em — dash, 漢字, 😀 and a\u2028separator";
    const input = bytes(`${JSON.stringify({ jsonrpc: "2.0", id: 1, result: { text } })}\n`);
    const seen = feed([...input].map((byte) => Uint8Array.of(byte)));
    expect(seen.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { text } }]);
    expect(seen.skipped).toEqual([]);
  });

  it("delivers the messages of a batch and leaves out what is none", () => {
    const input = bytes('[{"jsonrpc":"2.0","id":1,"result":{}},7,{"jsonrpc":"2.0","method":"x"}]\n');
    expect(feed([input]).messages.map(({ id, method }) => id ?? method)).toEqual([1, "x"]);
  });

  it("tolerates a byte order mark", () => {
    expect(feed([bytes('\uFEFF{"jsonrpc":"2.0","id":1,"result":{}}\n')]).messages).toHaveLength(1);
  });

  const large = "x".repeat(5000);
  const over: ReadonlyArray<readonly [string, unknown, string | number | undefined]> = [
    ["id first", { jsonrpc: "2.0", id: 7, result: { large } }, 7],
    ["id without version before it", { id: 'a"b', jsonrpc: "2.0", error: { code: 1, message: large } }, 'a"b'],
    ["id last", { result: { large }, jsonrpc: "2.0", id: 8 }, 8],
    ["id before the version at the end", { jsonrpc: "2.0", result: { large }, id: -3 }, -3],
    ["id then version at the end", { result: { large }, id: "k", jsonrpc: "2.0" }, "k"],
    ["ids within the result", { jsonrpc: "2.0", result: { id: 1, large, last: { id: 2 } } }, undefined],
    ["an id in a string at the end", { jsonrpc: "2.0", result: `${large},"id":5}` }, undefined],
    [
      "a request of the server's own",
      { jsonrpc: "2.0", id: 9, method: "sampling/createMessage", params: { large } },
      undefined,
    ],
    ["its request with the id last", { method: "roots/list", params: { large }, jsonrpc: "2.0", id: 9 }, undefined],
    ["a batch", [{ jsonrpc: "2.0", id: 7, result: { large } }], undefined],
  ];
  for (const [name, value, id] of over) {
    it(`tells which request a too large message answers: ${name}`, () => {
      const text = JSON.stringify(value);
      const next = { jsonrpc: "2.0", id: 99, result: {} };
      const input = bytes(`${text}\n${JSON.stringify(next)}\n`);
      for (const size of [1, 7, 600, 1000, input.length]) {
        const chunks = Array.from({ length: Math.ceil(input.length / size) }, (_, i) =>
          input.slice(i * size, (i + 1) * size),
        );
        const seen = feed(chunks, 1000);
        expect(seen.tooLarge.map((fault) => fault.id)).toEqual([id]);
        expect(seen.tooLarge[0]!.size).toBeGreaterThan(1000);
        expect(seen.messages).toEqual([next]);
        expect(seen.skipped).toEqual([]);
      }
    });
  }

  it("takes a message of exactly the limit and refuses one byte more", () => {
    fc.assert(
      fc.property(fc.constantFrom(0, 1), fc.array(fc.nat(), { maxLength: 5 }), (extra, places) => {
        const seen = feed(cut(bytes(frame(600 + extra)), places), 600);
        expect([seen.messages.length, seen.tooLarge.length]).toEqual([1 - extra, extra]);
      }),
    );
  });

  it("C-008: takes time in proportion to the bytes, for one long line in small chunks", () => {
    const input = bytes(`${JSON.stringify({ jsonrpc: "2.0", id: 1, result: "x".repeat(16 * 1024 * 1024) })}\n`);
    const chunks: Array<Uint8Array> = [];
    for (let at = 0; at < input.length; at += 256) chunks.push(input.subarray(at, at + 256));
    const startedAt = performance.now();
    expect(feed(chunks, 2 ** 30).messages).toHaveLength(1);
    // Takes some 100 ms. A re-scan or a re-copy for each of the 65,536 chunks would touch 500 GB.
    expect(performance.now() - startedAt).toBeLessThan(4000);
  });

  it("keeps no more of a message over the limit than the limit", () => {
    const framer = new Framer(10_000, { onMessage: () => {}, onSkip: () => {}, onTooLarge: () => {} });
    const chunk = new Uint8Array(64 * 1024).fill(120);
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 2000; i++) framer.push(chunk);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1024 * 1024);
  });
});
