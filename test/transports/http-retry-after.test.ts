import { describe, expect, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { retryAfter } from "../../src/transports/http-retry-after.ts";
import { openDriver, scriptedServer, until } from "../support/scripted-http-client.ts";

/** A server that refuses `method` this many times, then behaves. */
const refusing = (
  method: string,
  times: number,
  status: number,
  headers: () => Record<string, string>,
  body: unknown = "slow down",
) => {
  let left = times;
  return scriptedServer((x) => {
    if (x.request.rpc?.method !== method || left-- <= 0) return x.mcp();
    return typeof body === "string"
      ? x.text(status, body, { "content-type": "text/plain", ...headers() })
      : x.json(body, status, headers());
  });
};

/** Moves the clock on until the fiber is done; the milliseconds it took. */
const elapse = <A, E>(fiber: Fiber.Fiber<A, E>): Effect.Effect<number> =>
  Effect.gen(function* () {
    const started = yield* Clock.currentTimeMillis;
    while (fiber.pollUnsafe() === undefined) {
      yield* TestClock.adjust(100);
      yield* Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 3)));
    }
    return (yield* Clock.currentTimeMillis) - started;
  });

describe("Retry-After", () => {
  it("reads seconds and HTTP dates, and nothing else", () => {
    const now = Date.UTC(2026, 0, 1);
    expect(retryAfter("120", now)).toBe(120_000);
    expect(retryAfter("Thu, 01 Jan 2026 00:00:30 GMT", now)).toBe(30_000);
    expect(retryAfter("Wed, 31 Dec 2025 00:00:00 GMT", now)).toBe(0);
    for (const nonsense of [null, "", "soon", "-1", "1.5", "Jan 2026"])
      expect(retryAfter(nonsense, now)).toBeUndefined();
  });

  const rpcError = { jsonrpc: "2.0", id: null, error: { code: -32_000, message: "Too many requests" } };
  for (const status of [429, 503])
    for (const [name, wait, headers, body] of [
      ["seconds", 3000, () => ({ "retry-after": "3" }), undefined],
      ["an HTTP date", 5000, () => ({ "retry-after": new Date(5000).toUTCString() }), undefined],
      ["nothing", 1000, () => ({}), undefined],
      ["seconds and a JSON-RPC error", 2000, () => ({ "retry-after": "2" }), rpcError],
    ] as const)
      it.effect(`C-030: ${status} with ${name} is waited for, once, by a safe request`, () =>
        Effect.gen(function* () {
          const server = yield* refusing("tools/list", 1, status, headers, body);
          const driver = yield* openDriver(server.url);
          yield* driver.handshake;
          const list = yield* Effect.forkChild(driver.request("tools/list"));
          yield* until("the refusal", () => server.seen("tools/list").length === 1);
          const took = yield* elapse(list);
          expect((yield* Fiber.join(list)).tools).toHaveLength(2);
          expect(took).toBeGreaterThanOrEqual(wait);
          expect(took).toBeLessThanOrEqual(wait + 2500);
          expect(server.seen("tools/list")).toHaveLength(2);
        }),
      );

  it.effect("C-030: initialize and notifications wait too; after two retries the refusal is the answer", () =>
    Effect.gen(function* () {
      const server = yield* refusing("initialize", 99, 429, () => ({ "retry-after": "1" }));
      const driver = yield* openDriver(server.url);
      const handshake = yield* Effect.forkChild(Effect.flip(driver.handshake));
      yield* elapse(handshake);
      expect(yield* Fiber.join(handshake)).toMatchObject({
        _tag: "HttpFailed",
        status: 429,
        reason: "slow down",
        retryAfter: 1000,
      });
      expect(server.seen("initialize")).toHaveLength(3);

      const other = yield* refusing("notifications/initialized", 1, 429, () => ({ "retry-after": "1" }));
      const second = yield* openDriver(other.url);
      const done = yield* Effect.forkChild(second.handshake);
      yield* elapse(done);
      yield* Fiber.join(done);
      expect(other.seen("notifications/initialized")).toHaveLength(2);
    }),
  );

  it.effect("C-030: a wait beyond the cap, or beyond the request's time, is not made", () =>
    Effect.gen(function* () {
      const server = yield* refusing("tools/list", 9, 429, () => ({ "retry-after": "3600" }));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      const error = yield* Effect.flip(driver.request("tools/list"));
      expect(error).toMatchObject({ _tag: "HttpFailed", status: 429, retryAfter: 3_600_000 });
      expect(error.message).toContain("3600 s");
      const short = yield* refusing("tools/list", 9, 503, () => ({ "retry-after": "5" }));
      const impatient = yield* openDriver(short.url, { requestTimeout: "4 seconds" });
      yield* impatient.handshake;
      expect(yield* Effect.flip(impatient.request("tools/list"))).toMatchObject({ status: 503, retryAfter: 5000 });
      expect(server.seen("tools/list").length + short.seen("tools/list").length).toBe(2);
    }),
  );

  for (const status of [429, 503])
    it.effect(`C-030, C-081: tools/call answered ${status} is never sent again`, () =>
      Effect.gen(function* () {
        const server = yield* refusing("tools/call", 9, status, () => ({ "retry-after": "0" }));
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        const error = yield* Effect.flip(driver.request("tools/call", {}));
        expect(error).toMatchObject({ _tag: "HttpFailed", status, retryAfter: 0 });
        expect(server.seen("tools/call")).toHaveLength(1);
      }),
    );
});
