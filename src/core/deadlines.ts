/**
 * Time limits of running requests, with one sleeping fiber for all of them: a
 * request costs a map entry, not a timer. Follows Effect's clock.
 */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";

/** A request under a limit. */
export interface Deadline {
  /** Progress was made: the idle limit starts again. */
  readonly touch: () => void;
  /** Stops the idle limit until what it answers is called; then it starts again. The total limit runs on. */
  readonly hold: () => () => void;
  readonly remove: () => void;
}

export interface Deadlines {
  /** Calls `expire` once, when `idle` ms pass without `touch`, or `total` ms in all. */
  readonly add: (idle: number, total: number, expire: (kind: "idle" | "total", limit: number) => void) => Deadline;
}

interface Entry {
  idleAt: number;
  readonly totalAt: number;
  readonly expire: (kind: "idle" | "total") => void;
}

const dueAt = (entry: Entry): number => Math.min(entry.idleAt, entry.totalAt);

/** The sleeper ends with the scope. */
export const makeDeadlines: Effect.Effect<Deadlines, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const fork = Effect.runForkWith(yield* Effect.context<never>());
  const entries = new Set<Entry>();
  let sleeper: Fiber.Fiber<void> | undefined;
  let wakeAt = Infinity;

  const sweep = (): void => {
    sleeper = undefined;
    wakeAt = Infinity;
    const now = clock.currentTimeMillisUnsafe();
    let next = Infinity;
    for (const entry of entries) {
      if (dueAt(entry) > now) {
        next = Math.min(next, dueAt(entry));
        continue;
      }
      entries.delete(entry);
      entry.expire(entry.totalAt <= now ? "total" : "idle");
    }
    if (next < wakeAt) sleepUntil(next);
  };

  const sleepUntil = (at: number): void => {
    sleeper?.interruptUnsafe();
    wakeAt = at;
    const delay = Math.max(0, at - clock.currentTimeMillisUnsafe());
    sleeper = fork(Effect.andThen(clock.sleep(Duration.millis(delay)), Effect.sync(sweep)));
  };

  yield* Effect.addFinalizer(() => Effect.suspend(() => (sleeper ? Fiber.interrupt(sleeper) : Effect.void)));
  return {
    add: (idle, total, expire) => {
      const now = clock.currentTimeMillisUnsafe();
      const entry: Entry = {
        idleAt: now + idle,
        totalAt: now + total,
        expire: (kind) => expire(kind, kind === "idle" ? idle : total),
      };
      entries.add(entry);
      const due = dueAt(entry);
      if (due < wakeAt) sleepUntil(due);
      let holds = 0;
      const touch = (): void => {
        if (holds === 0) entry.idleAt = clock.currentTimeMillisUnsafe() + idle;
      };
      return {
        touch,
        hold: () => {
          holds++;
          entry.idleAt = Infinity;
          return () => {
            holds--;
            touch();
            if (entries.has(entry) && dueAt(entry) < wakeAt) sleepUntil(dueAt(entry));
          };
        },
        remove: () => {
          entries.delete(entry);
        },
      };
    },
  };
});
