import { describe, expect, it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { ConnectionLost, type McpError } from "../../src/core/errors.ts";
import type { McpRuntime } from "../../src/effect.ts";
import type { McpEvent } from "../../src/core/events.ts";
import { runtimeWith, settle } from "../support/runtime-with.ts";
import { ScriptedEndpoint } from "../support/scripted-endpoint.ts";

const state = (runtime: McpRuntime, server: string) =>
  Effect.map(runtime.health, (health) => health.endpoints.find((endpoint) => endpoint.server === server));

describe("client pool", () => {
  it.effect("opens one connection for 50 callers at once", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("one");
      const gate = yield* Deferred.make<void, McpError>();
      endpoint.attempts = [gate];
      endpoint.answer = (_method, params) => ({ content: [{ type: "text", text: JSON.stringify(params) }] });
      yield* runtime.attach("one", endpoint);
      const fibers = yield* Effect.forEach(Array.from({ length: 50 }), (_, i) =>
        Effect.forkChild(runtime.callTool({ tool: "one__echo", arguments: { i } })),
      );
      yield* settle;
      expect((yield* state(runtime, "one"))?.state).toBe("connecting");
      yield* Deferred.succeed(gate, undefined);
      const results = yield* Effect.forEach(fibers, Fiber.join);
      expect(results.map((result) => JSON.parse(result.textContent).arguments.i)).toEqual(results.map((_, i) => i));
      expect(endpoint.opened).toBe(1);
    }),
  );

  it.effect("keeps the attempt for the others when the caller that began it gives up", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("shared");
      const gate = yield* Deferred.make<void, McpError>();
      endpoint.attempts = [gate];
      const first = yield* Effect.forkChild(Effect.scoped(runtime.client(endpoint)));
      yield* settle;
      const second = yield* Effect.forkChild(Effect.scoped(runtime.client(endpoint)));
      yield* settle;
      yield* Fiber.interrupt(first);
      yield* Deferred.succeed(gate, undefined);
      expect((yield* Fiber.join(second)).serverInfo.name).toBe("shared");
      expect(endpoint.opened).toBe(1);
    }),
  );

  it.effect("ends the attempt and releases what it opened when every caller gave up", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("abandoned");
      endpoint.attempts = ["hang", "ok"];
      const callers = yield* Effect.forEach([1, 2, 3], () => Effect.forkChild(Effect.scoped(runtime.client(endpoint))));
      yield* settle;
      expect(endpoint.live).toBe(1);
      yield* Effect.forEach(callers, Fiber.interrupt);
      yield* settle;
      expect(endpoint.live).toBe(0);
      // Giving up is no fault of the endpoint: the next use connects at once.
      yield* Effect.scoped(runtime.client(endpoint));
      expect(endpoint.opened).toBe(2);
    }),
  );

  it.effect("fails fast for the cool-down, then lets exactly one probe through", () =>
    Effect.gen(function* () {
      const events: Array<McpEvent> = [];
      const runtime = yield* runtimeWith({ events });
      const endpoint = new ScriptedEndpoint("dead");
      endpoint.attempts = ["fail"];
      const use = Effect.flip(Effect.scoped(runtime.client(endpoint)));
      expect((yield* use)._tag).toBe("ConnectFailed");
      const others = yield* Effect.forEach(Array.from({ length: 99 }), () => use, { concurrency: "unbounded" });
      expect(new Set(others.map((error) => error._tag))).toEqual(new Set(["CircuitOpen"]));
      expect(endpoint.opened).toBe(1);
      const open = others[0]!;
      if (open._tag !== "CircuitOpen") throw open;
      expect(open.retryAfter).toBe(120_000);
      expect((open.cause as Error).message).toContain("scripted failure");
      expect((yield* state(runtime, "dead"))?.state).toBe("broken");

      yield* TestClock.adjust("119 seconds");
      expect((yield* use)._tag).toBe("CircuitOpen");
      yield* TestClock.adjust("1 second");
      const gate = yield* Deferred.make<void, McpError>();
      endpoint.attempts = [gate];
      const probes = yield* Effect.forEach(Array.from({ length: 10 }), () =>
        Effect.forkChild(Effect.scoped(runtime.client(endpoint))),
      );
      yield* settle;
      expect(endpoint.opened).toBe(2);
      yield* Deferred.succeed(gate, undefined);
      yield* Effect.forEach(probes, Fiber.join);
      expect(endpoint.opened).toBe(2);
      expect((yield* state(runtime, "dead"))?.state).toBe("ready");
    }),
  );

  it.effect("opens again for a whole cool-down when the probe fails", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("still-dead");
      endpoint.attempts = ["fail"];
      const use = Effect.flip(Effect.scoped(runtime.client(endpoint)));
      yield* use;
      yield* TestClock.adjust("2 minutes");
      expect((yield* use)._tag).toBe("ConnectFailed");
      yield* TestClock.adjust("119 seconds");
      expect((yield* use)._tag).toBe("CircuitOpen");
      expect(endpoint.opened).toBe(2);
    }),
  );

  it.effect("C-012: a server that never answers fails at the deadline, its neighbour is usable at once", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { connectTimeout: 500 } });
      const silent = new ScriptedEndpoint("silent");
      silent.attempts = ["hang"];
      const healthy = new ScriptedEndpoint("healthy");
      healthy.answer = () => ({ content: [{ type: "text", text: "here" }] });
      yield* runtime.attach("silent", silent);
      yield* runtime.attach("healthy", healthy);
      const waiting = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "silent__echo" })));
      const direct = yield* Effect.forkChild(Effect.flip(Effect.scoped(runtime.client(silent))));
      const result = yield* runtime.callTool({ tool: "healthy__echo" });
      expect(result.textContent).toBe("here");
      yield* TestClock.adjust("500 millis");
      const error = yield* Fiber.join(direct);
      if (error._tag !== "ConnectFailed") throw error;
      expect(error).toMatchObject({ server: "silent", phase: "handshake", elapsed: 500 });
      expect((yield* Fiber.join(waiting))._tag).toBe("ConnectFailed");
      yield* settle;
      expect(silent.live).toBe(0);
    }),
  );

  it.effect("C-079: a crash loop never becomes a spawn loop", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const crashing = new ScriptedEndpoint("crashing");
      const healthy = new ScriptedEndpoint("well");
      healthy.answer = () => ({ content: [] });
      yield* runtime.attach("well", healthy);
      // Ten simulated minutes of a host that asks every second.
      for (let second = 0; second < 600; second++) {
        yield* Effect.ignore(Effect.scoped(runtime.client(crashing)));
        if (crashing.live > 0) crashing.die();
        yield* TestClock.adjust("1 second");
      }
      expect(crashing.opened).toBeGreaterThan(1);
      expect(crashing.opened).toBeLessThanOrEqual(6);
      yield* runtime.callTool({ tool: "well__echo" });
      expect(healthy.opened).toBe(1);
    }),
  );

  it.effect("a connection that lived longer than minUptime is replaced at once", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("grown");
      yield* Effect.scoped(runtime.client(endpoint));
      yield* TestClock.adjust("11 seconds");
      endpoint.die();
      const client = yield* Effect.scoped(runtime.client(endpoint));
      expect(client.serverInfo.name).toBe("grown");
      expect(endpoint.opened).toBe(2);
      yield* settle;
      expect(endpoint.live).toBe(1);
    }),
  );

  it.effect("C-083: the idle timer starts at the last release and never ends a client in use", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { idleTimeout: 1000 } });
      const endpoint = new ScriptedEndpoint("idle");
      yield* runtime.attach("idle", endpoint);
      const callOne = yield* Effect.forkChild(runtime.callTool({ tool: "idle__echo" }));
      yield* settle;
      endpoint.calls[0]!.answer({ content: [] });
      yield* Fiber.join(callOne);
      yield* TestClock.adjust("800 millis");
      const callTwo = yield* Effect.forkChild(runtime.callTool({ tool: "idle__echo" }));
      yield* settle;
      yield* TestClock.adjust("700 millis");
      expect(endpoint.closed).toBe(0);
      endpoint.calls[1]!.answer({ content: [{ type: "text", text: "written" }] });
      expect((yield* Fiber.join(callTwo)).textContent).toBe("written");
      yield* TestClock.adjust("999 millis");
      expect(endpoint.closed).toBe(0);
      yield* TestClock.adjust("1 millis");
      expect(endpoint.closed).toBe(1);
      expect((yield* state(runtime, "idle"))?.state).toBe("idle");
      // Acquire in the tick of the reaper: a fresh client, never the dead one.
      const callThree = yield* Effect.forkChild(runtime.callTool({ tool: "idle__echo" }));
      yield* settle;
      endpoint.calls[2]!.answer({ content: [] });
      yield* Fiber.join(callThree);
      expect(endpoint.opened).toBe(2);
    }),
  );

  it.effect("C-083: a borrowed but silent client is not reaped", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { idleTimeout: 1000 } });
      const endpoint = new ScriptedEndpoint("borrowed");
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* runtime.client(endpoint);
          yield* TestClock.adjust("1 hour");
          expect(client.isConnected).toBe(true);
          expect(endpoint.closed).toBe(0);
        }),
      );
      yield* TestClock.adjust("1 second");
      expect(endpoint.closed).toBe(1);
    }),
  );

  it.effect("evicts the longest idle subprocess to make room for another", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { stdioProcessMax: 2 } });
      const [a, b, c] = ["a", "b", "c"].map((name) => new ScriptedEndpoint(name)) as [
        ScriptedEndpoint,
        ScriptedEndpoint,
        ScriptedEndpoint,
      ];
      yield* Effect.scoped(runtime.client(a));
      yield* TestClock.adjust("1 second");
      yield* Effect.scoped(runtime.client(b));
      yield* TestClock.adjust("1 second");
      yield* Effect.scoped(runtime.client(c));
      expect([a.live, b.live, c.live]).toEqual([0, 1, 1]);
    }),
  );

  it.effect("waits for a subprocess slot as part of the connect deadline, then says Overloaded", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { stdioProcessMax: 1 } });
      const a = new ScriptedEndpoint("holder");
      const b = new ScriptedEndpoint("waiter");
      const held = yield* Deferred.make<void>();
      const holder = yield* Effect.forkChild(Effect.scoped(Effect.andThen(runtime.client(a), Deferred.await(held))));
      yield* settle;
      const late = yield* Effect.forkChild(Effect.flip(Effect.scoped(runtime.client(b))));
      yield* TestClock.adjust("20 seconds");
      expect(yield* Fiber.join(late)).toMatchObject({ _tag: "Overloaded", gate: "mcp:stdio-processes", capacity: 1 });
      // No fault of the endpoint: it is tried again at once, and gets the slot as soon as the holder lets go.
      const next = yield* Effect.forkChild(Effect.scoped(runtime.client(b)));
      yield* settle;
      yield* Deferred.succeed(held, undefined);
      yield* Fiber.join(holder);
      expect((yield* Fiber.join(next)).serverInfo.name).toBe("waiter");
      expect(a.live).toBe(0);
    }),
  );

  it.effect("an attempt that was evicted disturbs neither its waiters nor the attempt after it", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("replaced");
      const [first, second, third] = [
        yield* Deferred.make<void, McpError>(),
        yield* Deferred.make<void, McpError>(),
        yield* Deferred.make<void, McpError>(),
      ];
      endpoint.attempts = [first, second, third];
      const connector = yield* runtime.attach("replaced", endpoint);
      const early = yield* Effect.forkChild(Effect.exit(Effect.scoped(runtime.client(endpoint))));
      yield* settle;
      yield* runtime.detach(connector);
      const late = yield* Effect.forkChild(
        Effect.scoped(
          Effect.andThen(runtime.client(endpoint), (client) => Effect.as(Effect.sleep(1000), client.isConnected)),
        ),
      );
      yield* settle;
      expect(endpoint.opened).toBe(2);
      yield* Deferred.fail(first, new ConnectionLost({ server: "replaced", outcome: "not-sent", reason: "gone" }));
      yield* settle;
      yield* Deferred.succeed(second, undefined);
      yield* settle;
      yield* TestClock.adjust(1000);
      expect(yield* Fiber.join(late)).toBe(true);
      expect((yield* Fiber.join(early))._tag).toBe("Failure");
      expect([endpoint.opened, endpoint.live]).toEqual([2, 1]);
    }),
  );

  it.effect("a caller whose endpoint is detached while it connects is served, and nothing stays", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("detached");
      const gate = yield* Deferred.make<void, McpError>();
      endpoint.attempts = [gate, "ok"];
      const connector = yield* runtime.attach("detached", endpoint);
      const caller = yield* Effect.forkChild(
        Effect.scoped(Effect.map(runtime.client(endpoint), (client) => client.isConnected)),
      );
      yield* settle;
      yield* runtime.detach(connector);
      yield* Deferred.succeed(gate, undefined);
      yield* settle;
      expect(yield* Fiber.join(caller)).toBe(true);
      yield* settle;
      expect([endpoint.opened, endpoint.live]).toEqual([1, 0]);
      expect((yield* runtime.health).endpoints).toEqual([]);
    }),
  );

  it.effect("a runtime that closes ends the attempts under way, and waits until nothing of them is left", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make();
      const runtime = yield* Scope.provide(runtimeWith(), scope);
      const endpoint = new ScriptedEndpoint("late");
      const gate = yield* Deferred.make<void, McpError>();
      endpoint.attempts = [gate];
      yield* runtime.attach("late", endpoint);
      const caller = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "late__echo" })));
      const borrower = yield* Effect.forkChild(Effect.flip(Effect.scoped(runtime.client(endpoint))));
      yield* settle;
      expect(endpoint.live).toBe(1);
      yield* Scope.close(scope, Exit.void);
      expect(endpoint.live).toBe(0);
      yield* Deferred.succeed(gate, undefined);
      yield* settle;
      expect((yield* Fiber.join(borrower))._tag).toBe("RuntimeClosed");
      expect((yield* Fiber.join(caller))._tag).toBe("RuntimeClosed");
      expect([endpoint.opened, endpoint.live]).toEqual([1, 0]);
      const health = (yield* runtime.health).endpoints;
      expect(health.map(({ state, users, failures }) => [state, users, failures])).toEqual([["idle", 0, 0]]);
    }),
  );

  it.effect("two endpoints with one id share one client and one limiter", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const first = new ScriptedEndpoint("same");
      const second = Object.assign(new ScriptedEndpoint("other"), { endpointId: first.endpointId });
      const a = yield* runtime.client(first);
      const b = yield* runtime.client(second);
      expect(first.opened + second.opened).toBe(1);
      expect([a.limiter, b.limiter]).toEqual(["mcp:same", "mcp:same"]);
    }),
  );

  it.effect("two endpoints with one label have gates of their own", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const first = new ScriptedEndpoint("label");
      const second = Object.assign(new ScriptedEndpoint("label"), { endpointId: "scripted:label-2" });
      const a = yield* runtime.client(first);
      const b = yield* runtime.client(second);
      expect(a.limiter).toBe("mcp:label");
      expect(b.limiter).toMatch(/^mcp:label~[0-9a-f]{8}$/);
    }),
  );

  it.effect("tells observers what happened, in order", () =>
    Effect.gen(function* () {
      const events: Array<McpEvent> = [];
      const runtime = yield* runtimeWith({ settings: { idleTimeout: 1000 }, events });
      const endpoint = new ScriptedEndpoint("seen");
      endpoint.answer = () => ({ content: [], isError: true });
      yield* runtime.attach("seen", endpoint);
      yield* runtime.callTool({ tool: "seen__echo" });
      yield* TestClock.adjust("1 second");
      yield* settle;
      const types = events.map((event) => event.type);
      expect(types).toEqual(["attached", "connect.start", "connect.ready", "call.start", "call.end", "evicted"]);
      expect(events[4]).toMatchObject({ type: "call.end", outcome: "tool-error", tool: "seen__echo", server: "seen" });
      expect(events[5]).toMatchObject({ reason: "idle" });
    }),
  );
});
