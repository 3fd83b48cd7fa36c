/** The standing GET stream on which a server may speak unasked: opened, reopened, given up. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Random from "effect/Random";
import type * as Scope from "effect/Scope";
import type { McpError } from "../core/errors.ts";
import { discard, isEventStream, readEvents, type StreamEvent } from "./http-body.ts";

const FIRST_DELAY = 1000;
const DELAY_MAX = 30_000;
/** A server that asks for less is not polled faster than this. */
const DELAY_MIN = 100;
/** Attempts without progress before the stream is given up: about three minutes. */
const ATTEMPTS = 10;

export interface PushOptions {
  /** Asks for the stream, from `lastEventId` on when it is known. */
  readonly open: (lastEventId: string | undefined) => Effect.Effect<Response, McpError, Scope.Scope>;
  readonly onData: (data: string) => void;
  readonly diagnose: (message: string) => void;
  /** Largest event, characters. */
  readonly limit: number;
}

/**
 * Statuses after which asking again makes sense: timeout, conflict (the server has not
 * seen yet that the old stream is gone), rate limit, and server faults. MCP says 405 is
 * the refusal; servers also say 400, 404, 406 or 501, and all of them mean "never".
 */
const passing = (status: number): boolean => [408, 409, 429].includes(status) || (status >= 500 && status !== 501);

/** The wait before the next attempt: doubling from `first`, plus up to a quarter, so that clients spread out. */
export const reconnectDelay = (first: number, attempt: number): Effect.Effect<number> =>
  Effect.map(Random.next, (random) => {
    const start = Math.max(DELAY_MIN, first);
    return Math.min(start * 2 ** attempt, Math.max(DELAY_MAX, start)) * (1 + random / 4);
  });

/**
 * Keeps the stream open until the server definitely refuses it or the budget of
 * attempts is spent; never fails. A new event id, or a stream that lasted longer than the
 * longest back-off, is progress and renews the budget; an empty stream is not.
 */
export const keepPushOpen = (options: PushOptions): Effect.Effect<void> =>
  Effect.gen(function* () {
    let lastEventId: string | undefined;
    let first = FIRST_DELAY;
    let attempt = 0;

    const onEvent = (event: StreamEvent): void => {
      if (event.id !== undefined && event.id !== lastEventId) {
        lastEventId = event.id;
        attempt = 0;
      }
      if (event.data !== "" && event.event === "message") options.onData(event.data);
    };

    /** One stream; answers why no other will follow, or nothing. */
    const once = Effect.scoped(
      Effect.gen(function* () {
        const response = yield* options.open(lastEventId);
        if (!response.ok || !isEventStream(response)) {
          yield* discard(response);
          return passing(response.status) ? undefined : `GET was answered with HTTP ${response.status}`;
        }
        const opened = yield* Clock.currentTimeMillis;
        const end = yield* readEvents(response, options.limit, {
          onEvent,
          onRetry: (delay) => {
            first = delay;
          },
        });
        if (typeof end === "object") options.diagnose(`an event of more than ${options.limit} characters was dropped`);
        if ((yield* Clock.currentTimeMillis) - opened > DELAY_MAX) attempt = 0;
        return undefined;
      }),
    ).pipe(
      Effect.catch((error: McpError & { readonly _tag?: string }) =>
        Effect.succeed(error._tag === "ConnectionLost" || error._tag === "ConnectFailed" ? undefined : error.message),
      ),
    );

    let refused: string | undefined;
    while (refused === undefined && attempt < ATTEMPTS) {
      refused = yield* once;
      if (refused === undefined) yield* Effect.sleep(yield* reconnectDelay(first, attempt++));
    }
    options.diagnose(`no server push: ${refused ?? `the stream ended ${ATTEMPTS} times without an event`}`);
  });
