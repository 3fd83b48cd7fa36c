/** The one way a runtime ends; scopes, `await using` and signals all come here. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Admission } from "./admission/admission.ts";
import type { ConnectorRegistry } from "./connector-registry.ts";
import { Cancelled } from "./errors.ts";
import type { ClientPool } from "./pool/client-pool.ts";

export interface Shutdown {
  readonly run: Effect.Effect<void>;
  readonly state: () => "running" | "closing" | "closed";
}

/**
 * Takes no new work, lets running calls finish within `grace` ms, cancels the rest and
 * tells the servers, closes every client, and settles when all processes are gone.
 */
export const makeShutdown = (parts: {
  readonly admission: Admission;
  readonly pool: ClientPool;
  readonly registry: ConnectorRegistry;
  readonly grace: number;
}): Shutdown => {
  let state: "running" | "closing" | "closed" = "running";
  const run = Effect.gen(function* () {
    state = "closing";
    parts.registry.close();
    parts.admission.close();
    yield* Effect.timeoutOption(parts.admission.drained, Duration.millis(parts.grace));
    for (const record of parts.pool.records()) {
      record.lease?.client.cancelAll(new Cancelled({ reason: "the runtime is closing" }));
    }
    yield* parts.pool.close;
    state = "closed";
  });
  return { run, state: () => state };
};
