/** The two ways to use a pooled client: for one Effect, or for a Scope. Leaving happens exactly once. */
import * as Effect from "effect/Effect";
import * as Scope from "effect/Scope";
import type { LiveClient } from "../client.ts";
import type { McpEndpoint } from "../endpoint.ts";
import type { AcquireError } from "../errors.ts";
import type { Lease } from "./lease.ts";

/** Finds or opens the connection, enters its lease, tells so, and uses the client. Leaving is the caller's. */
export type WithLease = <A, E, R>(
  endpoint: McpEndpoint,
  entered: (lease: Lease) => void,
  use: (client: LiveClient) => Effect.Effect<A, E, R>,
) => Effect.Effect<A, E | AcquireError, R>;

export interface Borrowing {
  /** Runs `use` with the live client of the endpoint, connecting when needed. */
  readonly withClient: <A, E, R>(
    endpoint: McpEndpoint,
    use: (client: LiveClient) => Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | AcquireError, R>;
  /** Borrows the client for the scope: it is not reaped while borrowed. */
  readonly borrow: (endpoint: McpEndpoint) => Effect.Effect<LiveClient, AcquireError, Scope.Scope>;
}

export const makeBorrowing = (withLease: WithLease): Borrowing => ({
  withClient: (endpoint, use) =>
    Effect.suspend(() => {
      let lease: Lease | undefined;
      return Effect.onExitPrimitive(
        Effect.suspend(() => withLease(endpoint, (entered) => (lease = entered), use)),
        () => {
          lease?.leave();
          return undefined;
        },
      );
    }),
  borrow: (endpoint) =>
    Effect.flatMap(Effect.scope, (borrower) =>
      Effect.suspend(() => {
        let lease: Lease | undefined;
        const leave = Effect.sync(() => lease?.leave());
        return Effect.andThen(
          Scope.addFinalizer(borrower, leave),
          Effect.suspend(() => withLease(endpoint, (entered) => (lease = entered), Effect.succeed)),
        );
      }),
    ),
});
