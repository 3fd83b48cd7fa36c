/** What the runtime tells its observers. No event holds arguments, results or secrets. */
import type * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Queue from "effect/Queue";
import type * as Scope from "effect/Scope";
import { lift } from "./answer.ts";
import type { Observer } from "./contracts.ts";
import type { McpError } from "./errors.ts";

interface AtEndpoint {
  readonly endpointId: string;
  readonly server: string;
}

/** The event without its time stamp. */
export type McpEventBody =
  | ({ readonly type: "connect.start" } & AtEndpoint)
  | ({
      readonly type: "connect.ready";
      readonly era: string;
      readonly protocolVersion: string;
      readonly pid?: number | undefined;
    } & AtEndpoint)
  | ({ readonly type: "connect.failed"; readonly error: McpError } & AtEndpoint)
  | ({ readonly type: "disconnected"; readonly error: McpError | undefined } & AtEndpoint)
  | ({
      readonly type: "evicted";
      readonly reason: "idle" | "detached" | "capacity" | "broken" | "shutdown";
    } & AtEndpoint)
  | ({ readonly type: "circuit.open"; readonly retryAt: number } & AtEndpoint)
  | ({ readonly type: "call.start"; readonly tool: string } & AtEndpoint)
  | ({
      readonly type: "call.end";
      readonly tool: string;
      /** Milliseconds from start to end, waiting included. */
      readonly duration: number;
      readonly outcome: "success" | "tool-error" | "failure" | "cancelled";
      readonly error?: McpError | undefined;
    } & AtEndpoint)
  | ({
      readonly type: "notification";
      readonly method: string;
      readonly params: Readonly<Record<string, unknown>>;
    } & AtEndpoint)
  | ({
      readonly type: "tool.quarantined";
      readonly handle: string;
      readonly tool: string;
      readonly change: "changed" | "new" | "unknown";
      /** The parts that changed. */
      readonly fields: ReadonlyArray<string>;
      /** SHA-256 of what is offered now. */
      readonly digest: string;
    } & AtEndpoint)
  | ({
      readonly type: "tools.released";
      readonly handle: string;
      readonly tools: ReadonlyArray<string>;
      /** `review`: they are as approved again, or another process approved them in the shared store. */
      readonly by: "first-use" | "approval" | "review";
    } & AtEndpoint)
  | ({ readonly type: "diagnostic"; readonly message: string } & AtEndpoint)
  | {
      readonly type: "attached" | "detached";
      readonly handle: string;
      readonly endpointId: string;
      readonly server: string;
    };

/** An event with the epoch milliseconds at which it happened. */
export type McpEvent = McpEventBody & { readonly at: number };

export interface EventBus {
  /** False when nobody observes, so that callers need not build events. */
  readonly active: boolean;
  /** Cheap, never fails, never waits. Beyond 10,000 undelivered events the oldest are dropped. */
  readonly publish: (event: McpEventBody) => void;
}

/** What observers get to take the last events when the runtime closes, ms: one that hangs does not hold it up. */
const farewell = 1000;

/**
 * A bus that delivers to the observers in order, in a fiber of its own. When the scope
 * closes, what was published is still delivered.
 *
 * The fiber ends when there is nothing to deliver: Deno keeps each suspension of a fiber
 * (its async context) as long as the fiber lives.
 */
export const makeEventBus = (observers: ReadonlyArray<Observer>): Effect.Effect<EventBus, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (observers.length === 0) return { active: false, publish: () => {} };
    const clock = yield* Clock.Clock;
    const queue = yield* Queue.sliding<McpEvent, Cause.Done>(10_000);
    const deliver = (event: McpEvent) =>
      Effect.forEach(observers, (observer, i) => Effect.ignoreCause(lift(`observer ${i}`, () => observer.on(event))), {
        discard: true,
      });
    const fork = Effect.runForkWith(yield* Effect.context<never>());
    let delivery: Fiber.Fiber<void> | undefined;
    const deliverAll: Effect.Effect<void> = Effect.suspend(() => {
      const next = Queue.takeUnsafe(queue);
      if (next && Exit.isSuccess(next)) return Effect.andThen(deliver(next.value), deliverAll);
      delivery = undefined;
      return Effect.void;
    });
    const farewells = Effect.suspend(() => {
      if (!delivery) return Effect.void;
      return Effect.andThen(Effect.timeoutOption(Fiber.await(delivery), farewell), Fiber.interrupt(delivery));
    });
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(queue), farewells));
    return {
      active: true,
      publish: (event: McpEventBody) => {
        Queue.offerUnsafe(queue, { ...event, at: clock.currentTimeMillisUnsafe() } as McpEvent);
        delivery ??= fork(Effect.andThen(Effect.yieldNow, deliverAll));
      },
    };
  });
