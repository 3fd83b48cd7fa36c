/**
 * Fault programs for the scripted HTTP server: what it is and does, as plain JSON, so that
 * a program can be generated, printed and kept. `startScriptedHttp` takes one.
 */
import type { ActingStep, AnsweringStep, Drip, Json, ServerDescription, StepsBy } from "./fault-program.ts";
import type { McpBehaviour } from "./http-mcp.ts";

/** A server-sent event; `data` that is no string is written as JSON. `$id` in `id` becomes the request's id. */
export interface EventFields {
  readonly data?: Json;
  readonly id?: string;
  readonly event?: string;
  /** The wait before a reconnect, ms. */
  readonly retry?: number;
}

/** Steps that only an HTTP server can take. */
export type HttpOnlyStep =
  /** Gives the default answer now, so that steps may follow it. */
  | { readonly default: true }
  /** Answers with this status instead of with a message; `headers` may hold a `retry-after`. */
  | { readonly status: number; readonly body?: string; readonly headers?: Readonly<Record<string, string>> }
  /** Redirects to a path of this server or to a URL; `status` is 307 by default. */
  | { readonly redirect: string; readonly status?: number }
  /** Sends the head of the answer now; a `content-type` here wins over the right one. */
  | { readonly head: Readonly<Record<string, string>> }
  /** Writes a head of about this many bytes. */
  | { readonly headFlood: number }
  /** Writes one event, also where JSON is expected. */
  | { readonly event: EventFields; readonly drip?: Drip }
  /** Takes the steps this many times, `every` ms (default 0), or until the client lets go. They are to give no answer. */
  | { readonly repeat: number; readonly steps: ReadonlyArray<HttpStep>; readonly every?: number }
  /** Ends the answer, with or without a message in it. */
  | { readonly end: true }
  /** Cuts the connection, within the answer where it has begun. */
  | { readonly drop: true }
  /** Writes any JSON as a message to the standing stream of the session. */
  | { readonly push: Json }
  /** Cuts the standing stream of the session. */
  | { readonly cut: true }
  /** Forgets all sessions: from here on they are answered 404. */
  | { readonly forget: true }
  /** Forgets all sessions and cuts all connections, as a restart does. */
  | { readonly restart: true };

/**
 * One thing the server does. The steps of a request run in order, requests run side by
 * side. A request whose steps give no answer gets the default one. An answer ends with
 * the last step, but for `never`, which leaves it open. Over HTTP+SSE messages go to the
 * standing stream, and the request that carried the question is accepted before the first.
 * Where answers are JSON, `notify` and `request` go to the standing stream.
 */
export type HttpStep = AnsweringStep | ActingStep | HttpOnlyStep;

/** What the server is and does. All of it is optional: an empty program is a polite server with the tool `echo`. */
export interface HttpProgram extends ServerDescription, McpBehaviour {
  /**
   * Steps by JSON-RPC method, or by HTTP method where a request carries none. A GET with
   * `Last-Event-ID` goes by `resume`, and its `$id` is that of the request whose event it names.
   * Requests in an unknown session are refused before.
   */
  readonly on?: StepsBy<HttpStep>;
}
