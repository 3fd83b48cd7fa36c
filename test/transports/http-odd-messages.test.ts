/** Messages that are JSON-RPC at first sight, and hold values no request ever had. */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import type { HttpExchange } from "../../src/testing/servers/http.ts";
import { openDriver, scriptedServer, until } from "../support/scripted-http-client.ts";

/** `String` fails on it. */
const unspeakable = { toString: 1, valueOf: 1 };
const oddId = { jsonrpc: "2.0", id: unspeakable, result: {} };

const onCall =
  (answer: (exchange: HttpExchange) => void) =>
  (exchange: HttpExchange): void =>
    exchange.request.rpc?.method === "tools/call" ? answer(exchange) : exchange.mcp();

describe("an id of no possible type", () => {
  it.live("in the stream that answers a request harms nobody", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(
        onCall((x) => {
          const stream = x.stream();
          stream.event({ data: oddId });
          stream.event({ data: { jsonrpc: "2.0", id: x.request.rpc.id, result: { alive: true } } });
          stream.end();
        }),
      );
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      expect(yield* driver.request("tools/call", {})).toEqual({ alive: true });
    }).pipe(Effect.scoped),
  );

  it.live("in the server's own stream does not end that stream", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(undefined, { push: true });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      yield* until("the server's stream", () => server.streams.size > 0);
      const [stream] = [...server.streams.values()];
      stream!.event({ data: oddId });
      stream!.event({ data: { jsonrpc: "2.0", method: "notifications/tools/list_changed" } });
      yield* until("the news after it", () => driver.messages.some(({ method }) => method !== undefined));
    }).pipe(Effect.scoped),
  );

  it.live("on the stream of legacy SSE does not leave calls without an answer", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(undefined, { kind: "sse" });
      const driver = yield* openDriver(server.url, { flavor: "sse" });
      yield* driver.handshake;
      const [stream] = [...server.streams.values()];
      stream!.event({ data: oddId });
      const answer = yield* driver.request("tools/call", { arguments: { n: 1 } });
      expect(answer.content[0].text).toBe('{"n":1}');
    }).pipe(Effect.scoped),
  );

  it.live("in the body of a refusal leaves the refusal what it is", () =>
    Effect.gen(function* () {
      const error = { code: -32_000, message: "no" };
      const server = yield* scriptedServer(onCall((x) => x.json({ ...oddId, result: undefined, error }, 500)));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      expect(yield* Effect.flip(driver.request("tools/call", {}))).toMatchObject({ _tag: "HttpFailed", status: 500 });
    }).pipe(Effect.scoped),
  );
});

describe("answers of no possible form", () => {
  it.live("an error that is no object reaches the caller of a modern tool as it is", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) =>
        x.json({ jsonrpc: "2.0", id: x.request.rpc.id, error: null, result: 1 }),
      );
      const driver = yield* openDriver(server.url, { opens: "modern" });
      expect(yield* driver.request("tools/call", { name: "t" })).toBe(1);
    }).pipe(Effect.scoped),
  );

  it.live("a modern tool whose name is no text can be left out like any other", () =>
    Effect.gen(function* () {
      const inputSchema = { type: "object", "x-mcp-header": "at-the-root" };
      const server = yield* scriptedServer((x) => x.result({ tools: [{ name: unspeakable, inputSchema }] }));
      const driver = yield* openDriver(server.url, { opens: "modern" });
      expect(yield* driver.request("tools/list")).toEqual({ tools: [] });
      expect(driver.diagnostics.join()).toContain("is left out");
    }).pipe(Effect.scoped),
  );

  for (const [name, result] of [
    ["null", null],
    ["an object without a version", {}],
    ["a version that is no text", { protocolVersion: {} }],
    ["a version that no header can carry", { protocolVersion: "\u2028" }],
  ] as const)
    it.live(`a new session that is opened with ${name} is none: the call says that it did not run`, () =>
      Effect.gen(function* () {
        let forgot = false;
        const server = yield* scriptedServer((x) => {
          const { method, id } = x.request.rpc ?? {};
          if (method === "tools/call") {
            forgot = true;
            return x.text(404);
          }
          if (forgot && method === "initialize")
            return x.json({ jsonrpc: "2.0", id, result }, 200, { "mcp-session-id": "next" });
          return x.mcp();
        });
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        const error = yield* Effect.flip(driver.request("tools/call", {}));
        expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
        yield* until("the end of the connection", () => driver.closes() === 1);
      }).pipe(Effect.scoped),
    );
});

describe("event ids that no header can carry as they are", () => {
  /** A call whose stream ends after an event of this id; resumed streams answer it. */
  const resumed = (id: string) =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) => {
        const last = x.request.headers["last-event-id"];
        const call = x.server.requests.find(({ rpc }) => rpc?.method === "tools/call");
        if (last === undefined && x.request.rpc?.method !== "tools/call") return x.mcp();
        const stream = x.stream();
        if (last === undefined) stream.raw(`id: ${id}\ndata: {}\n\n`);
        else stream.event({ data: { jsonrpc: "2.0", id: call!.rpc.id, result: { last } } });
        return stream.end();
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      return yield* Effect.result(driver.request("tools/call", {}));
    }).pipe(Effect.scoped);

  it.live("are sent as the bytes of their UTF-8", () =>
    Effect.gen(function* () {
      const { last } = Result.getOrThrow(yield* resumed("ä\u{1F600}"));
      expect(Buffer.from(last as string, "latin1").toString("utf8")).toBe("ä\u{1F600}");
    }),
  );

  for (const [name, id] of [
    ["hold control characters", "a\u0001b"],
    ["are too long for a head", "x".repeat(300_000)],
  ] as const)
    it.live(`are no ids where they ${name}: the call fails, typed`, () =>
      Effect.gen(function* () {
        const result = yield* resumed(id);
        const expected = { _tag: "ConnectionLost", outcome: "unknown" };
        expect(Result.isFailure(result) && result.failure).toMatchObject(expected);
      }),
    );
});
