/**
 * What clients want to hear of the servers' logs. A server sends to all at one level, so
 * it is set to the most verbose one that any client wants; each client then gets what it
 * asked for. No server is started for it: one that is not connected is set before the
 * next call to it.
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

export const isLevel = (value: unknown): value is LoggingLevel => levels.includes(value);

/** Whether a message of one level is for a client that wants another. */
export const passes = (level: unknown, wanted: LoggingLevel): boolean =>
  levels.indexOf(level) >= levels.indexOf(wanted);

export interface LogLevels {
  readonly want: (client: object, level: LoggingLevel) => void;
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
  const wanted = new Map<object, LoggingLevel>();
  const lines = new Map<string, Line>();
  const heard = new WeakSet<ServerCapabilities>();
  let mostVerbose: LoggingLevel | undefined;

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
    const level = mostVerbose;
    if (line.level === level || level === undefined) return;
    line.level = level;
    if (client.capabilities.logging === undefined) return;
    await client.setLogLevel(level, { timeout: patience }).catch(() => (line.level = undefined));
  };

  const prepare: LogLevels["prepare"] = async (endpoint) => {
    const line = lines.get(endpoint.endpointId);
    if (line && (line.level === mostVerbose || mostVerbose === undefined)) return;
    // A call says better than its log why a server cannot be reached.
    await apply(endpoint).catch(() => {});
  };

  const changed = (): void => {
    mostVerbose = [...wanted.values()].toSorted((a, b) => levels.indexOf(a) - levels.indexOf(b))[0];
    for (const { endpoint } of runtime.connectors()) if (lines.has(endpoint.endpointId)) void prepare(endpoint);
  };

  return {
    prepare,
    want: (client, level) => {
      if (wanted.get(client) === level) return;
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
