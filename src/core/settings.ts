/** Every default of the runtime, its unit, and how the environment overrides it. */
import type * as Duration from "effect/Duration";
import type { Era } from "./endpoint.ts";

/** Times are milliseconds, sizes bytes. */
export interface McpSettings {
  /** The protocol era to speak where the endpoint does not say. Default `"auto"`: negotiated and remembered. */
  readonly era: Era | "auto";
  /** Slots of the gate `mcp:stdio`: calls in flight on all stdio servers. Default 32. */
  readonly stdioPoolMax: number;
  /** Slots of a stdio endpoint's own gate `mcp:<name>`. Default 10. */
  readonly stdioEndpointMax: number;
  /** Live stdio subprocesses. Default: `stdioPoolMax`. */
  readonly stdioProcessMax: number;
  /** Slots of the shared gate `mcp:http`. Default 64. */
  readonly httpPoolMax: number;
  /**
   * Calls that may wait for one gate. A call waits at each gate it needs, so `mcp:stdio`
   * bounds all stdio calls together and `mcp:http` all HTTP calls. Default 10,000.
   */
  readonly admissionQueueMax: number;
  /** Longest wait for admission. Default 60 s. */
  readonly admissionTimeout: number;
  /** Connect and handshake together. Default 20 s. */
  readonly connectTimeout: number;
  /** Silence after which a request fails; progress resets it. Default 20 s, an endpoint may have its own. */
  readonly requestTimeout: number;
  /** Whole request, progress or not. Default 10 min. */
  readonly maxTotalTimeout: number;
  /** How long an endpoint fails fast after a failed connect. Default 2 min. */
  readonly breakerCooldown: number;
  /** A connection that dies sooner counts as a failed connect. Default 10 s. */
  readonly minUptime: number;
  /** An unused client is evicted after this. Default 5 min. */
  readonly idleTimeout: number;
  /** Each step of ending a subprocess: end of stdin, SIGTERM. Default 2 s. */
  readonly closeGrace: number;
  /** Running calls may finish this long at shutdown. Default 5 s. */
  readonly shutdownGrace: number;
  /** Largest single message. Default 64 MiB. */
  readonly messageMax: number;
  /** Kept tail of a subprocess's stderr. Default 8 KiB. */
  readonly stderrTailMax: number;
  /** Pages read of one list. Default 1,000. */
  readonly listPagesMax: number;
  /** Items read of one list. Default 10,000. */
  readonly listItemsMax: number;
  /** Artifacts kept in memory, their parts not counted. Default 10,000. */
  readonly artifactsMax: number;
  /** Their size as JSON; the newest is kept even when it alone is larger. Default 256 MiB. */
  readonly artifactBytesMax: number;
  /** list_changed notifications within this are one refresh. Default 100 ms. */
  readonly listChangedDebounce: number;
  /** A failed listing is tried again after this. Default 5 s. */
  readonly listRetry: number;
}

/** As `McpSettings`; a time may also be an Effect duration such as `"20 seconds"`. */
export type McpSettingsInput = {
  readonly [K in keyof McpSettings]?:
    | (K extends "era" ? McpSettings["era"] : K extends TimeKey ? Duration.Input : number)
    | undefined;
};

/** Settings that are times. */
export type TimeKey =
  | "admissionTimeout"
  | "connectTimeout"
  | "requestTimeout"
  | "maxTotalTimeout"
  | "breakerCooldown"
  | "minUptime"
  | "idleTimeout"
  | "closeGrace"
  | "shutdownGrace"
  | "listChangedDebounce"
  | "listRetry";

export type CountKey = Exclude<keyof McpSettings, TimeKey | "era">;
