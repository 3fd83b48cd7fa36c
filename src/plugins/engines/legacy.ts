/**
 * The legacy eras (2024-10-07 to 2025-11-25), opened with `initialize`. The SDK is
 * loaded at the first connect, so the plugin value itself pulls nothing.
 */
import type { EngineConnectOptions, EngineSession, ProtocolEngine, ServerCapabilities } from "../../core/contracts.ts";
import { ConnectFailed, type ConnectPhase, HttpFailed, isMcpError, type McpError } from "../../core/errors.ts";
import { ConnectionLost, PluginFailed, ProtocolError } from "../../core/errors.ts";
import { isRecord, type Json } from "./legacy-calls.ts";
import type { LegacySession } from "./legacy-session.ts";

type Fail = (phase: ConnectPhase, reason: string, cause?: unknown, fix?: string) => ConnectFailed;

const GARBAGE_FIX = "Check that the command or address is that of an MCP server, and that it writes nothing else.";

/** Settles with the promise, or rejects with the signal's reason. */
const orAbort = <A>(promise: Promise<A>, signal: AbortSignal): Promise<A> =>
  new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });

/** The versions a refusal lists: `data.supported`, or the dates in what was said (HTTP 400 bodies). */
const listedVersions = (error: unknown, offered: string): ReadonlyArray<string> => {
  if (!(error instanceof ProtocolError) && !(error instanceof HttpFailed && error.status === 400)) return [];
  const data = error instanceof ProtocolError && isRecord(error.data) ? error.data["supported"] : undefined;
  const cause = error.cause instanceof Error ? error.cause.message : String(error.cause ?? "");
  const said = /version/i.test(error.reason + cause) ? `${error.reason} ${cause}` : "";
  const listed: ReadonlyArray<unknown> = Array.isArray(data) ? data : (said.match(/\b\d{4}-\d{2}-\d{2}\b/g) ?? []);
  return [...new Set(listed.filter((version) => typeof version === "string" && version !== offered))] as Array<string>;
};

/** Says why the handshake did not end well; errors that are exact already stay as they are. */
const explain = (cause: unknown, session: LegacySession, signal: AbortSignal, fail: Fail): McpError => {
  if (cause instanceof ConnectFailed) return cause;
  const garbage = session.heardGarbage() ? ", and what it sent is not MCP" : "";
  const fix = garbage ? GARBAGE_FIX : undefined;
  if (signal.aborted)
    return isMcpError(signal.reason)
      ? signal.reason
      : fail("handshake", `it never answered initialize${garbage}`, signal.reason, fix);
  if (cause instanceof ConnectionLost)
    return fail("handshake", `it ended before it answered initialize (${cause.reason})${garbage}`, cause, fix);
  if (cause instanceof ProtocolError)
    return fail("handshake", `it refused initialize with error ${cause.code}: ${cause.reason}`, cause);
  if (cause instanceof PluginFailed) return fail("transport", cause.reason, cause);
  if (isMcpError(cause)) return cause;
  return fail("transport", cause instanceof Error ? cause.message : String(cause), cause);
};

const handshake = async (options: EngineConnectOptions, session: LegacySession, fail: Fail): Promise<EngineSession> => {
  const { transport, signal, name, listener } = options;
  const { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS, capabilitiesOf } = await import("./legacy-session.ts");
  const ours = SUPPORTED_PROTOCOL_VERSIONS.join(", ");
  const capabilities = capabilitiesOf(options.handlers);
  const initialize = (protocolVersion: string): Promise<unknown> =>
    session.request("initialize", { protocolVersion, capabilities, clientInfo: options.clientInfo }, { signal });

  await orAbort(session.start(), signal);
  const result = await initialize(LATEST_PROTOCOL_VERSION).catch((error: unknown) => {
    const listed = listedVersions(error, LATEST_PROTOCOL_VERSION);
    const common = SUPPORTED_PROTOCOL_VERSIONS.find((version) => listed.includes(version));
    if (common !== undefined) return initialize(common);
    if (listed.length === 0) throw error;
    throw fail("handshake", `it speaks protocol versions ${listed.join(", ")}, this client ${ours}`, error);
  });

  const wrong = (what: string): ConnectFailed =>
    fail("handshake", `its answer to initialize ${what}`, undefined, GARBAGE_FIX);
  if (!isRecord(result)) throw wrong("is no object");
  const { protocolVersion, serverInfo, instructions } = result;
  if (typeof protocolVersion !== "string") throw wrong("names no protocol version");
  if (!SUPPORTED_PROTOCOL_VERSIONS.includes(protocolVersion))
    throw fail("handshake", `it speaks protocol version ${protocolVersion.slice(0, 40)}, this client ${ours}`);
  const advertised = isRecord(result["capabilities"]) ? result["capabilities"] : undefined;
  if (!advertised) listener.onDiagnostic("the server names no capabilities");
  const named = isRecord(serverInfo) && typeof serverInfo["name"] === "string";
  if (!named) listener.onDiagnostic("the server does not say its name; its label is used");
  const info: Json = isRecord(serverInfo) ? serverInfo : {};

  transport.setProtocolVersion?.(protocolVersion);
  await orAbort(session.notify("notifications/initialized"), signal);
  if (!session.isOpen()) throw fail("handshake", "it ended right after initialize");
  session.established();
  return {
    era: "legacy",
    protocolVersion,
    serverInfo: {
      ...info,
      name: named ? (info["name"] as string) : name,
      version: typeof info["version"] === "string" ? info["version"] : "unknown",
    },
    capabilities: (advertised ?? {}) as ServerCapabilities,
    instructions: typeof instructions === "string" ? instructions : undefined,
    request: session.request,
    notify: session.notify,
    close: async () => session.end("the session was closed"),
  };
};

/** Speaks the five legacy revisions on `@modelcontextprotocol/sdk`, negotiating down where a server is older. */
export const legacyEngine: ProtocolEngine = {
  era: "legacy",
  connect: async (options: EngineConnectOptions): Promise<EngineSession> => {
    const started = performance.now();
    const fail: Fail = (phase, reason, cause, fix) => {
      const { endpoint, name: server, transport } = options;
      const elapsed = performance.now() - started;
      const end = transport.end?.() ?? {};
      return new ConnectFailed({ server, endpointId: endpoint.endpointId, phase, reason, fix, elapsed, ...end }, cause);
    };
    const { makeSession } = await import("./legacy-session.ts");
    const session = makeSession(options);
    try {
      return await handshake(options, session, fail);
    } catch (cause) {
      session.end("the handshake failed");
      throw explain(cause, session, options.signal, fail);
    }
  },
};
