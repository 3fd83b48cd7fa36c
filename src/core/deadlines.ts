/**
 * Time limits of running requests, with one sleeping fiber for all of them: a
 * request costs an entry in a set, not a timer. Follows Effect's clock.
 */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type * as Scope from "effect/Scope";

/** Something under limits. `Deadlines` keeps the three numbers; the holder makes them and says what expiry means. */
export interface Expiring {
  idleAt: number;
  totalAt: number;
  /** Work that stops the idle limit while it lasts. */
  holds: number;
  /** Milliseconds of silence allowed. */
  readonly idle: number;
  /** Milliseconds allowed in all. */
  readonly total: number;
  /** Called once, when the time of `kind` has run out. */
  readonly expire: (kind: "idle" | "total") => void;
}

export interface Deadlines {
  readonly start: (entry: Expiring) => void;
  readonly stop: (entry: Expiring) => void;
  /** A sign of life: the idle limit starts again. */
  readonly touch: (entry: Expiring) => void;
  /** Stops the idle limit until what it answers is called; then it starts again. The total limit runs on. */
  readonly hold: (entry: Expiring) => () => void;
}

const dueAt = (entry: Expiring): number => Math.min(entry.idleAt, entry.totalAt);

/** The sleeper ends with the scope. */
export const makeDeadlines: Effect.Effect<Deadlines, never, Scope.Scope> = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const fork = Effect.runForkWith(yield* Effect.context<never>());
  const entries = new Set<Expiring>();
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
  const touch = (entry: Expiring): void => {
    if (entry.holds === 0) entry.idleAt = clock.currentTimeMillisUnsafe() + entry.idle;
  };
  const wakeFor = (entry: Expiring): void => {
    const due = dueAt(entry);
    if (due < wakeAt) sleepUntil(due);
  };
  return {
    touch,
    start: (entry) => {
      const now = clock.currentTimeMillisUnsafe();
      entry.idleAt = now + entry.idle;
      entry.totalAt = now + entry.total;
      entries.add(entry);
      wakeFor(entry);
    },
    stop: (entry) => {
      entries.delete(entry);
    },
    hold: (entry) => {
      entry.holds++;
      entry.idleAt = Infinity;
      return () => {
        entry.holds--;
        touch(entry);
        if (entries.has(entry)) wakeFor(entry);
      };
    },
  };
});
