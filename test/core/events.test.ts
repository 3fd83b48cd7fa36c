import { createHook } from "node:async_hooks";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { makeEventBus, type McpEvent } from "../../src/core/events.ts";
import { settle } from "../support/runtime-with.ts";

const diagnostic = (message: string) =>
  ({ type: "diagnostic", message, endpointId: "test:endpoint", server: "test" }) as const;

describe("event bus", () => {
  it.effect("delivers what was published when it closes, also when another observer fails on each event", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make();
      const seen: Array<McpEvent> = [];
      const bus = yield* makeEventBus([
        { on: () => Promise.reject(new Error("no")) },
        { on: async (event) => void seen.push(await Promise.resolve(event)) },
      ]).pipe(Scope.provide(scope));
      for (let i = 0; i < 5; i++) bus.publish(diagnostic(String(i)));
      yield* Scope.close(scope, Exit.void);
      expect(seen.map((event) => event.type === "diagnostic" && event.message)).toEqual(["0", "1", "2", "3", "4"]);
      bus.publish(diagnostic("after the end"));
      expect(seen.length).toBe(5);
    }),
  );

  it.effect("is not held up for more than a second by an observer that hangs", () =>
    Effect.gen(function* () {
      const scope = yield* Scope.make();
      const bus = yield* makeEventBus([{ on: () => Effect.never }]).pipe(Scope.provide(scope));
      bus.publish(diagnostic("hangs"));
      const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void));
      yield* settle;
      expect(closing.pollUnsafe()).toBeUndefined();
      yield* TestClock.adjust("1 second");
      expect(Exit.isSuccess(yield* Fiber.await(closing))).toBe(true);
    }),
  );

  // Deno keeps all suspensions of a fiber as long as it lives, each by the next. Its hooks tell nothing, so Node is asked.
  it.live.runIf(!("Deno" in globalThis || "Bun" in globalThis))("has no fiber that waits for the next event", () =>
    Effect.gen(function* () {
      const seen: Array<McpEvent> = [];
      const bus = yield* makeEventBus([{ on: (event) => void seen.push(event) }]);
      const depths = new Map<number, number>();
      const hook = createHook({
        init: (id, type, trigger) => {
          if (type === "effect/Fiber") depths.set(id, 1 + (depths.get(trigger) ?? 0));
        },
      }).enable();
      yield* Effect.promise(async () => {
        for (let i = 0; i < 100; i++) {
          bus.publish(diagnostic(String(i)));
          while (seen.length <= i) await new Promise((resolve) => setImmediate(resolve));
        }
      });
      hook.disable();
      expect(seen.length).toBe(100);
      expect(depths.size).toBeGreaterThan(0);
      expect(Math.max(...depths.values())).toBeLessThan(10);
    }),
  );
});
