/** What the pool remembers of an endpoint, connected or not. */
import type { LiveClient } from "../client.ts";
import type { Demand, GateSpec, TransportPlugin } from "../contracts.ts";
import { endpointName, type McpEndpoint } from "../endpoint.ts";
import type { McpError } from "../errors.ts";
import { digest } from "../identity.ts";
import type { BreakerSubject } from "./breaker.ts";

export interface EndpointRecord extends BreakerSubject {
  readonly endpoint: McpEndpoint;
  readonly plugin: TransportPlugin;
  readonly gates: ReadonlyArray<GateSpec>;
  readonly demand: Demand;
  readonly limiter: string | undefined;
  client: LiveClient | undefined;
  connecting: boolean;
  /** Callers that hold or await the client now. */
  borrowers: number;
  /** Attached connectors; the record is forgotten when unused and zero. */
  connectors: number;
  calls: number;
  failures: number;
  connects: number;
  lastActivity: number;
  /** Changes with every connection, so that a late event of an old one is told apart. */
  generation: number;
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

export const makeRecord = (
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
    client: undefined,
    connecting: false,
    borrowers: 0,
    connectors: 0,
    calls: 0,
    failures: 0,
    connects: 0,
    lastActivity: 0,
    generation: 0,
  };
};
