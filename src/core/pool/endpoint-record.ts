/** What the pool remembers of an endpoint, connected or not. */
import type { Admission } from "../admission/admission.ts";
import type { Demand, GateSpec, TransportPlugin } from "../contracts.ts";
import { endpointName, type McpEndpoint } from "../endpoint.ts";
import { InvalidEndpoint, type McpError } from "../errors.ts";
import { digest } from "../identity.ts";
import type { McpSettings } from "../settings.ts";
import type { BreakerSubject } from "./breaker.ts";
import { findTransport } from "./connect.ts";
import type { Lease } from "./lease.ts";

export interface EndpointRecord extends BreakerSubject {
  readonly endpoint: McpEndpoint;
  readonly plugin: TransportPlugin;
  readonly gates: ReadonlyArray<GateSpec>;
  readonly demand: Demand;
  readonly limiter: string | undefined;
  /** The live connection, when there is one. */
  lease: Lease | undefined;
  /** The attempt or connection that the endpoint's id stands for now. */
  attempt: object | undefined;
  /** Attempts under way. */
  connecting: number;
  /** Callers that wait for a connection. */
  waiting: number;
  /** Attached connectors; the record is forgotten when unused and zero. */
  connectors: number;
  calls: number;
  failures: number;
  connects: number;
  lastActivity: number;
}

/**
 * An endpoint's own gate is named by its label. Where another endpoint already has
 * that name, a digest of the id keeps the two apart.
 */
const ownGate = (name: string, endpoint: McpEndpoint, owners: Map<string, string>): string => {
  if (name !== `mcp:${endpointName(endpoint)}`) return name;
  const owner = owners.get(name) ?? endpoint.endpointId;
  const unique = owner === endpoint.endpointId ? name : `${name}~${digest(endpoint.endpointId, 8)}`;
  owners.set(unique, endpoint.endpointId);
  return unique;
};

const makeRecord = (
  endpoint: McpEndpoint,
  plugin: TransportPlugin,
  specs: ReadonlyArray<GateSpec>,
  owners: Map<string, string>,
): EndpointRecord => {
  const gates = specs.map((spec) => ({ ...spec, name: ownGate(spec.name, endpoint, owners) }));
  const own = gates.find((gate) => owners.get(gate.name) === endpoint.endpointId);
  return {
    endpoint,
    plugin,
    gates,
    endpointId: endpoint.endpointId,
    server: endpointName(endpoint),
    demand: new Map(gates.map((gate) => [gate.name, 1])),
    limiter: own?.name,
    lastError: undefined as McpError | undefined,
    brokenUntil: 0,
    lease: undefined,
    attempt: undefined,
    connecting: 0,
    waiting: 0,
    connectors: 0,
    calls: 0,
    failures: 0,
    connects: 0,
    lastActivity: 0,
  };
};

export interface EndpointRecords {
  /** The record of the endpoint; made with its gates at first sight. */
  readonly of: (endpoint: McpEndpoint) => EndpointRecord | InvalidEndpoint;
  readonly byId: (endpointId: string) => EndpointRecord | undefined;
  readonly all: () => ReadonlyArray<EndpointRecord>;
  /** Forgets an endpoint nobody attached or uses; one that is failing fast later, when another comes. */
  readonly forget: (record: EndpointRecord) => void;
}

export const makeRecords = (deps: {
  readonly settings: McpSettings;
  readonly transports: ReadonlyArray<TransportPlugin>;
  readonly admission: Admission;
  readonly now: () => number;
}): EndpointRecords => {
  const records = new Map<string, EndpointRecord>();
  const owners = new Map<string, string>();
  /** Unused, and failing fast when last looked at. */
  const resting = new Set<EndpointRecord>();

  const forget: EndpointRecords["forget"] = (record) => {
    const busy = record.lease || record.connecting > 0 || record.waiting > 0 || record.connectors > 0;
    const unused = !busy && records.get(record.endpointId) === record;
    if (unused && record.brokenUntil > deps.now()) {
      resting.add(record);
      return;
    }
    resting.delete(record);
    if (!unused) return;
    records.delete(record.endpointId);
    if (record.limiter) {
      deps.admission.dropGate(record.limiter);
      owners.delete(record.limiter);
    }
  };

  return {
    of: (endpoint) => {
      const known = records.get(endpoint.endpointId);
      if (known) return known;
      // A copy: those that still rest are added again.
      for (const record of Array.from(resting)) forget(record);
      const plugin = findTransport(deps.transports, endpoint);
      if (plugin instanceof InvalidEndpoint) return plugin;
      const record = makeRecord(endpoint, plugin, plugin.gates?.(endpoint, deps.settings) ?? [], owners);
      for (const gate of record.gates) deps.admission.ensureGate(gate.name, gate.capacity);
      records.set(endpoint.endpointId, record);
      return record;
    },
    byId: (endpointId) => records.get(endpointId),
    all: () => [...records.values()],
    forget,
  };
};
