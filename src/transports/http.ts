/** The transport plugin for remote servers; what it opens is loaded with the first of them. */
import * as Effect from "effect/Effect";
import type { TransportPlugin } from "../core/contracts.ts";
import type { HttpEndpoint } from "../core/endpoint.ts";

/**
 * Reaches `HttpEndpoint`s. Opening does no I/O: the first message does. Calls on all
 * remote servers share one gate, `mcp:http`.
 */
export const httpTransport: TransportPlugin<HttpEndpoint> = {
  kind: "http",
  open: (endpoint, context) =>
    Effect.flatMap(
      Effect.promise(() => import("./http-open.ts")),
      ({ openHttp }) => openHttp(endpoint, context),
    ),
  // HTTP+SSE existed before the modern era and ended with it.
  eras: ({ flavor }) => (flavor === "sse" ? ["legacy"] : ["modern", "legacy"]),
  eraBound: true,
  gates: (_endpoint, settings) => [{ name: "mcp:http", capacity: settings.httpPoolMax }],
};
