import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { childEnvironment } from "../../src/transports/stdio-environment.ts";
import { makeSecrets, printable } from "../../src/transports/stdio-secrets.ts";
import { StderrTail } from "../../src/transports/stdio-stderr-tail.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe("child environment", () => {
  const host = {
    PATH: "/bin",
    HOME: "/root",
    LANG: "C",
    AWS_SECRET_ACCESS_KEY: "k",
    NODE_OPTIONS: "--x",
    TMPDIR: undefined,
  };

  it("holds the allow-list and the endpoint's own entries, which win", () => {
    expect(childEnvironment({ HOME: "/srv", TOKEN: "t" }, host, false)).toEqual({
      PATH: "/bin",
      HOME: "/srv",
      LANG: "C",
      TOKEN: "t",
    });
    expect(childEnvironment(undefined, host, false)).toEqual({ PATH: "/bin", HOME: "/root", LANG: "C" });
  });

  it("takes names on Windows whatever their case", () => {
    const windows = { PATH: "C:\\Windows", SYSTEMROOT: "C:\\Windows", TOKEN: "host" };
    expect(childEnvironment({ Path: "D:\\bin" }, windows, true)).toEqual({
      Path: "D:\\bin",
      SYSTEMROOT: "C:\\Windows",
    });
  });
});

describe("stderr tail", () => {
  const secrets = makeSecrets({ TOKEN: "tök-9f8e7d6c", KEY: "first line of it\nsecond line", FLAG: "1" });

  it("is the end of what was written, however it was cut, with secrets masked", () => {
    const piece = fc.oneof(
      fc.constantFrom("tök-9f8e7d6c", "second line", "1", "\n"),
      fc.string({ unit: "grapheme", maxLength: 20 }),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), fc.array(fc.nat(), { maxLength: 20 }), (pieces, places) => {
        const all = bytes(pieces.join(""));
        const tail = new StderrTail(40, secrets);
        const at = [...new Set(places.map((place) => place % (all.length + 1)))].toSorted((a, b) => a - b);
        for (const [i, from] of [0, ...at].entries()) tail.push(all.slice(from, at[i] ?? all.length));
        const text = tail.toString();
        // What ends all output ends the tail.
        const whole = printable(secrets.cover(new TextDecoder().decode(all))).trim();
        expect(whole.endsWith(text)).toBe(true);
        expect(text).not.toMatch(/tök-9f8e|8e7d6c|second line/);
      }),
      { numRuns: 500 },
    );
  });

  it("shows no rest of a secret where the tail begins", () => {
    for (let after = 0; after < 60; after++) {
      const tail = new StderrTail(20, makeSecrets({ TOKEN: "abcdefghijklmnop" }));
      tail.push(bytes(`start abcdefghijklmnop${"-".repeat(after)}`));
      expect(tail.toString()).not.toMatch(/[b-o]/);
    }
  });

  it("also masks JSON-escaped and URL-encoded forms, and removes terminal sequences", () => {
    const tail = new StderrTail(200, makeSecrets({ A: 'pass"word', B: "p@ss/word" }));
    tail.push(
      bytes(`\u001b[31mred\u001b[0m ${JSON.stringify({ a: 'pass"word' })} ?t=${encodeURIComponent("p@ss/word")}\u0007`),
    );
    expect(tail.toString()).toBe('red {"a":"***"} ?t=***');
  });

  it("C-004: a flood without a newline takes no more memory than a tail", () => {
    const tail = new StderrTail(1000, secrets);
    const chunk = new Uint8Array(64 * 1024).fill(101);
    const before = process.memoryUsage().arrayBuffers;
    for (let i = 0; i < 4000; i++) tail.push(chunk);
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1024 * 1024);
    expect(tail.toString()).toBe("e".repeat(1000));
  });
});
