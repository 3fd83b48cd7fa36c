/**
 * MCP over WebSocket, on the runtime's own `WebSocket`, subprotocol `mcp`. The SDK's
 * client transport checks each message with zod once more, has no typed errors and
 * no size limit; there is too little of it to build on.
 */
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { isRecord } from "../core/artifact/json.ts";
import type { McpTransport, TransportContext, TransportPlugin } from "../core/contracts.ts";
import { type Era, type McpEndpoint, validTimeout } from "../core/endpoint.ts";
import { ConnectFailed, ConnectionLost, InvalidEndpoint, MessageTooLarge } from "../core/errors.ts";
import { normalizeUrl } from "../core/identity.ts";

export interface WebSocketEndpointOptions {
  /** `ws:` or `wss:`. */
  readonly url: string | URL;
  /** Label. Default: host and path of the URL. */
  readonly name?: string | undefined;
  readonly requestTimeout?: Duration.Input | undefined;
  readonly era?: Era | "auto" | undefined;
}

/** A remote server over WebSocket. */
export class WebSocketEndpoint implements McpEndpoint {
  readonly transportType = "websocket" as const;
  readonly endpointId: string;
  readonly name: string;
  readonly requestTimeout: Duration.Input | undefined;
  readonly era: Era | "auto" | undefined;
  /** Not enumerable: its query may hold a secret. */
  declare readonly url: string;

  constructor(options: WebSocketEndpointOptions) {
    const url = String(options.url);
    Object.defineProperty(this, "url", { value: url, enumerable: false });
    this.requestTimeout = options.requestTimeout;
    this.era = options.era;
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    this.name = options.name ?? (parsed ? parsed.host + parsed.pathname.replace(/\/$/, "") : "websocket");
    this.endpointId = this.validate() === undefined ? normalizeUrl(url) : `${this.name}:invalid`;
  }

  validate(): InvalidEndpoint | undefined {
    const parsed = URL.canParse(this.url) ? new URL(this.url) : undefined;
    const fix = "Give an absolute URL such as wss://host/mcp.";
    if (!parsed) return new InvalidEndpoint({ field: "url", reason: "is not a URL", fix });
    if (parsed.protocol !== "ws:" && parsed.protocol !== "wss:")
      return new InvalidEndpoint({ field: "url", reason: `has the scheme '${parsed.protocol}'`, fix });
    return validTimeout(this);
  }
}

const failed = (endpoint: WebSocketEndpoint, server: string, reason: string, cause?: unknown): ConnectFailed =>
  new ConnectFailed({ server, endpointId: endpoint.endpointId, phase: "transport", reason }, cause);

const create = (endpoint: WebSocketEndpoint, name: string): Effect.Effect<WebSocket, ConnectFailed> =>
  Effect.try({
    try: () => {
      const url = new URL(endpoint.url);
      url.hash = "";
      return new WebSocket(url.href, "mcp");
    },
    catch: (cause) => failed(endpoint, name, "the WebSocket could not be created", cause),
  });

const untilOpen = (socket: WebSocket, endpoint: WebSocketEndpoint, name: string): Effect.Effect<void, ConnectFailed> =>
  Effect.callback((resume) => {
    const fail = (reason: string) => resume(Effect.fail(failed(endpoint, name, reason)));
    socket.addEventListener("open", () => resume(Effect.void));
    // The interface tells no HTTP status; some runtimes say more in the event.
    socket.addEventListener("error", (event) => {
      const detail = (event as Partial<ErrorEvent>).message;
      fail(`the WebSocket could not be opened${detail ? `: ${detail}` : ""}`);
    });
    socket.addEventListener("close", ({ code }) => fail(`the WebSocket could not be opened: closed with code ${code}`));
  });

/** Settles at the end of the closing handshake; a server that does not take part in it is left after `grace` ms. */
const closeSocket = (socket: WebSocket, grace: number): Promise<void> =>
  new Promise((resolve) => {
    if (socket.readyState === socket.CLOSED) return resolve();
    const timer = setTimeout(resolve, grace);
    socket.addEventListener("close", () => {
      clearTimeout(timer);
      resolve();
    });
    socket.close(1000);
  });

/** Delivers one text; an oversized answer fails its own request alone. */
const read = (text: string, transport: McpTransport, context: TransportContext): void => {
  const { messageMax: limit } = context.settings;
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return transport.onerror?.(new Error("ignored a WebSocket message that is not JSON"));
  }
  if (text.length <= limit) return transport.onmessage?.(message as JSONRPCMessage);
  const id = isRecord(message) && !("method" in message) ? message["id"] : undefined;
  if (typeof id === "string" || typeof id === "number") {
    const data = new MessageTooLarge({ server: context.name, size: text.length, limit });
    transport.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32603, message: "", data } });
  } else context.diagnose(`ignored a message of ${text.length} characters`);
};

const makeTransport = (socket: WebSocket, context: TransportContext): McpTransport => {
  const lost = (outcome: "not-sent" | "unknown", reason: string, cause?: unknown) =>
    new ConnectionLost({ server: context.name, outcome, reason }, cause);
  const transport: McpTransport = {
    start: async () => {
      socket.addEventListener("message", ({ data }) => {
        if (typeof data === "string") read(data, transport, context);
        else context.diagnose("ignored a binary WebSocket message");
      });
      socket.addEventListener("error", (event) =>
        context.diagnose((event as Partial<ErrorEvent>).message || "WebSocket error"),
      );
      socket.addEventListener("close", ({ code, reason }) => {
        if (code !== 1000) transport.onerror?.(new Error(`the WebSocket closed with code ${code} ${reason}`.trim()));
        transport.onclose?.();
      });
      // It may have closed between its opening and now.
      if (socket.readyState >= socket.CLOSING) transport.onclose?.();
    },
    send: async (message) => {
      if (socket.readyState !== socket.OPEN) throw lost("not-sent", "the WebSocket is closed");
      socket.send(JSON.stringify(message));
    },
    close: () => closeSocket(socket, context.settings.closeGrace),
  };
  return transport;
};

/** Opens `ws:` and `wss:` endpoints. */
export const websocketTransport: TransportPlugin<WebSocketEndpoint> = {
  kind: "websocket",
  gates: (_endpoint, settings) => [{ name: "mcp:http", capacity: settings.httpPoolMax }],
  open: (endpoint, context) =>
    Effect.gen(function* () {
      const socket = yield* Effect.acquireRelease(create(endpoint, context.name), (opened) =>
        Effect.promise(() => closeSocket(opened, context.settings.closeGrace)),
      );
      yield* untilOpen(socket, endpoint, context.name);
      return makeTransport(socket, context);
    }),
};
