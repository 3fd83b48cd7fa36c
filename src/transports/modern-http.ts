/**
 * Streamable HTTP of the modern era: every message is a POST of its own, with headers that
 * mirror its body. No session, no GET, no resuming; closing an answer's stream cancels it.
 * Source: MCP 2026-07-28, transports/streamable-http.
 */
import * as Effect from "effect/Effect";
import { shownText } from "../core/artifact/json.ts";
import type { TransportContext } from "../core/contracts.ts";
import type { McpError } from "../core/errors.ts";
import { readAnswer } from "./http-answer.ts";
import { type HttpClient, scopedRequest } from "./http-fetch.ts";
import {
  answeredId,
  cancelledId,
  errorCode,
  isRequest,
  type JSONRPCMessage,
  type JSONRPCRequest,
} from "./http-message.ts";
import { type ChannelHost, type Flight, type HttpChannel, newFlight } from "./http-transport.ts";
import { headersOf, type Mirrored, mirroredOf } from "./modern-http-headers.ts";

type Deliver = ChannelHost["deliver"];
type Json = Readonly<Record<string, unknown>>;

/** The server misses a header, or reads another value in it than in the body; the request did not run. */
const HEADER_MISMATCH = -32_020;
/** Pages of tools read to learn the headers that one call needs. */
const PAGES = 20;

export const makeModernHttp = (client: HttpClient, context: TransportContext, host: ChannelHost): HttpChannel => {
  const { settings } = context;
  /** What each tool seen in a list wants mirrored. */
  const mirrored = new Map<string, ReadonlyArray<Mirrored>>();

  const exchange = (message: JSONRPCMessage, flight: Flight, deliver: Deliver): Effect.Effect<void, McpError> =>
    Effect.scoped(
      Effect.gen(function* () {
        flight.outcome = "unknown";
        const tool = "method" in message && message.method === "tools/call" ? message.params?.["name"] : undefined;
        const response = yield* scopedRequest(client.request, client.url, {
          method: "POST",
          body: JSON.stringify(message),
          headers: {
            accept: "application/json, text/event-stream",
            "content-type": "application/json",
            ...headersOf(message, typeof tool === "string" ? mirrored.get(tool) : undefined),
          },
        });
        yield* readAnswer(response, message, { site: client.site, settings, answered: flight.answered, deliver });
      }),
    );

  /** Learns what the listed tools want mirrored. One that wants it wrongly is left out, as the revision demands. */
  const usable = (tools: ReadonlyArray<unknown>): ReadonlyArray<unknown> =>
    tools.filter((tool) => {
      const { name, inputSchema } = (tool ?? {}) as Json;
      const wanted = mirroredOf(inputSchema);
      if (typeof wanted === "string") context.diagnose(`tool '${shownText(name)}' is left out: ${wanted}`);
      else if (typeof name === "string") mirrored.set(name, wanted);
      return typeof wanted !== "string";
    });

  const learning = (message: JSONRPCMessage): JSONRPCMessage => {
    const result = "result" in message ? (message.result as Json | undefined) : undefined;
    const tools = result?.["tools"];
    return Array.isArray(tools) ? ({ ...message, result: { ...result, tools: usable(tools) } } as never) : message;
  };

  /** Reads the tools again, in the name of the call that needs it. */
  const relist = (call: JSONRPCRequest): Effect.Effect<void, McpError> =>
    Effect.gen(function* () {
      let cursor: unknown;
      for (let page = 1; page <= PAGES; page++) {
        const { progressToken: _token, ...meta } = (call.params?.["_meta"] ?? {}) as Json;
        const params = { _meta: meta, ...(cursor !== undefined && { cursor }) };
        const id = `${String(call.id)}:tools:${page}`;
        let result: Json | undefined;
        yield* exchange(
          { jsonrpc: "2.0", id, method: "tools/list", params } as JSONRPCRequest,
          newFlight(),
          (messages) => {
            for (const message of messages)
              if (answeredId(message) === id) result = (learning(message) as { readonly result?: Json }).result;
          },
        );
        cursor = result?.["nextCursor"];
        if (typeof cursor !== "string") return;
      }
    });

  /** A call refused for its headers is sent once more, when the tools have been read again. */
  const call = (message: JSONRPCRequest, flight: Flight): Effect.Effect<void, McpError> =>
    Effect.suspend(() => {
      let refusal: JSONRPCMessage | undefined;
      const first = newFlight();
      return exchange(message, first, (messages) => {
        for (const item of messages) {
          if (errorCode(item) === HEADER_MISMATCH && answeredId(item) === String(message.id)) refusal = item;
          else host.deliver([item]);
        }
      }).pipe(
        Effect.ensuring(Effect.sync(() => (flight.outcome = first.outcome))),
        Effect.flatMap(() => {
          if (refusal === undefined) return Effect.void;
          const unlearnt = (error: McpError): Effect.Effect<void> =>
            Effect.sync(() => {
              context.diagnose(`the tools could not be read again: ${error.message}`);
              host.deliver([refusal!]);
            });
          return Effect.matchEffect(relist(message), {
            onFailure: unlearnt,
            onSuccess: () => exchange(message, flight, host.deliver),
          });
        }),
      );
    });

  return {
    send: (message, flight) => {
      // The transport lets go of the cancelled request, which closes its stream: that is the cancellation.
      if (cancelledId(message) !== undefined) return Effect.void;
      if (!isRequest(message)) return exchange(message, flight, host.deliver);
      if (message.method === "tools/call") return call(message, flight);
      const deliver: Deliver = (messages) => host.deliver(messages.map(learning));
      return exchange(message, flight, message.method === "tools/list" ? deliver : host.deliver);
    },
    settled: Effect.void,
    end: Effect.void,
    sessionId: () => undefined,
    setProtocolVersion: () => {},
  };
};
