import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as fc from "fast-check";
import { readEvents, type StreamEvent } from "../../src/transports/http-body.ts";
import type { EventWriter } from "../../src/testing/servers/http.ts";
import { openDriver, scriptedServer } from "../support/scripted-http-client.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Writes the pieces one by one, each in a packet of its own, then ends. */
const write = async (stream: EventWriter, pieces: ReadonlyArray<string | Uint8Array>): Promise<void> => {
  for (const piece of pieces) {
    stream.raw(piece);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
  stream.end();
};

const text = "— 日本 🦜";

describe("event streams", () => {
  const wellFormed: Record<string, (json: string) => ReadonlyArray<string | Uint8Array>> = {
    LF: (json) => [`event: message\ndata: ${json}\n\n`],
    CRLF: (json) => [`event: message\r\ndata: ${json}\r\n\r\n`],
    "bare CR": (json) => [`event: message\rdata: ${json}\r\r`],
    "mixed line ends": (json) => [`event: message\r\ndata: ${json}\n\r`],
    "CR and LF in different writes": (json) => [`data: ${json}\r`, "\n\r", "\n"],
    "several data lines": (json) => [
      `data: ${json.slice(0, 1)}\ndata: ${json.slice(1, -1)}\ndata:${json.slice(-1)}\n\n`,
    ],
    "a leading BOM": (json) => [`\uFEFFdata: ${json}\n\n`],
    "no event field": (json) => [`data: ${json}\n\n`],
    "no blank after the colon": (json) => [`data:${json}\n\n`],
    "comments and unknown fields": (json) => [`: ping\n\n: ping\nfoo: bar\n:\ndata: ${json}\n: x\n\n`, ": bye\n\n"],
    "a priming event with an id first": (json) => ["id: 1\ndata: \n\n", `id: 2\ndata: ${json}\n\n`],
    "other event types beside": (json) => [`event: other\ndata: {}\n\ndata: ${json}\n\n`],
    "garbage events beside": (json) => [`data: oops\n\ndata: 7\n\ndata: ${json}\n\n`],
    "bytes one by one": (json) => Array.from(bytes(`data: ${json}\n\n`), (byte) => new Uint8Array([byte])),
  };
  for (const [name, pieces] of Object.entries(wellFormed))
    it.effect(`C-024: ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer((x) => {
          const { rpc } = x.request;
          if (rpc?.method !== "tools/call") return x.mcp();
          return write(x.stream(), pieces(JSON.stringify({ jsonrpc: "2.0", id: rpc.id, result: { text } })));
        });
        const driver = yield* openDriver(server.url);
        expect(yield* driver.request("initialize", {})).toBeDefined();
        expect(yield* driver.request("tools/call")).toEqual({ text });
        expect(driver.messages).toEqual([]);
        expect(driver.diagnostics).toHaveLength(name.startsWith("garbage") ? 1 : 0);
      }),
    );

  it.effect("C-024: a character cut by a chunk border arrives whole", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) => {
        const all = bytes(`data: ${JSON.stringify({ jsonrpc: "2.0", id: x.request.rpc.id, result: { text } })}\n\n`);
        const cut = all.indexOf(0xf0) + 2;
        return write(x.stream(), [all.slice(0, cut), all.slice(cut)]);
      });
      const driver = yield* openDriver(server.url);
      expect(yield* driver.request("tools/call")).toEqual({ text });
    }),
  );

  it.effect("property: however lines end and chunks are cut, the same events come out", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(fc.record({ id: fc.stringMatching(/^[a-z0-9]{1,5}$/), data: fc.string({ unit: "grapheme" }) }), {
            maxLength: 6,
          }),
          fc.constantFrom("\n", "\r", "\r\n"),
          fc.array(fc.nat(40), { maxLength: 30 }),
          async (events, eol, cuts) => {
            const clean = events.map(({ id, data }) => ({ id, data: data.replace(/[\r\n]+/g, "\n") }));
            const wire = bytes(
              clean
                .map(({ id, data }) =>
                  [`id: ${id}`, ...data.split("\n").map((line) => `data: ${line}`), "", ""].join(eol),
                )
                .join(""),
            );
            const chunks: Array<Uint8Array> = [];
            let from = 0;
            for (const cut of cuts) {
              chunks.push(wire.slice(from, from + cut));
              from += cut;
            }
            chunks.push(wire.slice(from));
            const body = new ReadableStream<Uint8Array>({
              start(controller) {
                for (const chunk of chunks) controller.enqueue(chunk);
                controller.close();
              },
            });
            const seen: Array<StreamEvent> = [];
            await Effect.runPromise(readEvents(new Response(body), 1e6, { onEvent: (event) => seen.push(event) }));
            expect(seen.map(({ id, data }) => ({ id, data }))).toEqual(clean);
          },
        ),
        { numRuns: 200 },
      ),
    ),
  );
});
