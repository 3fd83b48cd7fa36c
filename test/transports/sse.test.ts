import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type { HttpExchange } from "../../src/testing/servers/http.ts";
import { openDriver, scriptedServer, until } from "../support/scripted-http-client.ts";

const sse = { flavor: "sse" } as const;
const legacy = (handler?: (exchange: HttpExchange) => void) => scriptedServer(handler, { kind: "sse" });
const onCall =
  (answer: (exchange: HttpExchange) => void) =>
  (exchange: HttpExchange): void =>
    exchange.request.rpc?.method === "tools/call" ? answer(exchange) : exchange.mcp();

describe("legacy SSE", () => {
  it.effect("shakes hands, lists, calls, gets server requests, and leaves no stream", () =>
    Effect.gen(function* () {
      const server = yield* legacy();
      yield* Effect.scoped(
        Effect.gen(function* () {
          const driver = yield* openDriver(server.url, { ...sse, headers: { "X-Api-Key": "k-123456789" } });
          expect((yield* driver.handshake).serverInfo.name).toBe("scripted");
          const calls = [1, 2, 3].map((n) => driver.start("tools/call", { arguments: { n } }));
          const answers = yield* Effect.promise(() => Promise.all(calls.map(({ answer }) => answer)));
          expect(answers.map((answer) => answer.content[0].text)).toEqual(['{"n":1}', '{"n":2}', '{"n":3}']);
          const [stream] = [...server.streams.values()];
          stream!.raw(
            'event: message\r\ndata: {"jsonrpc":"2.0","id":"s1","method":"ping"}\r\n\r\n: keep-alive\r\n\r\n',
          );
          yield* until("the server's ping", () => driver.messages.length === 1);
          yield* driver.send({ id: "s1", result: {} });
          expect(server.seen("GET")).toHaveLength(1);
          expect(driver.transport.sessionId).toBeUndefined();
        }),
      );
      for (const request of server.requests) expect(request.headers["x-api-key"]).toBe("k-123456789");
      yield* until("the stream closed", () => [...server.streams.values()].every((stream) => stream.closed));
    }),
  );

  for (const [name, data] of [
    ["another origin", "http://127.0.0.1:9/message"],
    ["no URL", "http://["],
  ] as const)
    it.effect(`refuses an endpoint event that names ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* legacy((x) => x.stream().event({ event: "endpoint", data }));
        const driver = yield* openDriver(server.url, { ...sse, headers: { "X-Api-Key": "k-123456789" } });
        const error = yield* Effect.flip(driver.handshake);
        expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "transport" });
        expect(error.message).toContain(name);
        expect(server.requests).toHaveLength(1);
      }),
    );

  for (const [name, answer, expected] of [
    ["405", (x: HttpExchange) => x.text(405), { _tag: "HttpFailed", status: 405 }],
    ["401", (x: HttpExchange) => x.text(401), { _tag: "Unauthorized" }],
    [
      "an HTML page",
      (x: HttpExchange) => x.text(200, "hi", { "content-type": "text/html" }),
      { _tag: "ConnectFailed" },
    ],
    ["a stream that ends before the endpoint event", (x: HttpExchange) => x.stream().end(), { _tag: "ConnectionLost" }],
  ] as const)
    it.effect(`the GET is answered with ${name}: a typed error`, () =>
      Effect.gen(function* () {
        const server = yield* legacy(answer);
        const driver = yield* openDriver(server.url, sse);
        expect(yield* Effect.flip(driver.handshake)).toMatchObject(expected);
      }),
    );

  it.effect("a refused POST fails its request alone, a JSON-RPC error in it is the answer", () =>
    Effect.gen(function* () {
      const server = yield* legacy(
        onCall((x) =>
          x.request.rpc.params.rpc
            ? x.json({ jsonrpc: "2.0", id: x.request.rpc.id, error: { code: -32_602, message: "bad" } }, 400)
            : x.text(500, "oops"),
        ),
      );
      const driver = yield* openDriver(server.url, sse);
      yield* driver.handshake;
      const failed = yield* Effect.flip(driver.request("tools/call", {}));
      expect(failed).toMatchObject({ _tag: "HttpFailed", status: 500, reason: "oops" });
      expect(yield* Effect.flip(driver.request("tools/call", { rpc: true }))).toMatchObject({ code: -32_602 });
      expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
    }),
  );

  for (const how of ["end", "destroy"] as const)
    it.effect(`C-078: the stream's ${how} fails all calls in flight and closes the transport, once`, () =>
      Effect.gen(function* () {
        const server = yield* legacy(onCall((x) => x.text(202)));
        const driver = yield* openDriver(server.url, sse);
        yield* driver.handshake;
        const calls = [1, 2].map(() => driver.start("tools/call", {}).answer.catch((error: unknown) => error));
        yield* until("the calls", () => server.seen("tools/call").length === 2);
        [...server.streams.values()][0]![how]();
        for (const error of yield* Effect.promise(() => Promise.all(calls)))
          expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
        yield* until("onclose", () => driver.closes() === 1);
        expect(yield* Effect.flip(driver.request("tools/list"))).toMatchObject({ outcome: "not-sent" });
        expect(server.seen("GET")).toHaveLength(1);
      }),
    );

  it.effect("an event larger than messageMax ends the connection as MessageTooLarge", () =>
    Effect.gen(function* () {
      const server = yield* legacy(
        onCall((x) => {
          x.text(202);
          [...x.server.streams.values()][0]!.raw(`data: ${"x".repeat(5000)}`);
        }),
      );
      const driver = yield* openDriver(server.url, { ...sse, settings: { messageMax: 1024 } });
      yield* driver.handshake;
      expect(yield* Effect.flip(driver.request("tools/call", {}))).toMatchObject({ _tag: "MessageTooLarge" });
      yield* until("onclose", () => driver.closes() === 1);
    }),
  );

  it.effect("lets go of a cancelled request; its late answer harms nobody", () =>
    Effect.gen(function* () {
      const server = yield* legacy(onCall((x) => x.text(202)));
      const driver = yield* openDriver(server.url, sse);
      yield* driver.handshake;
      const call = driver.start("tools/call", {});
      yield* until("the call", () => server.seen("tools/call").length === 1);
      yield* driver.send({ method: "notifications/cancelled", params: { requestId: call.id } });
      [...server.streams.values()][0]!.event({ data: { jsonrpc: "2.0", id: call.id, result: {} } });
      expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
    }),
  );
});
