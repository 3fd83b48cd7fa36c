/** One run of an effect for all who want its result at the same time, and a pause after a failure. */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Option from "effect/Option";
import { type McpError, TokenEndpointFailed } from "../../core/errors.ts";

/** Pause after the first failure, ms; it doubles with each further one. */
const PAUSE = 1_000;
const PAUSE_MAX = 30_000;
/** Longest pause an endpoint may ask for by Retry-After, ms. */
const ASKED_MAX = 5 * 60_000;

export interface Flight<A> {
  running: Deferred.Deferred<A, McpError> | undefined;
  /** The last failure, answered to everybody until the pause is over. */
  failed: { readonly error: McpError; readonly until: number; readonly times: number } | undefined;
}

export const makeFlight = <A>(): Flight<A> => ({ running: undefined, failed: undefined });

/** Answers `error` to everybody for a while. */
export const pause = <A>(flight: Flight<A>, error: McpError): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const times = (flight.failed?.times ?? 0) + 1;
    const asked = error instanceof TokenEndpointFailed ? (error.retryAfter ?? 0) : 0;
    const wait = Math.max(Math.min(asked, ASKED_MAX), Math.min(PAUSE * 2 ** (times - 1), PAUSE_MAX));
    flight.failed = { error, until: now + wait, times };
  });

/**
 * Joins the run in flight or starts one. The run goes on when a caller gives up, so
 * that nobody's impatience fails the others. All share a failure, and those who
 * come within the pause after it get it at once.
 */
export const fly = <A>(flight: Flight<A>, effect: Effect.Effect<A, McpError>): Effect.Effect<A, McpError> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      if (flight.running) return yield* restore(Deferred.await(flight.running));
      const { failed } = flight;
      if (failed && (yield* Clock.currentTimeMillis) < failed.until) return yield* failed.error;
      const running = Deferred.makeUnsafe<A, McpError>();
      flight.running = running;
      const run = Effect.gen(function* () {
        const exit = yield* Effect.exit(effect);
        const error = Option.getOrUndefined(Exit.findErrorOption(exit));
        if (error) yield* pause(flight, error);
        else flight.failed = undefined;
        flight.running = undefined;
        Deferred.doneUnsafe(running, exit);
      });
      yield* Effect.forkDetach(run);
      return yield* restore(Deferred.await(running));
    }),
  );
