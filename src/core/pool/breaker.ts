/** Fail fast after a failed connect: Effect's circuit breaker, spoken in our errors. */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as CircuitBreaker from "effect/persistence/CircuitBreaker";
import type * as Scope from "effect/Scope";
import { CircuitOpen, type McpError } from "../errors.ts";
import { blamesEndpoint } from "./classify.ts";

/** What the breaker needs to know of an endpoint; `lastError` becomes the cause of `CircuitOpen`. */
export interface BreakerSubject {
  readonly endpointId: string;
  readonly server: string;
  lastError: McpError | undefined;
  /** Epoch ms until which the endpoint fails fast, as far as known. */
  brokenUntil: number;
}

export interface Breaker {
  /**
   * Runs a connect attempt under the endpoint's circuit. Open: fails with
   * `CircuitOpen` at once. After the cool-down one attempt is let through.
   */
  readonly guard: <A, E extends McpError, R>(
    subject: BreakerSubject,
    attempt: Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | CircuitOpen, R>;
  /** Counts a connection that died too young as a failed connect. */
  readonly recordFailure: (subject: BreakerSubject, error: McpError) => Effect.Effect<void>;
}

export const makeBreaker = (options: { readonly cooldown: number }): Effect.Effect<Breaker, never, Scope.Scope> =>
  Effect.gen(function* () {
    const cooldown = Duration.millis(options.cooldown);
    const breaker = yield* CircuitBreaker.make({
      tripPolicy: CircuitBreaker.consecutive(1),
      openDuration: cooldown,
      maxOpenDuration: cooldown,
    });
    const clock = yield* Clock.Clock;

    const refused = (subject: BreakerSubject, error: CircuitBreaker.CircuitBreakerError): CircuitOpen => {
      const retryAfter = error.reason._tag === "CircuitOpen" ? Duration.toMillis(error.reason.retryAfter) : 0;
      const retryAt = clock.currentTimeMillisUnsafe() + retryAfter;
      return new CircuitOpen(
        { server: subject.server, endpointId: subject.endpointId, retryAt, retryAfter },
        subject.lastError,
      );
    };

    const guard: Breaker["guard"] = <A, E extends McpError, R>(
      subject: BreakerSubject,
      attempt: Effect.Effect<A, E, R>,
    ) => {
      const classify = (exit: Exit.Exit<A, E>): CircuitBreaker.Outcome => {
        if (Exit.isSuccess(exit)) {
          subject.brokenUntil = 0;
          return CircuitBreaker.success;
        }
        const error = Cause.findErrorOption(exit.cause);
        if (error._tag === "Some" && !blamesEndpoint(error.value)) return CircuitBreaker.ignored;
        subject.lastError = error._tag === "Some" ? error.value : subject.lastError;
        subject.brokenUntil = clock.currentTimeMillisUnsafe() + options.cooldown;
        return CircuitBreaker.failure();
      };
      return breaker
        .execute(attempt, { key: subject.endpointId, classify })
        .pipe(
          Effect.mapError((error) =>
            error instanceof CircuitBreaker.CircuitBreakerError ? refused(subject, error) : error,
          ),
        );
    };
    return {
      guard,
      recordFailure: (subject: BreakerSubject, error: McpError) => Effect.ignore(guard(subject, Effect.fail(error))),
    };
    // One failure opens a circuit, so a closed one has nothing to remember.
  }).pipe(Effect.provide(CircuitBreaker.layerStoreMemory({ idleTimeToLive: options.cooldown })));
