/**
 * Events as Effect metrics, which Effect's OTLP and Prometheus exporters carry on.
 * Calls follow OpenTelemetry's semantic conventions for MCP.
 */
import * as Effect from "effect/Effect";
import * as Metric from "effect/Metric";
import type { Observer } from "../../core/contracts.ts";
import type { McpError } from "../../core/errors.ts";
import type { McpEvent } from "../../core/events.ts";

/** Seconds from start to end of a tools/call, waiting included. `error.type` tells a failure, `tool_error` that the tool reported one. */
const operations = Metric.histogram("mcp.client.operation.duration", {
  description: "Duration of MCP requests",
  attributes: { unit: "s" },
  boundaries: [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300],
});

const count = (name: string, description: string): Metric.Counter<number> =>
  Metric.counter(name, { description, incremental: true });

/** Connection attempts that ended, by `outcome`. */
const connects = count("nucleo_mcp.connects", "Connection attempts");
/** Connections that ended, by `reason`: `lost`, or why the pool closed them. */
const disconnects = count("nucleo_mcp.disconnects", "Connections that ended");
/** Times an endpoint began to fail fast because a young connection died. */
const circuits = count("nucleo_mcp.circuits_opened", "Endpoints that began to fail fast");
/** Notifications of servers, by `mcp.method.name`. */
const notifications = count("nucleo_mcp.notifications", "Notifications received");

const tagOf = (error: McpError | undefined): string => (error && "_tag" in error ? String(error._tag) : "_OTHER");

const errorType = (event: Extract<McpEvent, { type: "call.end" }>): Record<string, string> => {
  switch (event.outcome) {
    case "success":
      return {};
    case "tool-error":
      return { "error.type": "tool_error" };
    case "cancelled":
      return { "error.type": "cancelled" };
    case "failure":
      return { "error.type": tagOf(event.error) };
  }
};

const add = (metric: Metric.Counter<number>, attributes: Record<string, string>): Effect.Effect<void> =>
  Metric.update(Metric.withAttributes(metric, attributes), 1);

/** Counts and times what the runtime does, in the metric registry of where it is built. */
export const metricsObserver: Observer = {
  on: (event) => {
    const server = { "mcp.server": event.server };
    switch (event.type) {
      case "call.end":
        return Metric.update(
          Metric.withAttributes(operations, {
            ...server,
            "mcp.method.name": "tools/call",
            "gen_ai.tool.name": event.tool,
            ...errorType(event),
          }),
          event.duration / 1000,
        );
      case "connect.ready":
        return add(connects, { ...server, outcome: "ready" });
      case "connect.failed":
        return add(connects, { ...server, outcome: "failed", "error.type": tagOf(event.error) });
      case "disconnected":
        return add(disconnects, { ...server, reason: "lost" });
      case "evicted":
        return add(disconnects, { ...server, reason: event.reason });
      case "circuit.open":
        return add(circuits, server);
      case "notification":
        return add(notifications, { ...server, "mcp.method.name": event.method });
      default:
        return undefined;
    }
  },
};
