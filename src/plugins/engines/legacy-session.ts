/**
 * One live session of the legacy eras. The SDK's `Protocol` serves what the server
 * asks; requests of the client go through `legacy-calls.ts`. A channel between the
 * transport and `Protocol` sorts the messages.
 */
import { Protocol } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { isJSONRPCRequest, type Notification, type Request, type Result } from "@modelcontextprotocol/sdk/types.js";
import { isRecord } from "../../core/artifact/json.ts";
import type { EngineConnectOptions, McpTransport } from "../../core/contracts.ts";
import { ConnectionLost } from "../../core/errors.ts";
import { type Calls, makeCalls } from "./legacy-calls.ts";
import { capabilitiesOf, serveHost } from "./legacy-host.ts";

export { LATEST_PROTOCOL_VERSION, SUPPORTED_PROTOCOL_VERSIONS } from "@modelcontextprotocol/sdk/types.js";
export { capabilitiesOf };

/** Serves the server's requests. It sends none itself, so it has no capability to assert. */
class HostSide extends Protocol<Request, Notification, Result> {
  protected assertCapabilityForMethod(): void {}
  protected assertNotificationCapability(): void {}
  protected assertRequestHandlerCapability(): void {}
  protected assertTaskCapability(): void {}
  protected assertTaskHandlerCapability(): void {}
}

export interface LegacySession extends Pick<Calls, "request" | "notify"> {
  /** Starts the transport; settles when messages can be sent. */
  readonly start: () => Promise<void>;
  /** Whether something came in that is no MCP message. */
  readonly heardGarbage: () => boolean;
  readonly isOpen: () => boolean;
  /** From here on the listener hears of the end. */
  readonly established: () => void;
  /** Ends the session: calls in flight fail, handlers are aborted, messages are ignored. */
  readonly end: (reason: string) => void;
}

export const makeSession = (options: EngineConnectOptions): LegacySession => {
  const { endpoint, name: server, transport, listener } = options;
  let garbage = false;
  let open = true;
  let established = false;
  let lastError: Error | undefined;
  const diagnose = (message: string): void => listener.onDiagnostic(message);
  const calls = makeCalls({ server, transportType: endpoint.transportType, transport, diagnose });

  const end = (reason: string, closedByHost: boolean): void => {
    if (!open) return;
    open = false;
    const cause = lastError;
    const facts = transport.end?.() ?? {};
    const lost = (outcome: "not-sent" | "unknown") => new ConnectionLost({ server, outcome, reason, ...facts }, cause);
    calls.end(lost);
    channel.onclose?.();
    if (established) listener.onClose(closedByHost ? undefined : lost("unknown"));
  };

  const onClose = (): void => {
    const { exitCode, signal } = transport.end?.() ?? {};
    const process = exitCode !== undefined || signal !== undefined;
    end(process ? "its process ended" : (lastError?.message ?? "the server closed the connection"), false);
  };

  const noise = (message: string): void => {
    garbage = true;
    diagnose(message);
  };

  const onNotification = (method: string, given: unknown): void => {
    const params = isRecord(given) ? given : {};
    if (given !== undefined && params !== given) diagnose(`${method} has params that are no object`);
    if (method === "notifications/progress") calls.onProgress(params);
    else if (method === "notifications/cancelled") {
      // `Protocol` overlooks the id 0, the first one many servers use: it gets the id as text.
      const requestId = JSON.stringify(params["requestId"] ?? null);
      channel.onmessage?.({ jsonrpc: "2.0", method, params: { ...params, requestId } });
    } else listener.onNotification(method, params as Record<string, unknown>);
  };

  const onRequest = (id: unknown, method: string, params: unknown): void => {
    if (typeof id !== "string" && typeof id !== "number")
      return noise(`ignored a ${method} request with a malformed id`);
    const request = { jsonrpc: "2.0" as const, id: JSON.stringify(id), method, ...(params != null && { params }) };
    if (isJSONRPCRequest(request)) return channel.onmessage?.(request);
    noise(`refused a malformed ${method} request`);
    const error = { code: -32600, message: "Invalid request" };
    transport.send({ jsonrpc: "2.0", id, error }).catch((cause) => diagnose(`an answer could not be sent: ${cause}`));
  };

  const onMessage = (message: unknown): void => {
    if (!open) return;
    lastError = undefined;
    if (!isRecord(message)) return noise("ignored a message that is no object");
    const { id, method } = message;
    try {
      if (typeof method === "string") {
        if (id === undefined || id === null) onNotification(method, message["params"]);
        else onRequest(id, method, message["params"]);
      } else if ("result" in message || "error" in message || id !== undefined) calls.onAnswer(message);
      else noise("ignored a message that is no request, notification or answer");
    } catch (cause) {
      diagnose(`a message could not be handled: ${String(cause)}`);
    }
  };

  /** The transport as `Protocol` sees it: requests and cancellations come in, answers go out. */
  const channel: Transport = {
    start: () => {
      Object.assign(transport, {
        // Batches exist in revision 2025-03-26.
        onmessage: (message: unknown) => (Array.isArray(message) ? message.forEach(onMessage) : onMessage(message)),
        onclose: onClose,
        onerror: (error: Error) => {
          lastError = error;
          noise(error.message);
        },
      } satisfies Partial<McpTransport>);
      return transport.start();
    },
    send: (message) => {
      if (!open) return Promise.resolve();
      const id = "id" in message ? { id: JSON.parse(message.id as string) } : {};
      return transport.send({ ...message, ...id });
    },
    close: () => Promise.resolve(),
  };

  const host = Object.assign(new HostSide(), {
    onerror: (error: Error) => diagnose(error.message),
    fallbackRequestHandler: ({ method, params }, { signal }) => {
      const done = calls.hostWorks();
      return serveHost(options.handlers, method, params, { endpoint, name: server, signal }).finally(done);
    },
  } satisfies Partial<HostSide>);

  return {
    request: calls.request,
    notify: calls.notify,
    start: () => host.connect(channel),
    heardGarbage: () => garbage,
    isOpen: () => open,
    established: () => {
      established = true;
    },
    end: (reason) => end(reason, true),
  };
};
