/**
 * The legacy eras (2024-10-07 to 2025-11-25), opened with `initialize`. The SDK is
 * loaded at the first connect, so the plugin value itself pulls nothing.
 */
import { isRecord } from "../../core/artifact/json.ts";
import type { EngineConnectOptions, EngineSession, ProtocolEngine } from "../../core/contracts.ts";
import { type ConnectFailed, HttpFailed, ProtocolError } from "../../core/errors.ts";
import { type Fail, GARBAGE_FIX, introduced, openSession, orAbort } from "./handshake.ts";
import type { LegacySession } from "./legacy-session.ts";

/** The versions a refusal lists: `data.supported`, or the dates in what was said (HTTP 400 bodies). */
const listedVersions = (error: unknown, offered: string): ReadonlyArray<string> => {
  if (!(error instanceof ProtocolError) && !(error instanceof HttpFailed && error.status === 400)) return [];
  const data = error instanceof ProtocolError && isRecord(error.data) ? error.data["supported"] : undefined;
  const cause = error.cause instanceof Error ? error.cause.message : String(error.cause ?? "");
  const said = /version/i.test(error.reason + cause) ? `${error.reason} ${cause}` : "";
  const listed: ReadonlyArray<unknown> = Array.isArray(data) ? data : (said.match(/\b\d{4}-\d{2}-\d{2}\b/g) ?? []);
  return [...new Set(listed.filter((version) => typeof version === "string" && version !== offered))] as Array<string>;
};

const handshake = async (options: EngineConnectOptions, session: LegacySession, fail: Fail): Promise<EngineSession> => {
  const { transport, signal } = options;
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
  const { protocolVersion, instructions } = result;
  if (typeof protocolVersion !== "string") throw wrong("names no protocol version");
  if (!SUPPORTED_PROTOCOL_VERSIONS.includes(protocolVersion))
    throw fail("handshake", `it speaks protocol version ${protocolVersion.slice(0, 40)}, this client ${ours}`);
  const server = introduced(result["serverInfo"], result["capabilities"], options);

  transport.setProtocolVersion?.(protocolVersion);
  await orAbort(session.notify("notifications/initialized"), signal);
  if (!session.isOpen()) throw fail("handshake", "it ended right after initialize");
  session.established();
  return {
    era: "legacy",
    protocolVersion,
    ...server,
    instructions: typeof instructions === "string" ? instructions : undefined,
    request: session.request,
    notify: session.notify,
    close: async () => session.end("the session was closed"),
  };
};

/** Speaks the five legacy revisions on `@modelcontextprotocol/sdk`, negotiating down where a server is older. */
export const legacyEngine: ProtocolEngine = {
  era: "legacy",
  connect: (options: EngineConnectOptions): Promise<EngineSession> =>
    openSession(
      options,
      "initialize",
      async () => (await import("./legacy-session.ts")).makeSession(options),
      (session, fail) => handshake(options, session, fail),
    ),
};
