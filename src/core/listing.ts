/**
 * Reads whole lists from a server: all pages, bounded, each item once; cached, read
 * by one flight at a time, and read anew after the server says the list changed.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";
import { jsonText } from "./artifact/json.ts";
import type { RequestError } from "./errors.ts";
import type { McpSettings } from "./settings.ts";

export interface PageSource {
  /** Sends one list request; `cursor` is passed back as the server gave it. */
  readonly page: (cursor: string | undefined) => Effect.Effect<unknown, RequestError>;
  /** Field of the answer that holds the items, for example `tools`. */
  readonly field: string;
  readonly settings: Pick<McpSettings, "listPagesMax" | "listItemsMax">;
  readonly diagnose: (message: string) => void;
}

/** A whole list, and how long the server says it holds (milliseconds), when it says so. */
export interface Listed {
  readonly items: ReadonlyArray<unknown>;
  readonly ttl: number | undefined;
}

const METHOD_NOT_FOUND = -32601;

/**
 * All items of a list. A cursor seen before ends the list, as do the page and item
 * limits, each with a diagnostic. "Method not found" is an empty list. Any other
 * failure, on whichever page, fails the whole listing: half a list is never passed
 * off as the list. Source: MCP server/utilities/pagination.
 */
export const readAllPages = (source: PageSource): Effect.Effect<Listed, RequestError> =>
  Effect.gen(function* () {
    const { field, settings, diagnose } = source;
    const items: Array<unknown> = [];
    const seenItems = new Set<string>();
    const seenCursors = new Set<string>();
    let cursor: string | undefined;
    let ttl: number | undefined;
    for (let page = 1; ; page++) {
      const answer = (yield* source.page(cursor)) as Record<string, unknown> | null;
      const list = answer?.[field];
      if (!Array.isArray(list)) diagnose(`page ${page} of the list has no '${field}' array; taken as empty`);
      for (const item of Array.isArray(list) ? list : []) {
        const key = jsonText(item);
        if (!seenItems.has(key)) items.push(item);
        seenItems.add(key);
      }
      const hint = answer?.["ttlMs"];
      if (typeof hint === "number" && hint >= 0) ttl = Math.min(ttl ?? Infinity, hint);
      const next = answer?.["nextCursor"];
      if (typeof next !== "string") break;
      if (seenCursors.has(next)) {
        diagnose(`the server repeated a cursor of its ${field} list; reading stopped after page ${page}`);
        break;
      }
      if (page >= settings.listPagesMax || items.length >= settings.listItemsMax) {
        diagnose(`the ${field} list is longer than ${page} pages or ${items.length} items; the rest is left out`);
        break;
      }
      seenCursors.add(next);
      cursor = next;
    }
    return { items: items.slice(0, settings.listItemsMax), ttl };
  }).pipe(
    Effect.catchTag("ProtocolError", (error) => {
      if (error.code !== METHOD_NOT_FOUND) return Effect.fail(error);
      source.diagnose(`the server does not know its ${source.field} list (${METHOD_NOT_FOUND}); taken as empty`);
      return Effect.succeed<Listed>({ items: [], ttl: undefined });
    }),
  );

export interface CachedList<A> {
  /** The list: cached while fresh, else read, one flight for all callers. */
  readonly get: Effect.Effect<A, RequestError>;
  /** The list changed: the cached one is stale now, and is read anew soon if it was in use. */
  readonly changed: () => void;
}

/** Caches what `read` answers. Lives in the scope: a read in flight ends with it, and fails its callers with `lost`. */
export const makeCachedList = <A>(
  read: Effect.Effect<{ readonly value: A; readonly ttl: number | undefined }, RequestError>,
  debounce: number,
  lost: () => RequestError,
): Effect.Effect<CachedList<A>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope;
    const clock = yield* Clock.Clock;
    const context = yield* Effect.context<never>();
    let version = 0;
    let cached: { readonly value: A; readonly version: number; readonly freshUntil: number } | undefined;
    let flight: { readonly fiber: Fiber.Fiber<A, RequestError>; readonly version: number } | undefined;
    let refresh: Fiber.Fiber<void> | undefined;

    const start = Effect.suspend(() => {
      const startedAt = version;
      const attempt = read.pipe(
        Effect.map(({ value, ttl }) => {
          cached = { value, version: startedAt, freshUntil: clock.currentTimeMillisUnsafe() + (ttl ?? Infinity) };
          return value;
        }),
        Effect.ensuring(
          Effect.sync(() => {
            if (flight?.version === startedAt) flight = undefined;
          }),
        ),
      );
      return Effect.map(Effect.forkIn(attempt, scope), (fiber) => {
        if (fiber.pollUnsafe() === undefined) flight = { fiber, version: startedAt };
        return fiber;
      });
    });

    const get: Effect.Effect<A, RequestError> = Effect.suspend(() => {
      if (cached && cached.version === version && clock.currentTimeMillisUnsafe() < cached.freshUntil) {
        return Effect.succeed(cached.value);
      }
      const running = flight?.version === version ? Effect.succeed(flight.fiber) : start;
      return Effect.flatMap(Effect.flatMap(running, Fiber.await), (exit) =>
        Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? Effect.fail(lost()) : exit,
      );
    });

    const changed = (): void => {
      version++;
      if (!cached) return;
      refresh?.interruptUnsafe();
      const later = Effect.andThen(Effect.sleep(Duration.millis(debounce)), Effect.ignore(get));
      refresh = Effect.runForkWith(context)(Effect.forkIn(later, scope).pipe(Effect.flatMap(Fiber.join)));
    };
    return { get, changed };
  });
