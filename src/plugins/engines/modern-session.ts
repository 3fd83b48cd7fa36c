/**
 * One connection to a modern server. Requests carry an envelope (version, client,
 * capabilities, log level) in `_meta`; the server never asks by itself, it answers
 * `input_required`. Verbs that the revision dropped are served on what replaced them.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { isRecord, shownText } from "../../core/artifact/json.ts";
import type { EngineConnectOptions, McpTransport, ServerCapabilities } from "../../core/contracts.ts";
import { ConnectionLost, HttpFailed, type McpError, ProtocolError } from "../../core/errors.ts";
import type { OpeningSession } from "./handshake.ts";
import { capabilitiesOf } from "./host-requests.ts";
import { type CallOptions, type Calls, type Json, makeCalls } from "./legacy-calls.ts";
import { fulfil, isInputRequired } from "./modern-input.ts";
import { makeSubscriptions, SUBSCRIPTION_ID } from "./modern-subscriptions.ts";

export interface ModernSession extends OpeningSession, Pick<Calls, "request" | "notify"> {
  /** Starts the transport; settles when messages can be sent. */
  readonly start: () => Promise<void>;
  /** The revision that requests name from here on. */
  readonly speak: (version: string) => void;
  readonly isOpen: () => boolean;
  /** From here on the listener hears of the end, and of the changes that these capabilities promise. */
  readonly established: (capabilities: ServerCapabilities) => void;
}

const PREFIX = "io.modelcontextprotocol/";
const UNSUPPORTED_VERSION = -32_022;
const INVALID_RESULT = -32_603;

/**
 * Ids begin here, so that the late answer of one era's opening is not taken for the
 * other's, when both were tried on one connection.
 */
const FIRST_ID = 1_000_001;

/** Whether a refusal says that the server does not speak this revision (any more). The request did not run. */
const leftTheEra = (error: unknown): boolean =>
  (error instanceof ProtocolError &&
    (error.code === UNSUPPORTED_VERSION ||
      (error.code === -32_000 && /session|not initialized/i.test(error.reason)))) ||
  (error instanceof HttpFailed && (error.status === 404 || error.status === 405));

/** The result without its discriminator. No `resultType` means complete; an unknown one cannot be understood. */
const completed = (server: string, method: string, result: unknown): unknown => {
  if (!isRecord(result) || !("resultType" in result)) return result;
  const { resultType, ...rest } = result;
  if (resultType === "complete" || resultType === undefined || resultType === null) return rest;
  const reason = `its result of ${method} is of the unknown type '${shownText(resultType).slice(0, 40)}'`;
  throw new ProtocolError({ server, code: INVALID_RESULT, reason });
};

export const makeModernSession = (options: EngineConnectOptions): ModernSession => {
  const { endpoint, name: server, transport, listener, handlers, clientInfo } = options;
  const { roots, ...others } = capabilitiesOf(handlers);
  const clientCapabilities = { ...others, ...(roots && { roots: {} }) };
  const diagnose = (message: string): void => listener.onDiagnostic(message);
  let version = "";
  let logLevel: unknown;
  let garbage = false;
  let open = true;
  let established = false;
  let lastError: Error | undefined;

  /** The host may give a log level of its own for one request; who we are is not its to say. */
  const enveloped = (message: JSONRPCMessage): JSONRPCMessage => {
    const { params } = message as { readonly params?: Json };
    const meta = isRecord(params?.["_meta"]) ? params["_meta"] : undefined;
    const _meta = {
      ...(logLevel !== undefined && { [`${PREFIX}logLevel`]: logLevel }),
      ...meta,
      [`${PREFIX}protocolVersion`]: version,
      [`${PREFIX}clientInfo`]: clientInfo,
      [`${PREFIX}clientCapabilities`]: clientCapabilities,
    };
    return { ...message, params: { ...params, _meta } } as JSONRPCMessage;
  };
  const calls = makeCalls({
    server,
    transportType: endpoint.transportType,
    transport: { send: (message, given) => transport.send(enveloped(message), given) },
    diagnose,
    firstId: FIRST_ID,
  });
  const subscriptions = makeSubscriptions({ server, calls, listener });

  const end = (reason: string, closedByHost: boolean, cause: unknown = lastError): void => {
    if (!open) return;
    open = false;
    const facts = transport.end?.() ?? {};
    const lost = (outcome: "not-sent" | "unknown") => new ConnectionLost({ server, outcome, reason, ...facts }, cause);
    subscriptions.end();
    calls.end(lost);
    if (established) listener.onClose(closedByHost ? undefined : lost("unknown"));
  };

  const ask = async (
    method: string,
    params: Record<string, unknown> | undefined,
    given: CallOptions,
  ): Promise<unknown> => {
    try {
      const first = await calls.request(method, params, given);
      if (!isInputRequired(first)) return completed(server, method, first);
      const context = { endpoint, name: server };
      return completed(server, method, await fulfil({ handlers, context, calls, method, params, given, first }));
    } catch (error) {
      if (!established || !open || !leftTheEra(error)) throw error;
      const reason = `the server does not speak revision ${version} any more`;
      // A turn later, so that this caller hears first.
      queueMicrotask(() => end(reason, false, error));
      throw new ConnectionLost({ server, outcome: "not-sent", reason }, error) satisfies McpError;
    }
  };

  const request: ModernSession["request"] = async (method, params, given) => {
    if (method === "ping") {
      await ask("server/discover", undefined, given);
      return {};
    }
    if (method === "logging/setLevel") {
      logLevel = params?.["level"];
      return {};
    }
    if (method === "resources/subscribe") return subscriptions.subscribe(String(params?.["uri"]), given);
    if (method === "resources/unsubscribe") return subscriptions.unsubscribe(String(params?.["uri"]));
    return ask(method, params, given);
  };

  const noise = (message: string): void => {
    garbage = true;
    diagnose(message);
  };

  const onNotification = (method: string, params: Json): void => {
    if (method === "notifications/progress") calls.onProgress(params);
    else if (method === "notifications/subscriptions/acknowledged") subscriptions.onAcknowledged(params);
    else if (method === "notifications/cancelled") subscriptions.onCancelled(params["requestId"]);
    else {
      const meta = params["_meta"];
      if (isRecord(meta) && SUBSCRIPTION_ID in meta && !subscriptions.isLive(meta[SUBSCRIPTION_ID])) return;
      listener.onNotification(method, params as Record<string, unknown>);
    }
  };

  const onMessage = (message: unknown): void => {
    if (!open) return;
    lastError = undefined;
    if (!isRecord(message)) return noise("ignored a message that is no object");
    const { id, method, params } = message;
    try {
      if (typeof method === "string") {
        if (id === undefined || id === null) onNotification(method, isRecord(params) ? params : {});
        else diagnose(`ignored a ${method} request; in revision ${version} servers send none`);
      } else if ("result" in message || "error" in message || id !== undefined) calls.onAnswer(message);
      else noise("ignored a message that is no notification or answer");
    } catch (cause) {
      diagnose(`a message could not be handled: ${String(cause)}`);
    }
  };

  return {
    request,
    // Servers ask for roots anew with each request, so there is nothing to tell them.
    notify: (method, params) =>
      method === "notifications/roots/list_changed" ? Promise.resolve() : calls.notify(method, params),
    start: () => {
      Object.assign(transport, {
        onmessage: onMessage,
        onclose: () => {
          const { exitCode, signal } = transport.end?.() ?? {};
          const process = exitCode !== undefined || signal !== undefined;
          end(process ? "its process ended" : (lastError?.message ?? "the server closed the connection"), false);
        },
        onerror: (error: Error) => {
          lastError = error;
          noise(error.message);
        },
      } satisfies Partial<McpTransport>);
      return transport.start();
    },
    speak: (next) => {
      version = next;
    },
    heardGarbage: () => garbage,
    isOpen: () => open,
    established: (capabilities) => {
      established = true;
      subscriptions.follow(capabilities);
    },
    end: (reason) => end(reason, true),
  };
};
