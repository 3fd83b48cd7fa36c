/** One attached server: a handle and an endpoint. Lists its tools lazily and survives their faults. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Semaphore from "effect/Semaphore";
import type { Adapter } from "./adapter.ts";
import type { SchemaNormalizer } from "./contracts.ts";
import type { McpEndpoint } from "./endpoint.ts";
import { type AcquireError, InvalidEndpoint, type RequestError } from "./errors.ts";
import type { ClientPool } from "./pool/client-pool.ts";
import { type BuiltProviders, buildProviders, type Provider, type SkippedTool } from "./provider.ts";
import type { McpSettings } from "./settings.ts";

/** How the last listing went. */
export interface ConnectorStatus {
  readonly state: "unlisted" | "listed" | "failed";
  /** Epoch ms of the last good list. */
  readonly listedAt: number | undefined;
  /** Why the last listing failed; the last good list is still served. */
  readonly error: AcquireError | RequestError | undefined;
}

export interface McpConnector {
  readonly handle: string;
  readonly endpoint: McpEndpoint;
  /**
   * The server's tools; never fails. A failed listing answers the last good list, or
   * none, with the error on `status`, and is tried again after the setting `listRetry`.
   */
  readonly providers: () => Effect.Effect<ReadonlyArray<Provider>>;
  readonly status: ConnectorStatus;
  /** Tools that cannot be offered, with reasons. */
  readonly skipped: ReadonlyArray<SkippedTool>;
  readonly attached: boolean;
}

/** What the registry and the catalog know beside it. */
export interface ConnectorState extends McpConnector {
  attaches: number;
  /** The last good list, without any I/O. */
  readonly current: () => ReadonlyArray<Provider>;
}

export interface ConnectorDeps {
  readonly pool: ClientPool;
  readonly settings: McpSettings;
  readonly schemaNormalizers: ReadonlyArray<SchemaNormalizer>;
  readonly createAdapter: (provider: Provider) => Effect.Effect<Adapter, AcquireError>;
  /** The list of tools is another one now. */
  readonly onListed: () => void;
  readonly onDiagnostic: (endpoint: McpEndpoint, message: string) => void;
}

export const makeConnector = (deps: ConnectorDeps, handle: string, endpoint: McpEndpoint): ConnectorState => {
  const oneAtATime = Semaphore.makeUnsafe(1);
  let items: ReadonlyArray<unknown> | undefined;
  let built: BuiltProviders = { providers: [], skipped: [] };
  let status: ConnectorStatus = { state: "unlisted", listedAt: undefined, error: undefined };
  let retryAt = 0;

  const list = deps.pool.withClient(endpoint, (client) => client.listItems("tools"));

  const accept = (listed: ReadonlyArray<unknown>, now: number): void => {
    status = { state: "listed", listedAt: now, error: undefined };
    if (listed === items) return;
    items = listed;
    built = buildProviders(listed, handle, endpoint, deps.schemaNormalizers, deps.createAdapter);
    deps.onListed();
    for (const { tool, reason } of built.skipped) deps.onDiagnostic(endpoint, `tool '${tool}' is left out: ${reason}`);
  };

  const refuse = (error: AcquireError | RequestError, now: number): void => {
    status = { state: "failed", listedAt: status.listedAt, error };
    retryAt = now + deps.settings.listRetry;
    deps.onDiagnostic(endpoint, `its tools could not be listed: ${error.message}`);
  };

  const refresh: Effect.Effect<ReadonlyArray<Provider>> = Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis;
    if (status.state === "failed" && before < retryAt) return built.providers;
    // Listing changes nothing on the server, so it is repeated once on a lost connection.
    const result = yield* Effect.result(
      Effect.retry(list, { times: 1, while: (error) => error._tag === "ConnectionLost" }),
    );
    const now = yield* Clock.currentTimeMillis;
    if (Result.isSuccess(result)) accept(result.success, now);
    else refuse(result.failure, now);
    return built.providers;
  });

  const state: ConnectorState = {
    handle,
    endpoint,
    attaches: 0,
    get attached() {
      return state.attaches > 0;
    },
    get status() {
      return status;
    },
    get skipped() {
      return built.skipped;
    },
    current: () => built.providers,
    providers: () =>
      Effect.suspend(() => {
        if (!state.attached) return Effect.succeed([]);
        const record = deps.pool.record(endpoint);
        const live = !(record instanceof InvalidEndpoint) && record.lease?.client.isConnected === true;
        // Without a live client the last good list stands: listing alone wakes no idle server.
        if (items && !live) return Effect.succeed(built.providers);
        return oneAtATime.withPermits(1)(refresh);
      }),
  };
  return state;
};
