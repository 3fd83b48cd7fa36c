import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import type { HttpExchange } from "../../src/testing/servers/http.ts";
import { openDriver, scriptedServer, until } from "../support/scripted-http-client.ts";

/** Answers one JSON-RPC method (or HTTP method) by hand, the rest well-behaved. */
const on =
  (method: string, answer: (exchange: HttpExchange) => void) =>
  (exchange: HttpExchange): void =>
    exchange.request.rpc?.method === method || exchange.request.method === method ? answer(exchange) : exchange.mcp();

describe("Streamable HTTP", () => {
  for (const answers of ["json", "sse"] as const)
    it.effect(`shakes hands, lists, calls and closes, with ${answers} answers`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer(undefined, { answers });
        yield* Effect.scoped(
          Effect.gen(function* () {
            const driver = yield* openDriver(server.url, { headers: { "X-Api-Key": "k-123456789" } });
            expect((yield* driver.handshake).serverInfo.name).toBe("scripted");
            expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
            const call = yield* driver.request("tools/call", { name: "echo", arguments: { a: 1 } });
            expect(call.content[0].text).toBe('{"a":1}');
            yield* until("the GET", () => server.seen("GET").length === 1);
          }),
        );
        const [initialize] = server.seen("initialize");
        const [call] = server.seen("tools/call");
        const [get] = server.seen("GET");
        expect(initialize!.headers["mcp-protocol-version"]).toBeUndefined();
        expect(initialize!.headers["mcp-session-id"]).toBeUndefined();
        expect(call!.headers).toMatchObject({
          accept: "application/json, text/event-stream",
          "content-type": "application/json",
          "mcp-protocol-version": "2025-11-25",
          "x-api-key": "k-123456789",
        });
        expect(get!.headers.accept).toBe("text/event-stream");
        for (const request of server.requests) expect(request.headers["x-api-key"]).toBe("k-123456789");
        expect(server.seen("DELETE")).toHaveLength(1);
        expect(server.sessions.size).toBe(0);
      }),
    );

  it.effect("works without a session, and then sends no DELETE", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(undefined, { sessions: false });
      yield* Effect.scoped(
        Effect.gen(function* () {
          const driver = yield* openDriver(server.url);
          yield* driver.handshake;
          expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
        }),
      );
      expect(server.seen("DELETE")).toHaveLength(0);
    }),
  );

  const acceptances: Record<string, (exchange: HttpExchange) => void> = {
    "202 empty": (x) => x.text(202),
    "202 json": (x) => x.text(202, "", { "content-type": "application/json" }),
    "200 length 0": (x) => x.text(200, "", { "content-length": "0" }),
    "200 chunked empty": (x) => x.text(200, "", { "transfer-encoding": "chunked" }),
    "200 json null": (x) => x.json(null),
    "200 text ok": (x) => x.text(200, "ok", { "content-type": "text/plain" }),
    "204": (x) => x.text(204),
    "200 event stream left open": (x) => void x.stream(),
  };
  for (const [name, accept] of Object.entries(acceptances))
    it.effect(`C-020: a notification answered ${name} is fine`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer(on("notifications/initialized", accept));
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
        for (let i = 0; i < 5; i++) yield* driver.send({ method: "notifications/initialized" });
        // The connection of an answered notification serves again: 14 requests, few connections.
        if (!name.includes("left open")) expect(server.connections).toBeLessThanOrEqual(6);
      }),
    );

  it.effect("C-020: a notification answered 400 or 500 is still an error", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(on("notifications/progress", (x) => x.text(500, "no")));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const error = yield* Effect.flip(driver.send({ method: "notifications/progress", params: {} }));
      expect(error).toMatchObject({ _tag: "HttpFailed", status: 500, reason: "no" });
    }),
  );

  const broken: Record<string, (exchange: HttpExchange) => void> = {
    "socket destroyed before the head": (x) => x.destroy(),
    "socket destroyed within a JSON body": (x) => {
      x.partial({ "content-type": "application/json" }, '{"jsonrpc":');
      setTimeout(() => x.destroy(), 5);
    },
    "socket destroyed within an event stream": (x) => {
      const stream = x.stream();
      stream.raw(": keep-alive\n\n");
      setTimeout(() => stream.destroy(), 5);
    },
    "event stream ended after a comment": (x) => {
      const stream = x.stream();
      stream.raw(": keep-alive\n\n");
      stream.end();
    },
    "event stream ended within its last event": (x) => {
      const stream = x.stream();
      stream.raw(`data: {"jsonrpc":"2.0","id":${x.request.rpc.id},"result":{}}\n`);
      stream.end();
    },
    "event stream ended after another request's answer": (x) => {
      const stream = x.stream();
      stream.event({ data: { jsonrpc: "2.0", id: 4711, result: {} } });
      stream.end();
    },
  };
  for (const [name, breakIt] of Object.entries(broken))
    it.effect(`C-021, C-078: ${name}: that call alone fails, and may have run`, () =>
      Effect.gen(function* () {
        const held: Array<HttpExchange> = [];
        const server = yield* scriptedServer((x) => {
          if (x.request.rpc?.params?.name === "slow") held.push(x);
          else on("tools/call", breakIt)(x);
        });
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        const slow = driver.start("tools/call", { name: "slow" });
        yield* until("the slow call", () => held.length === 1);
        const error = yield* Effect.flip(driver.request("tools/call", { name: "echo" }));
        expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown", server: "scripted" });
        held[0]!.result({ content: [] });
        expect(yield* Effect.promise(() => slow.answer)).toEqual({ content: [] });
        expect(server.seen("tools/call")).toHaveLength(2);
        expect(driver.closes()).toBe(0);
      }),
    );

  it.effect("C-021: a stream with event ids is resumed once by GET; 404 then fails the call", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) => {
        if (x.request.headers["last-event-id"]) return x.text(404);
        return on("tools/call", () => {
          const stream = x.stream();
          stream.event({ id: "7" });
          stream.end();
        })(x);
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const call = driver.start("tools/call", { name: "echo" });
      yield* until("the call", () => server.seen("tools/call").length === 1);
      const failed = Effect.flip(Effect.tryPromise({ try: () => call.answer, catch: (error) => error as any }));
      const resumes = () => server.requests.filter((request) => request.headers["last-event-id"] === "7");
      const error = yield* drive(failed);
      expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
      expect(error.message).toContain("404");
      expect(resumes()).toHaveLength(1);
      expect(resumes()[0]!.headers["mcp-session-id"]).toBe([...server.sessions][0]);
      expect(server.seen("tools/call")).toHaveLength(1);
    }),
  );

  it.effect("C-021: a resumed stream brings the answer; each new event id allows one more resume", () =>
    Effect.gen(function* () {
      let answerId: unknown;
      const server = yield* scriptedServer((x) => {
        const after = x.request.headers["last-event-id"];
        if (after === "1" || after === "2") {
          const stream = x.stream();
          stream.event({ id: String(Number(after) + 1), data: { jsonrpc: "2.0", method: "notifications/message" } });
          return stream.end();
        }
        if (after === "3") {
          const stream = x.stream();
          return stream.event({ id: "4", data: { jsonrpc: "2.0", id: answerId, result: { content: [] } } });
        }
        return on("tools/call", () => {
          answerId = x.request.rpc.id;
          const stream = x.stream();
          stream.event({ id: "1", retry: 5000 });
          stream.end();
        })(x);
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const call = driver.start("tools/call", { name: "echo" });
      expect(yield* drive(Effect.promise(() => call.answer))).toEqual({ content: [] });
      expect(server.requests.flatMap((request) => request.headers["last-event-id"] ?? [])).toEqual(["1", "2", "3"]);
      expect(driver.messages).toHaveLength(2);
    }),
  );

  it.effect("C-018: five requests meet a dead session: one new initialize, all answered in the new session", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(undefined, { push: true });
      yield* Effect.scoped(
        Effect.gen(function* () {
          const driver = yield* openDriver(server.url);
          yield* driver.handshake;
          const [old] = [...server.sessions];
          yield* until("the GET", () => server.streams.has(old!));
          server.restart();
          const asked = [1, 2, 3, 4].map(() => driver.start("tools/list"));
          asked.push(driver.start("tools/call", { name: "echo" }));
          const answers = yield* Effect.promise(() => Promise.all(asked.map(({ answer }) => answer)));
          expect(answers.map((answer) => Object.keys(answer)[0])).toEqual(
            [..."tttt", "c"].map((k) => ({ t: "tools", c: "content" })[k]),
          );
          const [fresh] = [...server.sessions];
          expect(server.seen("initialize")).toHaveLength(2);
          const again = server.seen("initialize")[1]!;
          expect(again.headers["mcp-session-id"]).toBeUndefined();
          expect(again.headers["mcp-protocol-version"]).toBeUndefined();
          expect(again.rpc.params).toEqual(server.seen("initialize")[0]!.rpc.params);
          expect(server.seen("notifications/initialized").map((r) => r.headers["mcp-session-id"])).toEqual([
            old,
            fresh,
          ]);
          yield* until("the new GET", () => server.streams.has(fresh!));
          expect(server.seen("tools/call").map((r) => r.headers["mcp-session-id"])).toEqual([old, fresh]);
          expect(driver.messages).toEqual([]);
          expect(driver.transport.sessionId).toBe(fresh);
        }),
      );
      // One DELETE for each session, the dead one too.
      expect(new Set(server.seen("DELETE").map((r) => r.headers["mcp-session-id"])).size).toBe(2);
      expect(server.seen("DELETE")).toHaveLength(2);
    }),
  );

  for (const message of ["Bad Request: No valid session ID provided", "Bad Request: Server not initialized"])
    it.effect(`C-018: a restarted server that says 400 "${message}" gets a new session too`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer((x) =>
          x.request.rpc?.method === "tools/call" && !x.server.sessions.has(String(x.request.headers["mcp-session-id"]))
            ? x.json({ jsonrpc: "2.0", id: null, error: { code: -32_000, message } }, 400)
            : x.mcp(),
        );
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        server.restart();
        expect((yield* driver.request("tools/call", {})).content).toHaveLength(1);
        expect(server.seen("initialize")).toHaveLength(2);
        expect(server.seen("tools/call")).toHaveLength(2);
      }),
    );

  it.effect("C-018: when initialize gives 404 too, one attempt and a typed error, then the transport is closed", () =>
    Effect.gen(function* () {
      let down = false;
      const server = yield* scriptedServer((x) => (down ? x.text(404, "gone") : x.mcp()));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      down = true;
      const asked = [1, 2, 3].map(() => driver.start("tools/list").answer.catch((error: unknown) => error));
      for (const error of yield* Effect.promise(() => Promise.all(asked)))
        expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
      expect(server.seen("initialize")).toHaveLength(2);
      yield* until("onclose", () => driver.closes() === 1);
      const late = yield* Effect.flip(driver.request("tools/list"));
      expect(late).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
      expect(server.seen("initialize")).toHaveLength(2);
    }),
  );

  it.effect("C-018: a session that dies at once again is not chased", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(on("tools/list", (x) => x.text(404)));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const error = yield* Effect.flip(driver.request("tools/list"));
      expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
      expect(server.seen("initialize")).toHaveLength(2);
      expect(server.seen("tools/list")).toHaveLength(2);
    }),
  );

  for (const status of [204, 405, 404])
    it.effect(`C-028: twenty runs leave no session; DELETE answered ${status}`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer(
          on("DELETE", (x) => (status === 204 ? x.mcp() : x.text(status))),
          {
            push: true,
          },
        );
        for (let i = 0; i < 20; i++)
          yield* Effect.scoped(
            Effect.gen(function* () {
              const driver = yield* openDriver(server.url);
              yield* driver.handshake;
            }),
          );
        const ids = server.seen("DELETE").map((request) => request.headers["mcp-session-id"]);
        expect(ids).toHaveLength(20);
        expect(new Set(ids).size).toBe(20);
        yield* until("all streams closed", () => [...server.streams.values()].every((stream) => stream.closed));
      }),
    );

  it.effect("C-028: a hanging DELETE is cut after closeGrace", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(on("DELETE", () => {}));
      const driver = yield* openDriver(server.url, { settings: { closeGrace: "2 seconds" } });
      yield* driver.handshake;
      const closed = driver.transport.close();
      yield* until("the DELETE", () => server.seen("DELETE").length === 1);
      expect(driver.closes()).toBe(0);
      yield* TestClock.adjust("2 seconds");
      yield* Effect.promise(() => closed);
      expect(driver.closes()).toBe(1);
    }),
  );

  it.effect("C-028: closing with a call in flight fails the call, then sends the one DELETE", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(on("tools/call", () => {}));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const call = driver.start("tools/call", { name: "echo" });
      yield* until("the call", () => server.seen("tools/call").length === 1);
      yield* Effect.promise(() => Promise.all([driver.transport.close(), driver.transport.close()]));
      const error = yield* Effect.promise(() => call.answer.catch((error: unknown) => error));
      expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
      expect(server.seen("DELETE")).toHaveLength(1);
      expect(driver.closes()).toBe(1);
    }),
  );

  it.effect("C-028: closing while initialize is in flight leaves no session behind", () =>
    Effect.gen(function* () {
      const held: Array<HttpExchange> = [];
      const server = yield* scriptedServer(on("initialize", (x) => void held.push(x)));
      const driver = yield* openDriver(server.url);
      driver.start("initialize", {});
      yield* until("initialize", () => held.length === 1);
      const closed = driver.transport.close();
      held[0]!.mcp();
      yield* Effect.promise(() => closed);
      expect(server.seen("DELETE")).toHaveLength(1);
      expect(server.sessions.size).toBe(0);
      expect(server.seen("POST")).toHaveLength(1);
    }),
  );

  it.effect("C-076: server requests come from POST and GET streams; answers are POSTed in the session", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(
        on("tools/call", (x) => {
          const stream = x.stream();
          stream.event({ data: { jsonrpc: "2.0", id: "s-1", method: "ping" } });
          stream.event({ data: { jsonrpc: "2.0", id: x.request.rpc.id, result: { content: [] } } });
          stream.end();
        }),
        { push: true },
      );
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      yield* until("the GET", () => server.streams.size === 1);
      [...server.streams.values()][0]!.event({ data: { jsonrpc: "2.0", id: 1, method: "roots/list" } });
      yield* driver.request("tools/call", { name: "echo" });
      yield* until("both requests", () => driver.messages.length === 2);
      expect(driver.messages.map((message) => message.id).toSorted()).toEqual([1, "s-1"]);
      yield* driver.send({ id: "s-1", result: {} });
      const answer = server.requests.find((request) => request.rpc?.id === "s-1");
      expect(answer!.headers["mcp-session-id"]).toBe([...server.sessions][0]);
      expect(answer!.rpc).toEqual({ jsonrpc: "2.0", id: "s-1", result: {} });
    }),
  );

  it.effect("delivers each message of a batch, in a body and in an event", () =>
    Effect.gen(function* () {
      let streamed = false;
      const server = yield* scriptedServer(
        on("tools/call", (x) => {
          const batch = [
            { jsonrpc: "2.0", method: "notifications/message", params: { data: 1 } },
            { jsonrpc: "2.0", id: x.request.rpc.id, result: { content: [] } },
          ];
          if (!streamed) return x.json(batch);
          const stream = x.stream();
          stream.event({ data: batch });
          return stream.end();
        }),
      );
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      expect(yield* driver.request("tools/call", {})).toEqual({ content: [] });
      streamed = true;
      expect(yield* driver.request("tools/call", {})).toEqual({ content: [] });
      expect(driver.messages).toHaveLength(2);
    }),
  );

  it.effect("fails one request alone when its JSON body or its event is larger than messageMax", () =>
    Effect.gen(function* () {
      const big = "x".repeat(20_000);
      const server = yield* scriptedServer(
        on("tools/call", (x) => {
          const answer = { jsonrpc: "2.0", id: x.request.rpc.id, result: { content: [], big } };
          if (x.request.rpc.params.how === "json") return x.json(answer);
          if (x.request.rpc.params.how === "endless") {
            const stream = x.stream();
            return stream.raw(`data: ${big}`);
          }
          const stream = x.stream();
          stream.event({ data: answer });
          return stream.end();
        }),
      );
      const driver = yield* openDriver(server.url, { settings: { messageMax: 4096 } });
      yield* driver.handshake;
      for (const how of ["json", "sse", "endless"]) {
        const error = yield* Effect.flip(driver.request("tools/call", { how }));
        expect(error).toMatchObject({ _tag: "MessageTooLarge", limit: 4096 });
        expect(error.size).toBeGreaterThan(4096);
      }
      expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
    }),
  );

  const nonsense: Record<string, [(exchange: HttpExchange) => void, string]> = {
    "an HTML page": [(x) => x.text(200, "<html><h1>Welcome</h1></html>", { "content-type": "text/html" }), "Welcome"],
    "no JSON": [(x) => x.text(200, "{oops", { "content-type": "application/json" }), "{oops"],
    "JSON null": [(x) => x.json(null), "null"],
    "an empty body": [(x) => x.text(200, "", { "content-type": "application/json" }), "empty"],
    "202 without an answer": [(x) => x.text(202), "empty"],
    "another request's answer": [(x) => x.json({ jsonrpc: "2.0", id: 99, result: {} }), "no answer"],
  };
  for (const [name, [answer, words]] of Object.entries(nonsense))
    it.effect(`answers a request with ${name}: a typed error`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer(on("tools/call", answer));
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        const error = yield* Effect.flip(driver.request("tools/call", {}));
        expect(error).toMatchObject({ _tag: "HttpFailed" });
        expect(error.message).toContain(words);
      }),
    );

  it.effect("takes an answer that another stream brought", () =>
    Effect.gen(function* () {
      const held: Array<HttpExchange> = [];
      const server = yield* scriptedServer(
        on("tools/call", (x) => void held.push(x)),
        { push: true },
      );
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      yield* until("the GET", () => server.streams.size === 1);
      const call = driver.start("tools/call", {});
      yield* until("the call", () => held.length === 1);
      const stream = held[0]!.stream();
      [...server.streams.values()][0]!.event({ data: { jsonrpc: "2.0", id: call.id, result: { content: [] } } });
      expect(yield* Effect.promise(() => call.answer)).toEqual({ content: [] });
      stream.end();
      expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
    }),
  );

  it.effect("lets go of a cancelled request once the server knows, and fails nothing by it", () =>
    Effect.gen(function* () {
      const streams: Array<{ readonly closed: boolean }> = [];
      const server = yield* scriptedServer(on("tools/call", (x) => void streams.push(x.stream())));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const call = driver.start("tools/call", { name: "slow" });
      let settled = false;
      void call.answer.finally(() => (settled = true)).catch(() => {});
      yield* until("the call", () => streams.length === 1);
      yield* driver.send({ method: "notifications/cancelled", params: { requestId: call.id } });
      yield* until("its stream closed", () => streams[0]!.closed);
      expect(server.seen("notifications/cancelled")).toHaveLength(1);
      expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
      expect(settled).toBe(false);
    }),
  );

  it.effect("lets go of a cancelled request in time when the cancellation is never answered", () =>
    Effect.gen(function* () {
      const streams: Array<{ readonly closed: boolean }> = [];
      const server = yield* scriptedServer((x) => {
        if (x.request.rpc?.method === "notifications/cancelled") return;
        on("tools/call", () => void streams.push(x.stream()))(x);
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const call = driver.start("tools/call", { name: "slow" });
      yield* until("the call", () => streams.length === 1);
      const sent = driver.transport.send({
        jsonrpc: "2.0",
        method: "notifications/cancelled",
        params: { requestId: call.id },
      });
      yield* until("the cancellation", () => server.seen("notifications/cancelled").length === 1);
      yield* TestClock.adjust("2 seconds");
      yield* Effect.promise(() => sent);
      yield* until("its stream closed", () => streams[0]!.closed);
    }),
  );
});

/** Moves the clock on, bit by bit, until the effect is done. */
const drive = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.raceFirst(
    effect,
    Effect.forever(
      Effect.andThen(
        TestClock.adjust("500 millis"),
        Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 2))),
      ),
    ),
  );
