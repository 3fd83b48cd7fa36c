import { createHook } from "node:async_hooks";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { readEvents, readText } from "../../src/transports/http-body.ts";

const encoder = new TextEncoder();

/** A body that gives a chunk each time it is asked, and what became of it. */
const bodyOf = (chunks: Iterable<string>, end: "close" | "error" | "stay open" = "close") => {
  const state = { cancelled: false };
  const iterator = chunks[Symbol.iterator]();
  const stream = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      // A turn each, as from a socket.
      await new Promise((resolve) => setImmediate(resolve));
      const { done, value } = iterator.next();
      if (!done) controller.enqueue(encoder.encode(value));
      else if (end === "close") controller.close();
      else if (end === "error") controller.error(new Error("cut"));
      else await new Promise(() => {});
    },
    cancel: () => {
      state.cancelled = true;
    },
  });
  return { response: new Response(stream), state };
};

const events = function* (count: number): Iterable<string> {
  for (let n = 0; n < count; n++) yield `data: ${n}\n\n`;
};

describe("reading a body", () => {
  it.live("ends with the body, with the connection, or when the reader has enough", () =>
    Effect.gen(function* () {
      expect(yield* readText(bodyOf(["ab", "c"]).response, 10)).toMatchObject({ text: "abc", end: "ended" });
      expect(yield* readText(bodyOf(["ab"], "error").response, 10)).toMatchObject({ text: "ab", end: "broken" });
      const { response, state } = bodyOf(events(1000), "stay open");
      expect(yield* readText(response, 20)).toMatchObject({ end: "stopped" });
      expect(state.cancelled).toBe(true);
      expect(yield* readText(new Response(null), 10)).toMatchObject({ text: "", end: "ended" });
    }),
  );

  it.live("lets go of the body when it is interrupted, and hands on nothing more", () =>
    Effect.gen(function* () {
      const { response, state } = bodyOf(events(3), "stay open");
      const seen: Array<string> = [];
      let third!: () => void;
      const came = new Promise<void>((resolve) => (third = resolve));
      const onEvent = ({ data }: { readonly data: string }): void => {
        if (seen.push(data) === 3) third();
      };
      const reading = yield* Effect.forkChild(readEvents(response, 1000, { onEvent }));
      yield* Effect.promise(() => came);
      yield* Fiber.interrupt(reading);
      expect(seen).toEqual(["0", "1", "2"]);
      expect(state.cancelled).toBe(true);
    }),
  );

  it.live("is a defect where its reader throws", () =>
    Effect.gen(function* () {
      const onEvent = (): void => {
        throw new Error("of the reader");
      };
      const { response, state } = bodyOf(events(3), "stay open");
      const exit = yield* Effect.exit(readEvents(response, 1000, { onEvent }));
      expect(String(exit)).toContain("of the reader");
      expect(state.cancelled).toBe(true);
    }),
  );

  // Deno keeps every suspension of a fiber as long as the fiber lives: an event stream lives long. Its hooks tell nothing, so Node is asked.
  it.live.runIf(!("Deno" in globalThis || "Bun" in globalThis))("suspends its fiber once, not for each chunk", () =>
    Effect.gen(function* () {
      let suspensions = 0;
      const hook = createHook({
        init: (_id, type) => {
          if (type === "effect/Fiber") suspensions++;
        },
      }).enable();
      let count = 0;
      yield* readEvents(bodyOf(events(200)).response, 1000, { onEvent: () => void count++ });
      hook.disable();
      expect(count).toBe(200);
      expect(suspensions).toBeGreaterThan(0);
      expect(suspensions).toBeLessThan(10);
    }),
  );
});
