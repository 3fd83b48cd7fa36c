/**
 * What clients want to hear of the servers' logs. A server sends to all at one level, so
 * it is set to the most verbose one that any client wants; each client then gets what it
 * asked for. Until one asks, servers keep their own level; from then on those that never
 * asked count with the default. No server is started for it: one that is not connected is
 * set before the next call to it.
 */
import type { LoggingLevel, ServerCapabilities } from "../../core/contracts.ts";
import type { McpEndpoint } from "../../core/endpoint.ts";
import type { McpEvent } from "../../core/events.ts";
import type { PromiseClient } from "../../core/promise.ts";
import type { ServedRuntime } from "./served-runtime.ts";
import type { Wire } from "./wire.ts";

const levels: ReadonlyArray<unknown> = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency",
] satisfies ReadonlyArray<LoggingLevel>;

/** How long a call waits for its server to take the level, ms. */
const patience = 2_000;

/** What a client with a session hears that never said what it wants. */
export const defaultLevel: LoggingLevel = "info";

export const isLevel = (value: unknown): value is LoggingLevel => levels.includes(value);

/** Whether a message of one level is for a client that wants another. */
export const passes = (level: unknown, wanted: LoggingLevel): boolean =>
  levels.indexOf(level) >= levels.indexOf(wanted);

export interface LogLevels {
  /** Undefined: the client is there, and never said what it wants. */
  readonly want: (client: object, level: LoggingLevel | undefined) => void;
  readonly forget: (client: object) => void;
  /** Settles when the server sends what the clients want, and it is heard. Never rejects. */
  readonly prepare: (endpoint: McpEndpoint) => Promise<void>;
  readonly onEvent: (event: McpEvent) => void;
}

/** A live connection, told from the next one by the capabilities that its session announced. */
interface Line {
  readonly session: ServerCapabilities;
  level: LoggingLevel | undefined;
}

/** `onLog` hears every message at once, while the call that it belongs to still runs. */
export const makeLogLevels = (runtime: ServedRuntime, onLog: (endpointId: string, params: Wire) => void): LogLevels => {
  const wanted = new Map<object, LoggingLevel | undefined>();
  const lines = new Map<string, Line>();
  const heard = new WeakSet<ServerCapabilities>();
  let mostVerbose: LoggingLevel | undefined;

  /** Undefined where the server may keep its level. One that was set for somebody does not get its own back. */
  const targetOf = (line: Line | undefined): LoggingLevel | undefined =>
    mostVerbose ?? (line?.level !== undefined && wanted.size > 0 ? defaultLevel : undefined);

  const lineOf = (endpointId: string, client: PromiseClient): Line => {
    const { capabilities } = client;
    if (!heard.has(capabilities)) {
      heard.add(capabilities);
      client.onNotification((method, params) => {
        if (method === "notifications/message") onLog(endpointId, params);
      });
    }
    const known = lines.get(endpointId);
    const line = known?.session === capabilities ? known : { session: capabilities, level: undefined };
    lines.set(endpointId, line);
    return line;
  };

  const apply = async (endpoint: McpEndpoint): Promise<void> => {
    await using client = await runtime.client(endpoint);
    const line = lineOf(endpoint.endpointId, client);
    const level = targetOf(line);
    if (line.level === level || level === undefined) return;
    line.level = level;
    if (client.capabilities.logging === undefined) return;
    await client.setLogLevel(level, { timeout: patience }).catch(() => (line.level = undefined));
  };

  const prepare: LogLevels["prepare"] = async (endpoint) => {
    const line = lines.get(endpoint.endpointId);
    const level = targetOf(line);
    if (line && (line.level === level || level === undefined)) return;
    // A call says better than its log why a server cannot be reached.
    await apply(endpoint).catch(() => {});
  };

  const changed = (): void => {
    const all = [...wanted.values()];
    mostVerbose = all.every((level) => level === undefined)
      ? undefined
      : all.map((level) => level ?? defaultLevel).toSorted((a, b) => levels.indexOf(a) - levels.indexOf(b))[0];
    for (const { endpoint } of runtime.connectors()) if (lines.has(endpoint.endpointId)) void prepare(endpoint);
  };

  return {
    prepare,
    want: (client, level) => {
      if (wanted.has(client) && wanted.get(client) === level) return;
      wanted.set(client, level);
      changed();
    },
    forget: (client) => {
      if (wanted.delete(client)) changed();
    },
    onEvent: (event) => {
      if (event.type === "disconnected" || event.type === "evicted") lines.delete(event.endpointId);
      if (event.type !== "connect.ready") return;
      const connector = runtime.connectors().find(({ endpoint }) => endpoint.endpointId === event.endpointId);
      if (connector) void prepare(connector.endpoint);
    },
  };
};
