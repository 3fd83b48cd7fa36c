/** The session of a Streamable HTTP connection, and the three HTTP verbs that speak in it. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { McpError } from "../core/errors.ts";
import { errorText } from "./http-errors.ts";
import { type HttpClient, scopedRequest } from "./http-fetch.ts";
import { type JSONRPCMessage, parseError } from "./http-message.ts";

type Send = Effect.Effect<Response, McpError, Scope.Scope>;

export interface HttpSession {
  /** The session that messages are sent in now. */
  id: string | undefined;
  /** The negotiated protocol version, once there is one. */
  version: string | undefined;
  readonly post: (message: JSONRPCMessage, session: string | undefined) => Send;
  /** Asks for an event stream, from `lastEventId` on when it is given. */
  readonly get: (session: string | undefined, lastEventId: string | undefined) => Send;
  /** Takes over the session that the answer to `initialize` names in its head. */
  readonly adopt: (response: Response) => void;
  /** True when a response says that the session is over and the request did not run. */
  readonly isOver: (response: Response) => Effect.Effect<boolean>;
  /** One DELETE; that the server knows none, or does not answer, harms nobody. */
  readonly terminate: (session: string) => Effect.Effect<void>;
  /** Terminates every session that was opened and not terminated yet. */
  readonly terminateAll: Effect.Effect<void>;
}

/** `grace`: how long a server may take over a DELETE, or over the body of a refusal, ms. */
export const makeHttpSession = (client: HttpClient, grace: number): HttpSession => {
  const open = new Set<string>();

  const http = (init: RequestInit, headers: Record<string, string>, session: string | undefined): Send =>
    scopedRequest(client.request, client.url, {
      ...init,
      headers: {
        ...headers,
        ...(session === undefined ? {} : { "mcp-session-id": session }),
        ...(self.version === undefined ? {} : { "mcp-protocol-version": self.version }),
      },
    });

  const terminate = (session: string): Effect.Effect<void> =>
    Effect.scoped(http({ method: "DELETE" }, {}, session)).pipe(
      Effect.timeoutOption(grace),
      Effect.ignore,
      Effect.tap(() => Effect.sync(() => open.delete(session))),
    );

  const self: HttpSession = {
    id: undefined,
    version: undefined,
    post: (message, session) =>
      http(
        { method: "POST", body: JSON.stringify(message) },
        { accept: "application/json, text/event-stream", "content-type": "application/json" },
        session,
      ),
    get: (session, lastEventId) =>
      http(
        { method: "GET" },
        { accept: "text/event-stream", ...(lastEventId ? { "last-event-id": lastEventId } : {}) },
        session,
      ),
    adopt: (response) => {
      if (!response.ok) return;
      self.id = response.headers.get("mcp-session-id") ?? undefined;
      if (self.id !== undefined) open.add(self.id);
    },
    // MCP says 404. Servers made after the SDK's samples, once restarted, say 400 with -32000.
    isOver: (response) =>
      response.status === 400
        ? Effect.map(errorText(response.clone(), grace), (body) => {
            const error = parseError(body)?.error;
            return error?.code === -32_000 && /session|not initialized/i.test(error.message);
          })
        : Effect.succeed(response.status === 404),
    terminate,
    terminateAll: Effect.suspend(() =>
      Effect.forEach([...open], terminate, { concurrency: "unbounded", discard: true }),
    ),
  };
  return self;
};
