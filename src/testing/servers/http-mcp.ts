/** How a well-behaved MCP server answers over Streamable HTTP, or over HTTP+SSE. */
import { randomUUID } from "node:crypto";
import type { HttpExchange } from "./http.ts";

export interface McpBehaviour {
  /** Default `streamable`. */
  readonly kind?: "streamable" | "sse";
  /** False: no session ids. Default true. */
  readonly sessions?: boolean;
  /** True: GET opens a standing stream; else it is refused with 405. */
  readonly push?: boolean;
  /** How a POST is answered. Default `json`. */
  readonly answers?: "json" | "sse";
}

const tools = ["echo", "slow"].map((name) => ({ name, description: name, inputSchema: { type: "object" } }));

const resultOf = (rpc: any): unknown => {
  switch (rpc.method) {
    case "initialize":
      return {
        protocolVersion: rpc.params?.protocolVersion ?? "2025-11-25",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "scripted", version: "1" },
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools };
    case "tools/call":
      return { content: [{ type: "text", text: JSON.stringify(rpc.params?.arguments ?? {}) }] };
    default:
      return undefined;
  }
};

const answerOf = (rpc: any): unknown => {
  const result = resultOf(rpc);
  return result === undefined
    ? { jsonrpc: "2.0", id: rpc.id, error: { code: -32_601, message: "Method not found" } }
    : { jsonrpc: "2.0", id: rpc.id, result };
};

const answerSse = (exchange: HttpExchange): void => {
  const { request, server } = exchange;
  const url = new URL(request.path, server.origin);
  if (request.method === "GET" && url.pathname === "/sse") {
    const id = randomUUID();
    const stream = exchange.stream();
    server.streams.set(id, stream);
    stream.event({ event: "endpoint", data: `/message?sessionId=${id}` });
    return;
  }
  const stream = server.streams.get(url.searchParams.get("sessionId") ?? "");
  if (request.method !== "POST" || url.pathname !== "/message" || !stream)
    return exchange.text(404, "Cannot " + request.method);
  exchange.text(202, "Accepted");
  if (request.rpc?.id !== undefined && request.rpc.method)
    stream.event({ event: "message", data: answerOf(request.rpc) });
};

const answerStreamable = (exchange: HttpExchange): void => {
  const { request, server } = exchange;
  const { sessions = true, push = false, answers = "json" } = server.behaviour;
  const session = String(request.headers["mcp-session-id"] ?? "");
  const { rpc } = request;
  const opening = rpc?.method === "initialize";
  if (sessions && !opening && !server.sessions.has(session)) return exchange.text(404, "Session not found");
  if (request.method === "DELETE") {
    server.sessions.delete(session);
    server.streams.get(session)?.end();
    return exchange.text(204);
  }
  if (request.method === "GET") {
    if (!push) return exchange.text(405);
    server.streams.set(session, exchange.stream());
    return;
  }
  if (rpc?.id === undefined || !rpc.method) return exchange.text(202);
  const opened = opening && sessions ? { "mcp-session-id": randomUUID() } : undefined;
  if (opened) server.sessions.add(opened["mcp-session-id"]);
  if (answers === "json") return exchange.json(answerOf(rpc), 200, opened);
  const stream = exchange.stream(opened);
  stream.event({ data: answerOf(rpc) });
  stream.end();
};

export const answerMcp = (exchange: HttpExchange): void =>
  exchange.server.behaviour.kind === "sse" ? answerSse(exchange) : answerStreamable(exchange);
