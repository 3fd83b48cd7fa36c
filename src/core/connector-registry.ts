/** Attaches and detaches servers. No I/O, except that the last detach closes the client. */
import * as Effect from "effect/Effect";
import { isRecord } from "./artifact/json.ts";
import type * as Scope from "effect/Scope";
import type { CredentialFlow } from "./contracts.ts";
import { type ConnectorDeps, type ConnectorState, makeConnector, type McpConnector } from "./connector.ts";
import { endpointName, type McpEndpoint } from "./endpoint.ts";
import { InvalidEndpoint, RuntimeClosed } from "./errors.ts";
import { credentialOf, findFlow } from "./pool/connect.ts";

export interface AttachOptions {
  /**
   * Offer only tools that are as they were approved. The first list counts as approved;
   * what changes or comes later is held back (`connector.quarantine`) until
   * `connector.approve`. Holds for the connector as soon as one attach asks for it,
   * until the last detach. Default false.
   */
  readonly pin?: boolean | undefined;
}

export interface ConnectorRegistry {
  /**
   * Attaches a server under a handle, the prefix of its tool names. The same pair of
   * handle and endpoint id answers the same connector, counted. Fails with
   * `InvalidEndpoint` naming the field at fault.
   */
  readonly attach: (
    handle: string,
    endpoint: McpEndpoint,
    options?: AttachOptions,
  ) => Effect.Effect<McpConnector, InvalidEndpoint | RuntimeClosed>;
  /**
   * Takes back one attach. The last one of an endpoint id closes its client. Twice is a no-op
   * with a diagnostic. Fails with `InvalidEndpoint` when it is given anything but a connector.
   */
  readonly detach: (connector: McpConnector) => Effect.Effect<void, InvalidEndpoint>;
  /** Attached until the scope closes. */
  readonly attachScoped: (
    handle: string,
    endpoint: McpEndpoint,
    options?: AttachOptions,
  ) => Effect.Effect<McpConnector, InvalidEndpoint | RuntimeClosed, Scope.Scope>;
  /** What speaks against attaching, without any I/O. */
  readonly check: (handle: string, endpoint: McpEndpoint) => InvalidEndpoint | RuntimeClosed | undefined;
  readonly connectors: () => ReadonlyArray<ConnectorState>;
  /** Changes when a connector comes or goes, or lists anew. */
  readonly version: () => number;
  readonly close: () => void;
}

const keyOf = (handle: string, endpoint: McpEndpoint): string => JSON.stringify([handle, endpoint.endpointId]);

const checkShape = (handle: unknown, endpoint: McpEndpoint): InvalidEndpoint | undefined => {
  if (typeof handle !== "string" || handle.trim() === "")
    return new InvalidEndpoint({
      field: "handle",
      reason: "is empty",
      fix: "Give the server a short name; it becomes the prefix of its tools.",
    });
  if (typeof endpoint !== "object" || endpoint === null || typeof endpoint.transportType !== "string")
    return new InvalidEndpoint({
      field: "endpoint",
      reason: "is no endpoint",
      fix: "Pass a StdioEndpoint, an HttpEndpoint, or an object with transportType and endpointId.",
    });
  if (typeof endpoint.endpointId !== "string" || endpoint.endpointId === "")
    return new InvalidEndpoint({
      field: "endpointId",
      reason: "is empty",
      fix: "Give equal ids to endpoints that may share a client.",
    });
  return endpoint.validate?.();
};

const checkConnector = (connector: unknown): InvalidEndpoint | undefined => {
  const { handle, endpoint, providers } = isRecord(connector) ? connector : {};
  if (typeof handle === "string" && isRecord(endpoint) && typeof providers === "function") return undefined;
  return new InvalidEndpoint({
    field: "connector",
    reason: "is no connector",
    fix: "Pass what attach answered, awaited; connectors() lists what is attached.",
  });
};

export const makeConnectorRegistry = (
  deps: Omit<ConnectorDeps, "onListed"> & {
    readonly credentialFlows: ReadonlyArray<CredentialFlow>;
  },
): ConnectorRegistry => {
  const attached = new Map<string, ConnectorState>();
  let version = 0;
  let closed = false;

  const check = (handle: string, endpoint: McpEndpoint): InvalidEndpoint | RuntimeClosed | undefined => {
    if (closed) return new RuntimeClosed();
    const fault = checkShape(handle, endpoint);
    if (fault) return fault;
    const credential = credentialOf(endpoint);
    const flow = credential ? findFlow(deps.credentialFlows, credential) : undefined;
    if (flow instanceof InvalidEndpoint) return flow;
    const record = deps.pool.record(endpoint);
    return record instanceof InvalidEndpoint ? record : undefined;
  };

  const attach: ConnectorRegistry["attach"] = (handle, endpoint, options) =>
    Effect.suspend(() => {
      const fault = check(handle, endpoint);
      if (fault) return Effect.fail(fault);
      const key = keyOf(handle, endpoint);
      const connector = attached.get(key) ?? makeConnector({ ...deps, onListed: () => version++ }, handle, endpoint);
      if (options?.pin) connector.pin();
      if (connector.attaches++ === 0) {
        attached.set(key, connector);
        version++;
        const record = deps.pool.record(endpoint);
        if (!(record instanceof InvalidEndpoint)) record.connectors++;
        deps.events.publish({
          type: "attached",
          handle,
          endpointId: endpoint.endpointId,
          server: endpointName(endpoint),
        });
      }
      return Effect.succeed<McpConnector>(connector);
    });

  const release = (connector: McpConnector): Effect.Effect<void> =>
    Effect.suspend(() => {
      const { handle, endpoint } = connector;
      const known = attached.get(keyOf(handle, endpoint));
      if (known !== connector || known.attaches === 0) {
        deps.onDiagnostic(endpoint, `'${handle}' was detached more often than attached`);
        return Effect.void;
      }
      if (--known.attaches > 0) return Effect.void;
      attached.delete(keyOf(handle, endpoint));
      version++;
      deps.events.publish({
        type: "detached",
        handle,
        endpointId: endpoint.endpointId,
        server: endpointName(endpoint),
      });
      const record = deps.pool.record(endpoint);
      if (record instanceof InvalidEndpoint || --record.connectors > 0) return Effect.void;
      return deps.pool.evict(endpoint.endpointId, "detached");
    });

  return {
    attach,
    detach: (connector) =>
      Effect.suspend(() => {
        const fault = checkConnector(connector);
        return fault ? Effect.fail(fault) : release(connector);
      }),
    check,
    attachScoped: (handle, endpoint, options) => Effect.acquireRelease(attach(handle, endpoint, options), release),
    connectors: () => [...attached.values()],
    version: () => version,
    close: () => {
      closed = true;
    },
  };
};
