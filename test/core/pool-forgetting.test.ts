/** What a runtime keeps of endpoints that nobody uses any more: nothing. Hosts whose tokens or users change see ever new ones. */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { makeVerdicts } from "../../src/core/pool/negotiation.ts";
import type { McpRuntime } from "../../src/effect.ts";
import { runtimeWith, settle } from "../support/runtime-with.ts";
import { type Attempt, ScriptedEndpoint } from "../support/scripted-endpoint.ts";

const endpointThat = (name: string, attempt: Attempt): ScriptedEndpoint => {
  const endpoint = new ScriptedEndpoint(name);
  endpoint.attempts = [attempt];
  return endpoint;
};

const known = (runtime: McpRuntime) =>
  Effect.map(runtime.health, ({ endpoints, gates }) => ({
    endpoints: endpoints.map(({ server }) => server),
    gates: gates.map(({ name }) => name).filter((name) => /^mcp:(failing|given-up|served|later)/.test(name)),
  }));

describe("an endpoint that nobody attached", () => {
  it.effect("is forgotten when its attempt was given up", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      for (let n = 0; n < 5; n++) {
        const caller = yield* Effect.forkChild(Effect.scoped(runtime.client(endpointThat(`given-up-${n}`, "hang"))));
        yield* settle;
        yield* Fiber.interrupt(caller);
        yield* settle;
      }
      expect(yield* known(runtime)).toEqual({ endpoints: [], gates: [] });
    }),
  );

  it.effect("that failed is known as long as it fails fast, and forgotten when the next one comes after that", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const failing = [0, 1, 2].map((n) => endpointThat(`failing-${n}`, "fail"));
      for (const endpoint of failing) yield* Effect.flip(Effect.scoped(runtime.client(endpoint)));
      expect((yield* known(runtime)).endpoints).toEqual(["failing-0", "failing-1", "failing-2"]);
      expect((yield* Effect.flip(Effect.scoped(runtime.client(failing[0]!))))._tag).toBe("CircuitOpen");
      yield* TestClock.adjust("3 minutes");
      yield* runtime.attach("later", endpointThat("later", "ok"));
      expect(yield* known(runtime)).toEqual({ endpoints: ["later"], gates: ["mcp:later"] });
    }),
  );

  it.effect("that is attached once more while it fails fast is not forgotten", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const failing = endpointThat("failing", "fail");
      yield* Effect.flip(Effect.scoped(runtime.client(failing)));
      yield* runtime.attach("failing", failing);
      yield* TestClock.adjust("3 minutes");
      yield* runtime.attach("later", endpointThat("later", "ok"));
      expect((yield* known(runtime)).endpoints).toEqual(["failing", "later"]);
    }),
  );

  it.effect("is forgotten after its last user", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const served = endpointThat("served", "ok");
      yield* Effect.scoped(runtime.client(served));
      expect((yield* known(runtime)).endpoints).toEqual(["served"]);
      yield* TestClock.adjust("10 minutes");
      yield* settle;
      expect(yield* known(runtime)).toEqual({ endpoints: [], gates: [] });
    }),
  );
});

describe("the eras learnt", () => {
  it.effect("are kept of the latest 1,000 endpoints; of others the store is asked", () =>
    Effect.gen(function* () {
      const asked: Array<string> = [];
      const verdicts = makeVerdicts({
        load: (id) => {
          asked.push(id);
          return undefined;
        },
        save: () => {},
        remove: () => {},
      });
      for (let n = 0; n <= 1000; n++) yield* verdicts.keep(`id-${n}`, "modern");
      expect(yield* verdicts.recall("id-1")).toBe("modern");
      expect(yield* verdicts.recall("id-0")).toBeUndefined();
      expect(asked).toEqual(["id-0"]);
    }),
  );
});
