/** A snapshot of the runtime: numbers, states and labels; no secret in it. */
import type { Admission, GateState } from "./admission/admission.ts";
import type { ConnectorRegistry } from "./connector-registry.ts";
import type { ConnectorStatus } from "./connector.ts";
import type { ClientPool } from "./pool/client-pool.ts";
import type { EndpointRecord } from "./pool/endpoint-record.ts";

export interface ErrorSummary {
  readonly tag: string;
  readonly message: string;
}

export interface EndpointHealth {
  readonly endpointId: string;
  readonly server: string;
  readonly transport: string;
  /** `broken`: fails fast until `brokenUntil`. */
  readonly state: "idle" | "connecting" | "ready" | "broken";
  /** Epoch ms; only while broken. */
  readonly brokenUntil?: number;
  readonly pid?: number;
  readonly era?: string;
  readonly protocolVersion?: string;
  /** Requests running on the connection now. */
  readonly inFlight: number;
  /** Calls and borrowers that use the connection now. */
  readonly users: number;
  /** Attached connectors. */
  readonly connectors: number;
  /** Connections opened, tool calls sent, failed connects and lost connections so far. */
  readonly connects: number;
  readonly calls: number;
  readonly failures: number;
  readonly lastError?: ErrorSummary;
  /** Epoch ms of the last release; 0 when never used. */
  readonly lastActivity: number;
}

export interface ConnectorHealth {
  readonly handle: string;
  readonly endpointId: string;
  readonly attaches: number;
  readonly tools: number;
  /** Tools left out, the quarantined ones among them. */
  readonly skipped: number;
  readonly quarantined: number;
  readonly status: ConnectorStatus["state"];
  readonly error?: ErrorSummary;
}

export interface HealthSnapshot {
  /** Epoch ms. */
  readonly at: number;
  readonly state: "running" | "closing" | "closed";
  readonly gates: ReadonlyArray<GateState>;
  readonly endpoints: ReadonlyArray<EndpointHealth>;
  readonly connectors: ReadonlyArray<ConnectorHealth>;
}

const summary = (error: { readonly message: string } | undefined): ErrorSummary | undefined =>
  error && { tag: "_tag" in error ? String(error._tag) : "Error", message: error.message };

const endpointHealth = (record: EndpointRecord, now: number): EndpointHealth => {
  const client = record.lease?.client;
  const broken = record.brokenUntil > now && !client;
  const lastError = summary(record.lastError);
  return {
    endpointId: record.endpointId,
    server: record.server,
    transport: record.endpoint.transportType,
    state: client ? "ready" : record.connecting > 0 ? "connecting" : broken ? "broken" : "idle",
    ...(broken && { brokenUntil: record.brokenUntil }),
    ...(client?.pid !== undefined && { pid: client.pid }),
    ...(client && { era: client.era, protocolVersion: client.protocolVersion }),
    inFlight: client?.inFlight() ?? 0,
    users: record.lease?.users() ?? 0,
    connectors: record.connectors,
    connects: record.connects,
    calls: record.calls,
    failures: record.failures,
    ...(lastError && { lastError }),
    lastActivity: record.lastActivity,
  };
};

export const takeHealth = (
  parts: { readonly admission: Admission; readonly pool: ClientPool; readonly registry: ConnectorRegistry },
  state: HealthSnapshot["state"],
  now: number,
): HealthSnapshot => ({
  at: now,
  state,
  gates: [...parts.admission.gates(), ...parts.pool.processes()],
  endpoints: parts.pool.records().map((record) => endpointHealth(record, now)),
  connectors: parts.registry.connectors().map((connector) => {
    const error = summary(connector.status.error);
    return {
      handle: connector.handle,
      endpointId: connector.endpoint.endpointId,
      attaches: connector.attaches,
      tools: connector.current().length,
      skipped: connector.skipped.length,
      quarantined: connector.quarantine.length,
      status: connector.status.state,
      ...(error && { error }),
    };
  }),
});
