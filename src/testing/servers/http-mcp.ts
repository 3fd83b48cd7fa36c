/** How a well-behaved MCP server answers over Streamable HTTP, or over HTTP+SSE. */
import { randomUUID } from "node:crypto";
import { type DefaultAnswer, defaultAnswers } from "./default-answers.ts";
import type { EventWriter, HttpExchange } from "./http.ts";
import { Line } from "./http-line.ts";

export interface McpBehaviour {
  /** Default `streamable`. */
  readonly kind?: "streamable" | "sse";
  /** `modern`: opened by `server/discover`, without sessions and standing streams. Default `legacy`. */
  readonly era?: "legacy" | "modern";
  /** False: no session ids. Default true. */
  readonly sessions?: boolean;
  /** True: GET opens a standing stream; else it is refused with 405. */
  readonly push?: boolean;
  /** How a POST is answered. Default `json`. */
  readonly answers?: "json" | "sse";
}

/** The session that a request names. */
const sessionOf = ({ request, server }: HttpExchange): string =>
  server.behaviour.kind === "sse"
    ? (new URL(request.path, server.origin).searchParams.get("sessionId") ?? "")
    : String(request.headers["mcp-session-id"] ?? "");

const isSse = ({ server }: HttpExchange): boolean => server.behaviour.kind === "sse";
const hasSessions = ({ server: { behaviour } }: HttpExchange): boolean =>
  behaviour.era !== "modern" && behaviour.sessions !== false;

/** Refuses what no server of the kind takes, and sessions it does not know; `true` when it did. */
export const refuse = (exchange: HttpExchange): boolean => {
  const { request, server } = exchange;
  if (isSse(exchange)) {
    const { pathname } = new URL(request.path, server.origin);
    const taken =
      request.method === "GET"
        ? pathname === "/sse"
        : request.method === "POST" && pathname === "/message" && server.streams.has(sessionOf(exchange));
    if (!taken) exchange.text(404, `Cannot ${request.method}`);
    return !taken;
  }
  const known =
    !hasSessions(exchange) || request.rpc?.method === "initialize" || server.sessions.has(sessionOf(exchange));
  if (!known) exchange.text(404, "Session not found");
  return !known;
};

/** The way back that a request opens; a GET that resumes an answer opens no standing stream. */
export const lineOf = (exchange: HttpExchange, resumes = false): Line => {
  const { request, server } = exchange;
  const session = sessionOf(exchange);
  if (request.method === "GET") {
    const opened = isSse(exchange) ? randomUUID() : session;
    const onStanding = resumes ? undefined : (stream: EventWriter) => void server.streams.set(opened, stream);
    return new Line({ exchange, session: opened, kind: "stream", onStanding });
  }
  if (isSse(exchange)) return new Line({ exchange, session, kind: "stream", elsewhere: server.streams.get(session) });
  const kind = server.behaviour.answers === "sse" ? "stream" : "json";
  if (request.rpc?.method !== "initialize" || !hasSessions(exchange)) return new Line({ exchange, session, kind });
  const opened = randomUUID();
  const headers = (): Record<string, string> => {
    server.sessions.add(opened);
    return { "mcp-session-id": opened };
  };
  return new Line({ exchange, session: opened, kind, headers });
};

/** Gives the answer of a well-behaved server on that line. Standing streams stay open, the caller ends the others. */
export const answerOn = async (line: Line, exchange: HttpExchange, answer: DefaultAnswer): Promise<void> => {
  const { request, server } = exchange;
  const { rpc } = request;
  if (request.method === "GET") {
    if (isSse(exchange)) return line.event({ event: "endpoint", data: `/message?sessionId=${line.session}` });
    return server.behaviour.push && server.behaviour.era !== "modern" ? void line.open() : line.status(405);
  }
  if (request.method === "DELETE") {
    server.sessions.delete(line.session);
    server.streams.get(line.session)?.end();
    return line.status(204);
  }
  if (rpc?.id !== undefined && rpc.method) return line.message(answer(rpc));
  if (!isSse(exchange)) line.status(202);
};

const politely = (() => {
  const tools = ["echo", "slow"].map((name) => ({ name, description: name, inputSchema: { type: "object" } }));
  const description = { tools, serverInfo: { name: "scripted", version: "1" } };
  return { legacy: defaultAnswers(description), modern: defaultAnswers(description, "modern") };
})();

export const answerMcp = async (exchange: HttpExchange): Promise<void> => {
  if (refuse(exchange)) return;
  const line = lineOf(exchange);
  await answerOn(line, exchange, politely[exchange.server.behaviour.era ?? "legacy"]);
  if (!line.stays) line.end();
};
