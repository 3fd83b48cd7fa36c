/**
 * The use of one live connection: who uses it now, since when nobody does, and how
 * it ends. Entering and leaving is a counter, so that a call pays no more.
 */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import type { LiveClient } from "../client.ts";
import type { Deadlines, Expiring } from "../deadlines.ts";

export interface Lease {
  readonly client: LiveClient;
  /** Holds the pool's own reference, so that the connection lives while nobody uses it. */
  readonly hold: Scope.Closeable;
  readonly users: () => number;
  /** Starts the idle time of a connection that nobody has entered yet. */
  readonly arm: () => void;
  readonly enter: () => void;
  /** The last one out starts the idle time, or ends a retired connection. */
  readonly leave: () => void;
  /** No new users: the connection ends when the present ones are done. Settles then, or at once with none. */
  readonly retire: Effect.Effect<void>;
}

export interface LeaseOptions {
  readonly deadlines: Deadlines;
  readonly idleTimeout: number;
  readonly now: () => number;
  /** Called when nobody uses the connection any more, at `now`. */
  readonly onUnused: (now: number) => void;
  /** Called when nobody used it for `idleTimeout`. */
  readonly onIdle: () => void;
  /** Runs an Effect that outlives its caller. */
  readonly fork: (effect: Effect.Effect<void>) => void;
}

export const makeLease = (client: LiveClient, options: LeaseOptions): Lease => {
  const hold = Scope.makeUnsafe();
  const end = Scope.close(hold, Exit.void);
  let users = 0;
  let retired = false;
  const idle: Expiring = {
    idleAt: Infinity,
    totalAt: Infinity,
    holds: 0,
    idle: options.idleTimeout,
    total: Infinity,
    expire: options.onIdle,
  };
  return {
    client,
    hold,
    users: () => users,
    arm: () => options.deadlines.start(idle),
    enter: () => {
      users++;
      options.deadlines.stop(idle);
    },
    leave: () => {
      if (--users > 0) return;
      if (retired) return options.fork(end);
      options.onUnused(options.now());
      if (!retired && users === 0) options.deadlines.start(idle);
    },
    retire: Effect.suspend(() => {
      retired = true;
      options.deadlines.stop(idle);
      return users === 0 ? end : Effect.void;
    }),
  };
};
