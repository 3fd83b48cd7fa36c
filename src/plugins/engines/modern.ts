/**
 * The modern era (2026-07-28): no session and no handshake, each request says by itself
 * who asks and in which revision. `server/discover` comes first, to learn whom we speak to.
 */
import { isRecord } from "../../core/artifact/json.ts";
import type { EngineConnectOptions, EngineSession, ProtocolEngine } from "../../core/contracts.ts";
import { ProtocolError } from "../../core/errors.ts";
import { type Fail, GARBAGE_FIX, introduced, openSession, orAbort } from "./handshake.ts";
import type { ModernSession } from "./modern-session.ts";

/** The modern revisions this engine speaks, the preferred first. */
const VERSIONS: ReadonlyArray<string> = ["2026-07-28"];
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";

const texts = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value) && value.every((item) => typeof item === "string") ? value : undefined;

/** Versions a refusal lists (UnsupportedProtocolVersionError). */
const supportedBy = (error: unknown): ReadonlyArray<string> | undefined =>
  error instanceof ProtocolError && isRecord(error.data) ? texts(error.data["supported"]) : undefined;

const discover = async (options: EngineConnectOptions, session: ModernSession, fail: Fail): Promise<EngineSession> => {
  const { signal } = options;
  const inCommon = (theirs: ReadonlyArray<string>): string | undefined =>
    VERSIONS.find((ours) => theirs.includes(ours));
  const ask = (version: string): Promise<unknown> => {
    session.speak(version);
    return session.request("server/discover", undefined, { signal });
  };

  await orAbort(session.start(), signal);
  const result = await ask(VERSIONS[0]!).catch((error: unknown) => {
    const version = inCommon(supportedBy(error) ?? []);
    if (version === undefined) throw error;
    // The revision has clients select from the list and ask again; a second refusal stands.
    return ask(version);
  });
  const theirs = isRecord(result) ? texts(result["supportedVersions"]) : undefined;
  if (!isRecord(result) || !theirs)
    throw fail("negotiate", "its answer to server/discover names no protocol versions", undefined, GARBAGE_FIX);
  const protocolVersion = inCommon(theirs);
  if (protocolVersion === undefined)
    throw fail("negotiate", `it speaks protocol versions ${theirs.join(", ")}, this engine ${VERSIONS.join(", ")}`);
  session.speak(protocolVersion);
  if (!session.isOpen()) throw fail("handshake", "it ended right after server/discover");

  const meta = isRecord(result["_meta"]) ? result["_meta"] : {};
  const server = introduced(meta[SERVER_INFO] ?? result["serverInfo"], result["capabilities"], options);
  options.transport.setProtocolVersion?.(protocolVersion);
  session.established(server.capabilities);
  return {
    era: "modern",
    protocolVersion,
    ...server,
    instructions: typeof result["instructions"] === "string" ? result["instructions"] : undefined,
    request: session.request,
    notify: session.notify,
    close: async () => session.end("the session was closed"),
  };
};

/**
 * Speaks revision 2026-07-28. The SDK's `Client` is not used: it refuses results without
 * `resultType`, which clients have to take for complete, parses each answer several times,
 * and keeps timers and caches that core has already. Its schemas check what servers ask
 * of the host, and are loaded when the first one asks.
 */
export const modernEngine: ProtocolEngine = {
  era: "modern",
  connect: (options: EngineConnectOptions): Promise<EngineSession> =>
    openSession(
      options,
      "server/discover",
      async () => (await import("./modern-session.ts")).makeModernSession(options),
      (session, fail) => discover(options, session, fail),
    ),
};
