/** What the opening of a session has in common in all eras: how it is awaited, and how its failure is told. */
import { isRecord } from "../../core/artifact/json.ts";
import type { EngineConnectOptions, EngineSession, Implementation, ServerCapabilities } from "../../core/contracts.ts";
import { ConnectFailed, ConnectionLost, type ConnectPhase, isMcpError, type McpError } from "../../core/errors.ts";
import { PluginFailed, ProtocolError } from "../../core/errors.ts";
import { type Json } from "./legacy-calls.ts";

/** A session before its opening request is answered. */
export interface OpeningSession {
  /** Whether something came in that is no MCP message. */
  readonly heardGarbage: () => boolean;
  /** Ends the session: calls in flight fail, messages are ignored. */
  readonly end: (reason: string) => void;
}

export type Fail = (phase: ConnectPhase, reason: string, cause?: unknown, fix?: string) => ConnectFailed;

export const GARBAGE_FIX =
  "Check that the command or address is that of an MCP server, and that it writes nothing else.";

/** Settles with the promise, or rejects with the signal's reason. */
export const orAbort = <A>(promise: Promise<A>, signal: AbortSignal): Promise<A> =>
  new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });

/** Who the server says it is; its label where it does not say. */
export const introduced = (
  info: unknown,
  advertised: unknown,
  { name, listener }: EngineConnectOptions,
): Pick<EngineSession, "serverInfo" | "capabilities"> => {
  if (!isRecord(advertised)) listener.onDiagnostic("the server names no capabilities");
  const given: Json = isRecord(info) ? info : {};
  const named = typeof given["name"] === "string";
  if (!named) listener.onDiagnostic("the server does not say its name; its label is used");
  const version = typeof given["version"] === "string" ? given["version"] : "unknown";
  return {
    serverInfo: { ...given, name: named ? given["name"] : name, version } as Implementation,
    capabilities: (isRecord(advertised) ? advertised : {}) as ServerCapabilities,
  };
};

/** Says why the opening did not end well; errors that are exact already stay as they are. */
const explain = (
  cause: unknown,
  opening: string,
  session: OpeningSession,
  signal: AbortSignal,
  fail: Fail,
): McpError => {
  if (cause instanceof ConnectFailed) return cause;
  const garbage = session.heardGarbage() ? ", and what it sent is not MCP" : "";
  const fix = garbage ? GARBAGE_FIX : undefined;
  if (signal.aborted)
    return isMcpError(signal.reason)
      ? signal.reason
      : fail("handshake", `it never answered ${opening}${garbage}`, signal.reason, fix);
  if (cause instanceof ConnectionLost)
    return fail("handshake", `it ended before it answered ${opening} (${cause.reason})${garbage}`, cause, fix);
  if (cause instanceof ProtocolError)
    return fail("handshake", `it refused ${opening} with error ${cause.code}: ${cause.reason}`, cause);
  if (cause instanceof PluginFailed) return fail("transport", cause.reason, cause);
  if (isMcpError(cause)) return cause;
  return fail("transport", cause instanceof Error ? cause.message : String(cause), cause);
};

/** Opens a session. When that fails, the session is ended and the rejection says why, in the terms of `opening`. */
export const openSession = async <S extends OpeningSession>(
  options: EngineConnectOptions,
  opening: string,
  make: () => Promise<S>,
  handshake: (session: S, fail: Fail) => Promise<EngineSession>,
): Promise<EngineSession> => {
  const started = performance.now();
  const fail: Fail = (phase, reason, cause, fix) => {
    const { endpoint, name: server, transport } = options;
    const elapsed = performance.now() - started;
    const end = transport.end?.() ?? {};
    return new ConnectFailed({ server, endpointId: endpoint.endpointId, phase, reason, fix, elapsed, ...end }, cause);
  };
  const session = await make();
  try {
    return await handshake(session, fail);
  } catch (cause) {
    session.end("the handshake failed");
    throw explain(cause, opening, session, options.signal, fail);
  }
};
