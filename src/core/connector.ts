/** One attached server: a handle and an endpoint. Lists its tools lazily and survives their faults. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import * as Semaphore from "effect/Semaphore";
import type { Adapter } from "./adapter.ts";
import type { PinStore, SchemaNormalizer } from "./contracts.ts";
import { endpointName, type McpEndpoint } from "./endpoint.ts";
import {
  type AcquireError,
  InvalidEndpoint,
  type PluginFailed,
  type RequestError,
  type ToolNotFound,
  type ToolQuarantined,
} from "./errors.ts";
import type { EventBus } from "./events.ts";
import type { QuarantinedTool } from "./pinning/quarantine.ts";
import { type HeldTool, makeToolShelf } from "./pinning/tool-shelf.ts";
import type { ClientPool } from "./pool/client-pool.ts";
import type { Provider, SkippedTool } from "./provider.ts";
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
  /** Of the skipped, those that are not as they were approved. Only with `pin: true`. */
  readonly quarantine: ReadonlyArray<QuarantinedTool>;
  /** Attached with `pin: true`. */
  readonly pinned: boolean;
  /**
   * Approves quarantined tools as they are offered now: the one of that name, or all.
   * An entry of `quarantine` approves exactly what it shows, and fails with
   * `ToolQuarantined` when the tool changed again since. Answers the names of what is
   * released; a tool that is approved already is none of them. `PluginFailed`: the pin
   * store failed, and nothing is approved.
   */
  readonly approve: (
    tool?: string | QuarantinedTool,
  ) => Effect.Effect<ReadonlyArray<string>, ToolNotFound | ToolQuarantined | PluginFailed>;
  readonly attached: boolean;
}

/** What the registry and the catalog know beside it. */
export interface ConnectorState extends McpConnector {
  attaches: number;
  /** The last good list, without any I/O. */
  readonly current: () => ReadonlyArray<Provider>;
  /** The quarantined tools of the last good list. */
  readonly held: () => ReadonlyArray<HeldTool>;
  /** Holds back from now on what is not approved. */
  readonly pin: () => void;
}

export interface ConnectorDeps {
  readonly pool: ClientPool;
  readonly settings: McpSettings;
  readonly events: EventBus;
  readonly pinStore: PinStore;
  readonly schemaNormalizers: ReadonlyArray<SchemaNormalizer>;
  readonly createAdapter: (provider: Provider) => Effect.Effect<Adapter, AcquireError>;
  /** Why a policy that failed hides the tool. */
  readonly policyFault: (provider: Provider) => string | undefined;
  /** The list of tools is another one now. */
  readonly onListed: () => void;
  readonly onDiagnostic: (endpoint: McpEndpoint, message: string) => void;
}

export const makeConnector = (deps: ConnectorDeps, handle: string, endpoint: McpEndpoint): ConnectorState => {
  const oneAtATime = Semaphore.makeUnsafe(1);
  const shelf = makeToolShelf({
    ...deps,
    handle,
    endpoint,
    publish: (event) =>
      deps.events.publish({ ...event, handle, endpointId: endpoint.endpointId, server: endpointName(endpoint) }),
    onDiagnostic: (message) => deps.onDiagnostic(endpoint, message),
  });
  let status: ConnectorStatus = { state: "unlisted", listedAt: undefined, error: undefined };
  let retryAt = 0;

  const list = deps.pool.withClient(endpoint, (client) => client.listItems("tools"));

  const refuse = (error: AcquireError | RequestError, now: number): void => {
    status = { state: "failed", listedAt: status.listedAt, error };
    retryAt = now + deps.settings.listRetry;
    deps.onDiagnostic(endpoint, `its tools could not be listed: ${error.message}`);
  };

  const refresh: Effect.Effect<ReadonlyArray<Provider>> = Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis;
    if (status.state === "failed" && before < retryAt) return shelf.offered();
    // Listing changes nothing on the server, so it is repeated once on a lost connection.
    const result = yield* Effect.result(
      Effect.retry(list, { times: 1, while: (error) => error._tag === "ConnectionLost" }),
    );
    const now = yield* Clock.currentTimeMillis;
    if (Result.isSuccess(result)) {
      status = { state: "listed", listedAt: now, error: undefined };
      yield* shelf.fill(result.success);
    } else refuse(result.failure, now);
    return shelf.offered();
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
      const hidden = shelf.offered().flatMap((provider) => {
        const reason = deps.policyFault(provider);
        return reason === undefined ? [] : [{ tool: provider.tool, reason }];
      });
      return [...shelf.skipped(), ...hidden];
    },
    get quarantine() {
      return shelf.held().map(({ quarantined }) => quarantined);
    },
    get pinned() {
      return shelf.pinned();
    },
    pin: shelf.pin,
    current: shelf.offered,
    held: shelf.held,
    approve: (tool) => oneAtATime.withPermits(1)(shelf.approve(tool)),
    providers: () =>
      Effect.suspend(() => {
        if (!state.attached) return Effect.succeed([]);
        const record = deps.pool.record(endpoint);
        const live = !(record instanceof InvalidEndpoint) && record.lease?.client.isConnected === true;
        // Without a live client the last good list stands: listing alone wakes no idle server.
        if (shelf.filled() && !live) {
          if (!shelf.unsettled()) return Effect.succeed(shelf.offered());
          return oneAtATime.withPermits(1)(Effect.map(shelf.review, shelf.offered));
        }
        return oneAtATime.withPermits(1)(refresh);
      }),
  };
  return state;
};
