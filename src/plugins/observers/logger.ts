/**
 * Events as lines of Effect's logger, annotated with the server. What breaks is a
 * warning, what a person may want to know is info, the rest debug. No arguments,
 * results or notification params are logged.
 */
import * as Effect from "effect/Effect";
import type { Observer } from "../../core/contracts.ts";
import type { McpError } from "../../core/errors.ts";
import type { McpEvent } from "../../core/events.ts";

type Level = "warning" | "info" | "debug";

const because = (error: McpError | undefined): string => (error ? `: ${error.message}` : "");

const wording = (event: McpEvent): readonly [Level, string] => {
  switch (event.type) {
    case "connect.start":
      return ["debug", "connecting"];
    case "connect.ready":
      return ["info", `connected, ${event.era} era, protocol ${event.protocolVersion}`];
    case "connect.failed":
      return ["warning", `could not connect${because(event.error)}`];
    case "disconnected":
      return ["warning", `connection lost${because(event.error)}`];
    case "evicted":
      return ["info", `closed: ${event.reason}`];
    case "circuit.open":
      return ["warning", `fails fast until ${new Date(event.retryAt).toISOString()}`];
    case "call.start":
      return ["debug", `call of ${event.tool} starts`];
    case "call.end": {
      const level = event.outcome === "failure" ? "warning" : "debug";
      return [level, `call of ${event.tool} ends after ${event.duration} ms, ${event.outcome}${because(event.error)}`];
    }
    case "notification":
      return ["debug", `sent ${event.method}`];
    case "tool.quarantined":
      return ["warning", `has its tool ${event.tool} held back: ${[event.change, ...event.fields].join(" ")}`];
    case "tools.released":
      return ["info", `has ${event.tools.length} of its tools released, by ${event.by}`];
    case "diagnostic":
      return ["info", event.message];
    case "attached":
    case "detached":
      return ["debug", `${event.type} as ${event.handle}`];
  }
};

const write: Readonly<Record<Level, (text: string) => Effect.Effect<void>>> = {
  warning: Effect.logWarning,
  info: Effect.logInfo,
  debug: Effect.logDebug,
};

/** Writes every event to the logger that is current where the runtime is built. */
export const loggerObserver: Observer = {
  on: (event) => {
    const [level, text] = wording(event);
    return Effect.annotateLogs(write[level](`MCP server '${event.server}' ${text}`), {
      "mcp.event": event.type,
      "mcp.server": event.server,
    });
  },
};
