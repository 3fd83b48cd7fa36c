import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { ConnectionLost } from "../../src/core/errors.ts";
import { makeCachedList } from "../../src/core/listing.ts";
import { settle } from "../support/runtime-with.ts";

describe("a list that is being read", () => {
  it.effect("is lost when its connection ends: nobody who waits is interrupted", () =>
    Effect.gen(function* () {
      const connection = yield* Scope.make();
      const lost = new ConnectionLost({ server: "s", outcome: "unknown", reason: "the connection was closed" });
      const list = yield* Scope.provide(
        makeCachedList<string>(Effect.never, 0, () => lost),
        connection,
      );
      const waiting = yield* Effect.forEach([1, 2], () => Effect.forkChild(Effect.flip(list.get)));
      yield* settle;
      yield* Scope.close(connection, Exit.void);
      expect(yield* Effect.forEach(waiting, Fiber.join)).toEqual([lost, lost]);
      expect(yield* Effect.flip(list.get)).toBe(lost);
    }),
  );

  it.effect("goes on for the others when one who waits gives up", () =>
    Effect.gen(function* () {
      const connection = yield* Effect.scope;
      const read = Effect.as(Effect.sleep(10), { value: "whole", ttl: undefined });
      const list = yield* Scope.provide(
        makeCachedList(read, 0, () => new ConnectionLost({ server: "s", outcome: "unknown", reason: "" })),
        connection,
      );
      const first = yield* Effect.forkChild(list.get);
      const second = yield* Effect.forkChild(list.get);
      yield* settle;
      yield* Fiber.interrupt(first);
      yield* TestClock.adjust(10);
      expect(yield* Fiber.join(second)).toBe("whole");
    }),
  );
});
