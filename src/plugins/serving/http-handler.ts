/** The clients of a gateway over Streamable HTTP, of both eras at one URL, as one web-standard handler. */
import { WebStandardStreamableHTTPServerTransport as HttpTransport } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import * as Duration from "effect/Duration";
import { every } from "./background-timer.ts";
import { claimsModern, namesModern, readBody } from "./http-era.ts";
import { type GuardOptions, makeGuard } from "./http-guard.ts";
import { refusal, watched } from "./http-response.ts";
import type { ModernHttp } from "./modern-http.ts";
import { makeResumption, type Resumption } from "./resumption.ts";
import type { Clients, Served } from "./serving.ts";

export interface HttpOptions extends GuardOptions {
  /** Default `/mcp`. */
  readonly path?: string | undefined;
  /** Largest request, bytes. Default 16 MiB. */
  readonly bodyMax?: number | undefined;
  /** Sessions at once, and clients without a session. Default 256 each. When they are all in use, a new client gets 503. */
  readonly sessionsMax?: number | undefined;
  /** A session that does nothing and holds no connection is ended after this. Default 30 min. */
  readonly sessionIdle?: Duration.Input | undefined;
  /**
   * The same for a session whose client had an event stream and lost it: it is most likely gone. So long
   * a client without a session counts as one after its last request. Default 1 min.
   */
  readonly sessionLost?: Duration.Input | undefined;
  /**
   * How long a call goes on whose response's stream the client lost, so that it can come back for the
   * rest (2025-11-25 and later; earlier revisions have no way back, and their calls are cancelled at
   * once). Default 10 s.
   */
  readonly resumeWithin?: Duration.Input | undefined;
}

/** What clients are told to wait before they come back, ms. */
const retryInterval = 1_000;

export interface HttpHandler {
  /** Fit for `Deno.serve`, `Bun.serve`, Hono and the like. Never rejects. */
  readonly fetch: (request: Request) => Promise<Response>;
  readonly sessions: () => number;
  /** Ends the sweep for idle sessions; sessions and exchanges themselves end with the clients. */
  readonly close: () => void;
}

interface Session {
  readonly transport: HttpTransport;
  readonly served: Served;
  readonly resumption: Resumption;
  /** Responses that are being read. */
  streams: number;
  /** Whether the client ever listened for messages outside of its own requests. */
  listened: boolean;
  lastActivity: number;
}

export const makeHttpHandler = (clients: Clients, options: HttpOptions): HttpHandler => {
  const guard = makeGuard(options);
  const { path = "/mcp", bodyMax = 16 * 1024 * 1024, sessionsMax = 256 } = options;
  const millis = (given: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(given));
  const idleLimit = millis(options.sessionIdle ?? "30 minutes");
  const lostLimit = Math.min(idleLimit, millis(options.sessionLost ?? "1 minute"));
  const resumeWithin = millis(options.resumeWithin ?? "10 seconds");
  const sessions = new Map<string, Session>();
  let opening = 0;

  const idleSince = ({ streams, served, lastActivity }: Session): number =>
    streams > 0 || served.busy() > 0 ? Number.POSITIVE_INFINITY : lastActivity;

  const end = ([id, { served }]: readonly [string, Session]): void => {
    sessions.delete(id);
    served.close().catch(() => {});
  };

  const sweep = every(Math.max(50, lostLimit / 4), () => {
    const now = performance.now();
    for (const entry of sessions)
      if (idleSince(entry[1]) < now - (entry[1].listened ? lostLimit : idleLimit)) end(entry);
  });

  /** Room for one more session, made by ending the one that was idle longest where need be. */
  const makeRoom = (): boolean => {
    if (sessions.size + opening < sessionsMax) return true;
    const [longest] = [...sessions].toSorted(([, a], [, b]) => idleSince(a) - idleSince(b));
    if (!longest || idleSince(longest[1]) === Number.POSITIVE_INFINITY) return false;
    end(longest);
    return true;
  };

  /** Answers a client that comes back for the rest of a response. */
  const resume = (eventId: string, { resumption }: Session): Response | undefined => {
    if (resumption.streamOf(eventId) === undefined) return refusal(400, "This event is not known any more");
    const rest = resumption.rest(eventId);
    // The SDK would leave the stream open after an answer that had been there before.
    return rest === undefined ? undefined : new Response(rest, { headers: { "content-type": "text/event-stream" } });
  };

  /** Answers within a session; `parsedBody` where it was read already. A reader that is gone for good cancels what it waited for. */
  const answer = async (session: Session, request: Request, parsedBody?: unknown): Promise<Response> => {
    const { resumption, transport } = session;
    const gone = new AbortController();
    const lost = (): void => gone.abort(new Error("the client went away"));
    session.lastActivity = performance.now();
    const extra = { gone: gone.signal };
    const resumed = request.method === "GET" ? request.headers.get("last-event-id") : null;
    const response =
      (resumed !== null && resume(resumed, session)) ||
      (await transport.handleRequest(request, {
        authInfo: { token: "", clientId: "", scopes: [], extra },
        ...(parsedBody !== undefined && { parsedBody }),
      }));
    session.streams++;
    if (request.method === "GET" && response.ok && resumed === null) session.listened = true;
    let left: (givenUp: boolean) => void = (givenUp) => void (givenUp && request.method === "POST" && lost());
    if (resumed !== null && response.ok) left = resumption.reads(resumed);
    return watched(
      response,
      (givenUp) => {
        session.streams--;
        session.lastActivity = performance.now();
        left(givenUp);
      },
      (first) => {
        const eventId =
          request.method === "POST" ? /^id: (\S+)\n/.exec(new TextDecoder().decode(first))?.[1] : undefined;
        if (eventId !== undefined) left = resumption.reads(eventId, lost);
      },
      // A comment: some runtimes send the head of a response with its first byte.
      request.method === "GET" && response.ok ? ":\n\n" : undefined,
    );
  };

  const open = async (request: Request, parsedBody: unknown): Promise<Response> => {
    if (!makeRoom())
      return refusal(503, `All ${sessionsMax} sessions of this gateway are in use`, { "retry-after": "10" });
    opening++;
    try {
      let session: Session | undefined;
      const resumption = makeResumption(resumeWithin);
      const transport = new HttpTransport({
        sessionIdGenerator: () => crypto.randomUUID(),
        eventStore: resumption.events,
        retryInterval,
        maxRequestBodySize: bodyMax,
        onsessioninitialized: (id) => void sessions.set(id, session!),
      });
      // Its type says `| undefined` where the interface of the same package does not.
      const served = await clients.openSession(transport as Parameters<Clients["openSession"]>[0]);
      session = { transport, served, resumption, streams: 0, listened: false, lastActivity: performance.now() };
      void served.closed.then(() => {
        sessions.delete(transport.sessionId ?? "");
        resumption.close();
      });
      const response = await answer(session, request, parsedBody);
      if (transport.sessionId === undefined) await served.close();
      return response;
    } finally {
      opening--;
    }
  };

  let modern: Promise<ModernHttp> | undefined;
  const serveModern = async (request: Request, message: unknown): Promise<Response> =>
    (await (modern ??= clients.openModernHttp({ clientsMax: sessionsMax, presence: lostLimit }))).fetch(
      request,
      message,
    );

  /** A POST outside of a session: one of the modern era, or one that opens a session. */
  const post = async (request: Request, isModern: boolean): Promise<Response> => {
    const text = await readBody(request, bodyMax);
    if (text === undefined) return refusal(413, `A request has at most ${bodyMax} bytes`);
    let message: unknown;
    try {
      message = JSON.parse(text);
    } catch {
      return refusal(400, "Parse error: the body is no JSON", {}, -32700);
    }
    return isModern || claimsModern(message) ? serveModern(request, message) : open(request, message);
  };

  const route = async (request: Request): Promise<Response> => {
    const refused = guard(request);
    if (refused) return refused;
    if (new URL(request.url).pathname !== path) return refusal(404, `MCP is served at ${path}`);
    const isModern = namesModern(request.headers.get("mcp-protocol-version"));
    if (isModern) return request.method === "POST" ? post(request, true) : serveModern(request, undefined);
    const id = request.headers.get("mcp-session-id");
    const session = id === null ? undefined : sessions.get(id);
    if (session) return answer(session, request);
    if (id !== null) return refusal(404, "Session not found");
    if (request.method === "POST") return post(request, false);
    if (request.method === "GET" || request.method === "DELETE")
      return refusal(400, "Mcp-Session-Id header is required");
    return refusal(405, "Method not allowed", { allow: "GET, POST, DELETE" });
  };

  return {
    fetch: (request) =>
      route(request).catch((cause: unknown) => refusal(500, cause instanceof Error ? cause.message : "Internal error")),
    sessions: () => sessions.size,
    close: () => clearInterval(sweep),
  };
};
