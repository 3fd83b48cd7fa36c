/**
 * The one family of errors. Each carries a `_tag`, structured fields and a
 * message a model can read and act on. Effect hosts catch by tag; Promise hosts
 * are rejected with the same instance. No field ever holds a secret.
 */
import {
  type ArgumentIssue,
  ended,
  listed,
  type McpErrorClass,
  type ProcessEnd,
  span,
  tagged,
  tail,
} from "./error-class.ts";

import type { ArtifactNotFound, PointerUnresolved } from "./artifact/artifact-errors.ts";
import type { ToolQuarantined } from "./pinning/tool-quarantined.ts";

export { ArtifactNotFound, PointerUnresolved } from "./artifact/artifact-errors.ts";
export { ToolQuarantined } from "./pinning/tool-quarantined.ts";
export { type ArgumentIssue, isMcpError, McpError, type McpErrorClass, type ProcessEnd } from "./error-class.ts";

const InvalidEndpointBase: McpErrorClass<"InvalidEndpoint", { field: string; reason: string; fix: string }> = tagged(
  "InvalidEndpoint",
  (f) => `Invalid endpoint: '${f.field}' ${f.reason}. ${f.fix}`,
);
/** An endpoint's description is wrong; raised at attach, before any I/O. */
export class InvalidEndpoint extends InvalidEndpointBase {}

const InvalidConfigBase: McpErrorClass<
  "InvalidConfig",
  { source: string; field: string; reason: string; fix: string }
> = tagged("InvalidConfig", (f) => `Invalid configuration in ${f.source}: '${f.field}' ${f.reason}. ${f.fix}`);
/** A configuration file or setting is wrong. */
export class InvalidConfig extends InvalidConfigBase {}

/** Where a connection attempt stopped. */
export type ConnectPhase = "resolve" | "spawn" | "transport" | "negotiate" | "handshake";

export interface ConnectFailedFields extends ProcessEnd {
  server: string;
  endpointId: string;
  phase: ConnectPhase;
  reason: string;
  fix?: string | undefined;
  /** Milliseconds spent before the attempt failed. */
  elapsed?: number | undefined;
}
const ConnectFailedBase: McpErrorClass<"ConnectFailed", ConnectFailedFields> = tagged("ConnectFailed", (f) => {
  const after = f.elapsed === undefined ? "" : ` after ${span(f.elapsed)}`;
  const fix = f.fix ? ` ${f.fix}` : "";
  return `MCP server '${f.server}' could not be connected, phase ${f.phase}${after}: ${f.reason}${ended(f)}.${fix}${tail(f.stderrTail)}`;
});
/** A server could not be reached or did not complete the handshake. */
export class ConnectFailed extends ConnectFailedBase {}

const CircuitOpenBase: McpErrorClass<
  "CircuitOpen",
  {
    server: string;
    endpointId: string;
    /** Epoch ms. */ retryAt: number;
    /** Milliseconds from now. */ retryAfter: number;
  }
> = tagged("CircuitOpen", (f, cause) => {
  const why = cause instanceof Error ? ` Last failure: ${cause.message}` : "";
  return `MCP server '${f.server}' failed recently and is not tried again for ${span(f.retryAfter)}.${why}`;
});
/** The endpoint failed recently and fails fast until `retryAt`; `cause` is the original failure. */
export class CircuitOpen extends CircuitOpenBase {}

const OverloadedBase: McpErrorClass<
  "Overloaded",
  { gate: string; capacity: number; queued: number; reason: "queue-full" | "timeout" | "never-fits" }
> = tagged("Overloaded", (f) => {
  const why = {
    "queue-full": "its queue is full",
    timeout: "no slot came free in time",
    "never-fits": "the demand is larger than the gate",
  }[f.reason];
  return `Too busy: gate '${f.gate}' has ${f.capacity} slots and ${f.queued} waiting; ${why}. Try again later, or with fewer calls at once.`;
});
/** The runtime has no room for this call now. */
export class Overloaded extends OverloadedBase {}

const RequestTimeoutBase: McpErrorClass<
  "RequestTimeout",
  { server: string; method: string; kind: "idle" | "total"; /** The limit that ran out, ms. */ timeout: number }
> = tagged(
  "RequestTimeout",
  (f) =>
    `MCP server '${f.server}' gave no ${f.kind === "idle" ? "sign of life" : "answer"} to ${f.method} within ${span(f.timeout)}. ` +
    `The request was cancelled; it may still have run.`,
);
/** No answer in time: silence (`idle`) or the whole request (`total`). */
export class RequestTimeout extends RequestTimeoutBase {}

const ConnectionLostBase: McpErrorClass<
  "ConnectionLost",
  { server: string; outcome: "not-sent" | "unknown"; reason: string } & ProcessEnd
> = tagged("ConnectionLost", (f) => {
  const ran =
    f.outcome === "not-sent"
      ? "The request was not sent, so it is safe to repeat."
      : "The request may have run; check before repeating it.";
  return `Connection to MCP server '${f.server}' was lost: ${f.reason}${ended(f)}. ${ran}${tail(f.stderrTail)}`;
});
/** The connection ended under the request; `outcome` says whether it may have run. */
export class ConnectionLost extends ConnectionLostBase {}

const ProtocolErrorBase: McpErrorClass<
  "ProtocolError",
  { server: string; /** JSON-RPC error code. */ code: number; reason: string; data?: unknown }
> = tagged("ProtocolError", (f) => `MCP server '${f.server}' answered with error ${f.code}: ${f.reason}`);
/** The server answered with a JSON-RPC error. */
export class ProtocolError extends ProtocolErrorBase {}

const HttpFailedBase: McpErrorClass<
  "HttpFailed",
  {
    server: string;
    status: number;
    reason: string;
    /** Milliseconds the server asked to wait (Retry-After). */ retryAfter?: number | undefined;
  }
> = tagged("HttpFailed", (f) => {
  const wait = f.retryAfter === undefined ? "" : ` It asks to wait ${span(f.retryAfter)}.`;
  return `MCP server '${f.server}' answered with HTTP ${f.status}: ${f.reason}.${wait}`;
});
/** The server answered with an HTTP status that carries no MCP message. */
export class HttpFailed extends HttpFailedBase {}

const UnauthorizedBase: McpErrorClass<
  "Unauthorized",
  { server: string; reason: "unauthenticated" | "token-rejected" | "forbidden"; detail?: string | undefined }
> = tagged("Unauthorized", (f) => {
  const what = {
    unauthenticated: "wants credentials and has none",
    "token-rejected": "rejected the credential",
    forbidden: "forbids this request",
  }[f.reason];
  return `MCP server '${f.server}' ${what}${f.detail ? `: ${f.detail}` : ""}. Check the endpoint's headers or credential.`;
});
/** The server refuses the credential, or its absence. */
export class Unauthorized extends UnauthorizedBase {}

const InsufficientScopeBase: McpErrorClass<"InsufficientScope", { server: string; scopes: ReadonlyArray<string> }> =
  tagged(
    "InsufficientScope",
    (f) =>
      `MCP server '${f.server}' wants a wider scope${f.scopes.length ? `: ${f.scopes.join(" ")}` : ""}. Grant it to the credential.`,
  );
/** The credential is valid, its scope is too narrow (RFC 6750 section 3.1). */
export class InsufficientScope extends InsufficientScopeBase {}

const AuthorizationDiscoveryFailedBase: McpErrorClass<
  "AuthorizationDiscoveryFailed",
  { server: string; /** The document that failed. */ url: string; reason: string; retryable: boolean }
> = tagged(
  "AuthorizationDiscoveryFailed",
  (f) =>
    `No authorization server for MCP server '${f.server}': ${f.url} ${f.reason}. ` +
    (f.retryable ? "Try again later." : "Its metadata has to be mended, or the credential told its issuer."),
);
/** The metadata of a protected server or of its authorization server is missing, unreachable or lies (RFC 9728, RFC 8414). */
export class AuthorizationDiscoveryFailed extends AuthorizationDiscoveryFailedBase {}

const TokenEndpointFailedBase: McpErrorClass<
  "TokenEndpointFailed",
  {
    server: string;
    tokenEndpoint: string;
    /** The OAuth error code (RFC 6749 section 5.2), for example `invalid_client`. */
    error?: string | undefined;
    status?: number | undefined;
    reason: string;
    /** True when the same request may succeed later. */
    retryable: boolean;
    /** Milliseconds the endpoint asked to wait (Retry-After). */
    retryAfter?: number | undefined;
  }
> = tagged("TokenEndpointFailed", (f) => {
  const what = [f.error, f.status === undefined ? undefined : `HTTP ${f.status}`].filter(Boolean).join(", ");
  const next = f.retryable
    ? `Try again ${f.retryAfter === undefined ? "later" : `in ${span(f.retryAfter)}`}.`
    : "Check the endpoint's credential.";
  return `No token for MCP server '${f.server}' from ${f.tokenEndpoint}${what ? ` (${what})` : ""}: ${f.reason}. ${next}`;
});
/** The authorization server gave no token; distinct from a server that is down. */
export class TokenEndpointFailed extends TokenEndpointFailedBase {}

const ToolNotFoundBase: McpErrorClass<"ToolNotFound", { tool: string; similar: ReadonlyArray<string> }> = tagged(
  "ToolNotFound",
  (f) =>
    `There is no tool '${f.tool}'.${f.similar.length ? ` Similar: ${f.similar.join(", ")}.` : " List the tools to see the names."}`,
);
/** No attached server offers this tool. */
export class ToolNotFound extends ToolNotFoundBase {}

const InvalidArgumentsBase: McpErrorClass<"InvalidArguments", { tool: string; issues: ReadonlyArray<ArgumentIssue> }> =
  tagged(
    "InvalidArguments",
    (f) => `The arguments of '${f.tool}' do not fit its schema; nothing was sent:${listed(f.issues)}`,
  );
/** The arguments break the tool's own input schema; nothing was sent. */
export class InvalidArguments extends InvalidArgumentsBase {}

const OutputInvalidBase: McpErrorClass<
  "OutputInvalid",
  { tool: string; issues: ReadonlyArray<ArgumentIssue>; /** The raw result, kept for the host. */ result: unknown }
> = tagged(
  "OutputInvalid",
  (f) => `'${f.tool}' ran, but its result does not fit its output schema:${listed(f.issues)}`,
);
/** The tool ran and its result breaks its own output schema. */
export class OutputInvalid extends OutputInvalidBase {}

const ToolFailedBase: McpErrorClass<"ToolFailed", { tool: string; text: string; result: unknown }> = tagged(
  "ToolFailed",
  (f) => `'${f.tool}' reports an error: ${f.text}`,
);
/** Opt-in for Effect hosts: a result with `isError` as a typed failure. */
export class ToolFailed extends ToolFailedBase {}

const SchemaRejectedBase: McpErrorClass<"SchemaRejected", { tool: string; reason: string }> = tagged(
  "SchemaRejected",
  (f) => `The input schema of '${f.tool}' cannot be used: ${f.reason}`,
);
/** A tool's schema is hopeless; that one tool is skipped. */
export class SchemaRejected extends SchemaRejectedBase {}

const MessageTooLargeBase: McpErrorClass<
  "MessageTooLarge",
  { server: string; /** Bytes, as far as read. */ size: number; limit: number }
> = tagged(
  "MessageTooLarge",
  (f) =>
    `MCP server '${f.server}' sent a message of more than ${f.limit} bytes. Ask for less, or raise the setting 'messageMax'.`,
);
/** One message of the server is over `messageMax`; the connection lives on. */
export class MessageTooLarge extends MessageTooLargeBase {}

const CancelledBase: McpErrorClass<"Cancelled", { reason: string }> = tagged(
  "Cancelled",
  (f) => `The request was cancelled: ${f.reason}`,
);
/** The caller cancelled. */
export class Cancelled extends CancelledBase {}

const RuntimeClosedBase: McpErrorClass<"RuntimeClosed", {}> = tagged(
  "RuntimeClosed",
  () => "The runtime is closed and takes no more calls.",
);
/** The runtime is shutting down or closed. */
export class RuntimeClosed extends RuntimeClosedBase {
  constructor() {
    super({});
  }
}

const PluginFailedBase: McpErrorClass<"PluginFailed", { plugin: string; reason: string }> = tagged(
  "PluginFailed",
  (f) => `Plugin '${f.plugin}' failed: ${f.reason}`,
);
/** A plugin threw something untyped, or plugins are registered wrongly. */
export class PluginFailed extends PluginFailedBase {}

/** What can go wrong while a client is obtained from the pool. */
export type AcquireError =
  | InvalidEndpoint
  | ConnectFailed
  | CircuitOpen
  | Overloaded
  | Unauthorized
  | InsufficientScope
  | AuthorizationDiscoveryFailed
  | TokenEndpointFailed
  | HttpFailed
  | ProtocolError
  | RequestTimeout
  | ConnectionLost
  | MessageTooLarge
  | PluginFailed
  | RuntimeClosed
  | Cancelled;

/** What can go wrong with one request on a live client. */
export type RequestError =
  | RequestTimeout
  | ConnectionLost
  | ProtocolError
  | HttpFailed
  | Unauthorized
  | InsufficientScope
  | AuthorizationDiscoveryFailed
  | TokenEndpointFailed
  | MessageTooLarge
  | Cancelled
  | PluginFailed
  | Overloaded
  | RuntimeClosed;

/** What can go wrong with one tool call. */
export type CallError =
  | AcquireError
  | RequestError
  | ToolNotFound
  | ToolQuarantined
  | InvalidArguments
  | OutputInvalid
  | ArtifactNotFound
  | PointerUnresolved;
