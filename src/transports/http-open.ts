/** Opens a channel to a remote server: Streamable HTTP, legacy SSE, or whichever the server speaks. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { McpTransport, TransportContext } from "../core/contracts.ts";
import type { HttpEndpoint } from "../core/endpoint.ts";
import { HttpFailed, InsufficientScope, InvalidEndpoint, type McpError, Unauthorized } from "../core/errors.ts";
import { type HttpClient, makeHttpClient } from "./http-fetch.ts";
import { isInitialize } from "./http-message.ts";
import { type ChannelHost, type HttpChannel, makeTransport } from "./http-transport.ts";
import { makeModernHttp } from "./modern-http.ts";
import { makeSse } from "./sse.ts";
import { makeStreamableHttp } from "./streamable-http.ts";

/**
 * MCP, Transports, Backwards Compatibility: an `initialize` answered 400, 404 or 405 means
 * that the server may speak HTTP+SSE. A 400 that holds a JSON-RPC error does not come here:
 * it is an answer, for example the versions the server speaks.
 */
const makeAuto = (
  endpoint: HttpEndpoint,
  client: HttpClient,
  context: TransportContext,
  host: ChannelHost,
): HttpChannel => {
  let channel = makeStreamableHttp(client, context, host);
  let decided = false;

  const fallBack = (
    first: HttpFailed,
    retry: (sse: HttpChannel) => Effect.Effect<void, McpError>,
  ): Effect.Effect<void, McpError> => {
    const report = (also: string): Effect.Effect<never, McpError> =>
      Effect.fail(new HttpFailed({ server: first.server, status: first.status, reason: `${first.reason}; ${also}` }));
    if (endpoint.credential) return report("legacy SSE was not tried, since it takes no credential");
    const sse = makeSse(client, context, host);
    channel = sse;
    return Effect.catch(retry(sse), (second): Effect.Effect<never, McpError> =>
      second instanceof Unauthorized || second instanceof InsufficientScope
        ? Effect.fail(second)
        : report(`legacy SSE was tried as well: ${second.message}`),
    );
  };

  return {
    send: (message, flight) => {
      const sent = channel.send(message, flight);
      if (decided || !isInitialize(message)) return sent;
      return Effect.catch(sent, (error) => {
        const other = error instanceof HttpFailed && [400, 404, 405].includes(error.status);
        return other ? fallBack(error, (sse) => sse.send(message, flight)) : Effect.fail(error);
      }).pipe(Effect.tap(() => Effect.sync(() => (decided = true))));
    },
    settled: Effect.suspend(() => channel.settled),
    end: Effect.suspend(() => channel.end),
    sessionId: () => channel.sessionId(),
    setProtocolVersion: (version) => channel.setProtocolVersion(version),
  };
};

export const openHttp = (
  endpoint: HttpEndpoint,
  context: TransportContext,
): Effect.Effect<McpTransport, McpError, Scope.Scope> =>
  Effect.gen(function* () {
    const client = yield* Effect.try({
      try: () => makeHttpClient(endpoint, context),
      catch: () =>
        new InvalidEndpoint({
          field: "headers",
          reason: "holds a character that HTTP cannot carry",
          fix: "Use characters up to U+00FF, or encode the value.",
        }),
    });
    return yield* makeTransport(context, (host) => {
      if (context.era === "modern") return makeModernHttp(client, context, host);
      if (endpoint.flavor === "sse") return makeSse(client, context, host);
      if (endpoint.flavor === "streamable-http") return makeStreamableHttp(client, context, host);
      return makeAuto(endpoint, client, context, host);
    });
  });
