/**
 * The HTTP+SSE transport of MCP 2024-11-05: one event stream for all answers, a second
 * URL for messages. Deprecated, and still what many servers speak.
 *
 * The SDK's own client transport is not used: its EventSource reconnects by itself into a
 * new session that knows nothing of the handshake, and a stream that ends fails no request.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { TransportContext } from "../core/contracts.ts";
import { ConnectFailed, ConnectionLost, type McpError, MessageTooLarge } from "../core/errors.ts";
import { readAcceptance, readRefusal } from "./http-answer.ts";
import { isEventStream, mediaType, readEvents } from "./http-body.ts";
import { errorText, refusal } from "./http-errors.ts";
import { type HttpClient, scopedRequest } from "./http-fetch.ts";
import { isRequest, type JSONRPCMessage, parseMessages } from "./http-message.ts";
import type { ChannelHost, HttpChannel } from "./http-transport.ts";

export const makeSse = (client: HttpClient, context: TransportContext, host: ChannelHost): HttpChannel => {
  const { name: server, settings } = context;
  let version: string | undefined;
  /** Where messages go; asked for by the first message, named by the stream's first event. */
  let endpoint: Deferred.Deferred<URL, McpError> | undefined;

  const headers = (own: Record<string, string>): Record<string, string> =>
    version === undefined ? own : { ...own, "mcp-protocol-version": version };

  const failed = (reason: string): McpError =>
    new ConnectFailed({ server, endpointId: client.site.endpointId, phase: "transport", reason });

  /** Messages go to the stream's own origin only, whatever the stream says. */
  const named = (data: string): Effect.Effect<URL, McpError> => {
    const url = URL.canParse(data, client.url) ? new URL(data, client.url) : undefined;
    if (url?.origin === client.url.origin) return Effect.succeed(url);
    const where = url ? `another origin, ${url.origin}` : "no URL";
    return Effect.fail(failed(`its event stream names ${where}, as the place for messages`));
  };

  /** Reads the stream to its end, which is the end of the connection. */
  const stream = (found: Deferred.Deferred<URL, McpError>): Effect.Effect<void, McpError> =>
    Effect.scoped(
      Effect.gen(function* () {
        const accept = { accept: "text/event-stream" };
        const response = yield* scopedRequest(client.request, client.url, { method: "GET", headers: headers(accept) });
        if (!response.ok)
          return yield* Effect.flatMap(
            Effect.flatMap(errorText(response, settings.closeGrace), (body) => refusal(client.site, response, body)),
            Effect.fail,
          );
        if (!isEventStream(response))
          return yield* Effect.fail(failed(`GET was answered with '${mediaType(response) ?? ""}' and no event stream`));
        const end = yield* readEvents(response, settings.messageMax, {
          onEvent: (event) => {
            if (event.event === "endpoint") Deferred.doneUnsafe(found, named(event.data));
            else if (event.event === "message") host.deliver(parseMessages(event.data));
          },
        });
        const limit = settings.messageMax;
        if (typeof end === "object") return yield* new MessageTooLarge({ server, size: end.tooLarge, limit });
        const reason = end === "broken" ? "the event stream broke" : "the event stream ended";
        return yield* new ConnectionLost({ server, outcome: "unknown", reason });
      }),
    );

  /** Opens the stream, once; whoever sends waits until it named the place for messages. */
  const connected: Effect.Effect<URL, McpError> = Effect.suspend(() => {
    if (endpoint) return Deferred.await(endpoint);
    const found = (endpoint = Deferred.makeUnsafe<URL, McpError>());
    host.fork(
      Effect.catch(stream(found), (error) =>
        Effect.sync(() => {
          // Before the endpoint is known, the failure is that of the connection attempt.
          if (!Deferred.doneUnsafe(found, Effect.fail(error))) host.broken(error);
        }),
      ),
    );
    return Deferred.await(found);
  });

  const post = (url: URL, message: JSONRPCMessage) =>
    Effect.gen(function* () {
      const response = yield* scopedRequest(client.request, url, {
        method: "POST",
        headers: headers({ "content-type": "application/json", accept: "application/json, text/event-stream" }),
        body: JSON.stringify(message),
      });
      const sink = { site: client.site, settings, deliver: host.deliver };
      yield* isRequest(message) && !response.ok ? readRefusal(response, message, sink) : readAcceptance(response, sink);
    });

  return {
    send: (message, flight) =>
      Effect.gen(function* () {
        const url = yield* connected;
        flight.outcome = "unknown";
        yield* Effect.scoped(post(url, message));
        if (isRequest(message)) yield* Deferred.await(flight.answered);
      }),
    settled: Effect.void,
    end: Effect.void,
    sessionId: () => undefined,
    setProtocolVersion: (value) => {
      version = value;
    },
  };
};
