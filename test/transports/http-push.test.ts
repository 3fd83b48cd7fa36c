import { describe, expect, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import type { HttpExchange } from "../../src/testing/servers/http.ts";
import { type HttpDriver, openDriver, scriptedServer, until } from "../support/scripted-http-client.ts";

/** Moves the clock on in steps, with a real round trip after each, so that whatever is due happens. */
const pass = (driver: HttpDriver, steps: number, step: number): Effect.Effect<void, any> =>
  Effect.gen(function* () {
    for (let i = 0; i < steps; i++) {
      yield* TestClock.adjust(step);
      yield* driver.request("ping");
    }
  });

describe("the standing GET stream", () => {
  const refusals: Record<string, (exchange: HttpExchange) => void> = {
    "405": (x) => x.text(405),
    "404": (x) => x.text(404),
    "406": (x) => x.text(406),
    "400": (x) => x.json({ jsonrpc: "2.0", id: null, error: { code: -32_000, message: "no" } }, 400),
    "501": (x) => x.text(501),
    "200 HTML": (x) => x.text(200, "<html></html>", { "content-type": "text/html" }),
  };
  for (const [name, refuse] of Object.entries(refusals))
    it.effect(`C-017: GET answered ${name}: no server push, one GET, a usable session`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer((x) => (x.request.method === "GET" ? refuse(x) : x.mcp()));
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        yield* until("no push", () => driver.diagnostics.length > 0);
        expect(driver.diagnostics).toEqual([expect.stringContaining("no server push")]);
        yield* pass(driver, 10, 60_000);
        expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
        expect(server.seen("GET")).toHaveLength(1);
        expect(server.seen("initialize")).toHaveLength(1);
        expect(driver.closes()).toBe(0);
      }),
    );

  for (const status of [401, 403])
    it.effect(`C-017: GET answered ${status} asks for authorization, once`, () =>
      Effect.gen(function* () {
        const rejections: Array<unknown> = [];
        const server = yield* scriptedServer(
          (x) =>
            x.request.method === "GET" && x.request.headers.authorization !== "Bearer two" ? x.text(status) : x.mcp(),
          { push: true },
        );
        const driver = yield* openDriver(server.url, {
          authorize: async ({ rejected }) => {
            if (rejected) rejections.push(rejected);
            return { headers: { authorization: rejected ? "Bearer two" : "Bearer one" } };
          },
        });
        yield* driver.handshake;
        yield* until("the stream", () => server.streams.size === 1);
        expect(rejections).toEqual([
          { status, challenge: undefined, authorization: { headers: { authorization: "Bearer one" } } },
        ]);
        expect(server.seen("GET")).toHaveLength(2);
      }),
    );

  it.effect("C-022: a stream that ends at once is reopened ever more slowly, and then no more", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock;
      const at: Array<number> = [];
      const server = yield* scriptedServer((x) => {
        if (x.request.method !== "GET") return x.mcp();
        at.push(clock.currentTimeMillisUnsafe());
        x.stream().end();
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      yield* pass(driver, 300, 1000);
      const spent = at.length;
      expect(spent).toBe(10);
      const gaps = at.slice(1).map((time, i) => time - at[i]!);
      expect(gaps[0]).toBeLessThanOrEqual(3000);
      expect(gaps.at(-1)).toBeGreaterThanOrEqual(30_000);
      expect(gaps.at(-1)).toBeLessThanOrEqual(40_000);
      yield* pass(driver, 30, 10_000);
      expect(at.length).toBe(spent);
      expect(driver.diagnostics).toEqual([expect.stringContaining("no server push")]);
      expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
    }),
  );

  it.effect("C-022: new event ids are progress; Last-Event-ID follows them", () =>
    Effect.gen(function* () {
      let id = 0;
      const server = yield* scriptedServer((x) => {
        if (x.request.method !== "GET") return x.mcp();
        const stream = x.stream();
        stream.event({ id: String(++id), data: { jsonrpc: "2.0", method: "notifications/tools/list_changed" } });
        stream.end();
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      yield* pass(driver, 60, 1500);
      expect(server.seen("GET").length).toBeGreaterThan(25);
      const lastIds = server.seen("GET").map((request) => request.headers["last-event-id"]);
      expect(lastIds).toEqual(lastIds.map((_, i) => (i === 0 ? undefined : String(i))));
      expect(driver.messages.length).toBeGreaterThanOrEqual(25);
      expect(driver.diagnostics).toEqual([]);
    }),
  );

  it.effect("C-022: the server's retry field is the first wait", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock;
      const at: Array<number> = [];
      const server = yield* scriptedServer((x) => {
        if (x.request.method !== "GET") return x.mcp();
        at.push(clock.currentTimeMillisUnsafe());
        const stream = x.stream();
        stream.event({ retry: 20_000, id: String(at.length) });
        stream.end();
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      yield* pass(driver, 120, 1000);
      const gaps = at.slice(1).map((time, i) => time - at[i]!);
      expect(gaps.length).toBeGreaterThanOrEqual(3);
      for (const gap of gaps) {
        expect(gap).toBeGreaterThanOrEqual(20_000);
        expect(gap).toBeLessThanOrEqual(28_000);
      }
    }),
  );

  it.effect("C-022: a stream that proxies cut every minute stays on", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(undefined, { push: true });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const [session] = [...server.sessions];
      for (let cut = 1; cut <= 15; cut++) {
        yield* until(`stream ${cut}`, () => server.seen("GET").length === cut);
        yield* pass(driver, 1, 60_000);
        server.streams.get(session!)!.destroy();
        for (let i = 0; i < 20 && server.seen("GET").length === cut; i++) yield* pass(driver, 1, 500);
      }
      expect(driver.diagnostics).toEqual([]);
    }),
  );

  it.effect("survives server faults and broken connections within its budget", () =>
    Effect.gen(function* () {
      const answers = [
        (x: HttpExchange) => x.text(503),
        (x: HttpExchange) => x.destroy(),
        (x: HttpExchange) => x.text(409),
        (x: HttpExchange) => x.mcp(),
      ];
      const server = yield* scriptedServer((x) => (x.request.method === "GET" ? answers.shift()?.(x) : x.mcp()), {
        push: true,
      });
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      for (let i = 0; i < 60 && server.streams.size === 0; i++) yield* pass(driver, 1, 1000);
      expect(server.streams.size).toBe(1);
      expect(driver.diagnostics).toEqual([]);
    }),
  );

  it.effect("drops an event larger than messageMax and goes on", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(undefined, { push: true });
      const driver = yield* openDriver(server.url, { settings: { messageMax: 1024 } });
      yield* driver.handshake;
      yield* until("the stream", () => server.streams.size === 1);
      const first = [...server.streams.values()][0]!;
      first.event({ data: { jsonrpc: "2.0", method: "big", params: { x: "x".repeat(5000) } } });
      yield* until("it is cut", () => first.closed);
      for (let i = 0; i < 10 && server.seen("GET").length < 2; i++) yield* pass(driver, 1, 1000);
      yield* until("the next stream", () => [...server.streams.values()][0] !== first);
      [...server.streams.values()][0]!.event({ data: { jsonrpc: "2.0", method: "small" } });
      yield* until("the small one", () => driver.messages.length === 1);
      expect(driver.messages[0].method).toBe("small");
      expect(driver.diagnostics).toHaveLength(1);
    }),
  );
});
