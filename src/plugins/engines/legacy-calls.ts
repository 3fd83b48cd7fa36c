/**
 * Requests in flight from client to server: ids, answers, progress, cancellation, loss.
 *
 * The SDK's `Protocol.request` is not used for these. It parses each answer three
 * times, arms a timer for each request, hands progress over a microtask after the
 * answer that ends it, and keeps listening to a signal whose request is done.
 */
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { isRecord } from "../../core/artifact/json.ts";
import type { EngineSession, McpTransport, Progress, SessionRequestOptions } from "../../core/contracts.ts";
import { Cancelled, type ConnectionLost, HttpFailed, isMcpError, type McpError } from "../../core/errors.ts";
import { PluginFailed, ProtocolError } from "../../core/errors.ts";

export type Json = { readonly [key: string]: unknown };

/** What the calls need of their session. */
export interface CallsContext {
  readonly server: string;
  readonly transportType: string;
  readonly transport: Pick<McpTransport, "send">;
  readonly diagnose: (message: string) => void;
  /** Where ids begin. Default 1. Engines that share a connection, one after the other, keep theirs apart. */
  readonly firstId?: number;
}

export interface CallOptions extends SessionRequestOptions {
  /** Told the request's id before it is sent. */
  readonly onId?: (id: number) => void;
}

export interface Calls extends Pick<EngineSession, "notify"> {
  readonly request: (
    method: string,
    params: Record<string, unknown> | undefined,
    options: CallOptions,
  ) => Promise<unknown>;
  readonly onAnswer: (message: Json) => void;
  /** The host works for the server, for which of the calls is not said; answers what to call when it is done. */
  readonly hostWorks: () => () => void;
  readonly onProgress: (params: Json) => void;
  /** Fails what is in flight and everything later. */
  readonly end: (lost: (outcome: "not-sent" | "unknown") => ConnectionLost) => void;
}

interface Call {
  readonly method: string;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: McpError) => void;
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly stopListening: (() => void) | undefined;
  readonly options: CallOptions;
}

/** The error of a cancelled request: the reason itself where it is one of ours. */
export const aborted = (reason: unknown): McpError =>
  isMcpError(reason)
    ? reason
    : new Cancelled({ reason: reason instanceof Error ? reason.message : String(reason ?? "no reason was given") });

/** Listens for cancellation in the cheapest way the caller offers; answers how to stop, where that is needed. */
const listen = (options: SessionRequestOptions, listener: (reason: unknown) => void): (() => void) | undefined => {
  if (options.onCancel) {
    options.onCancel(listener);
    return undefined;
  }
  const { signal } = options;
  const onAbort = (): void => listener(signal.reason);
  signal.addEventListener("abort", onAbort);
  return () => signal.removeEventListener("abort", onAbort);
};

/** Our number again from an id or progress token; some servers send numbers back as text. */
const ourId = (id: unknown): number | undefined =>
  typeof id === "number" ? id : typeof id === "string" && /^\d{1,15}$/.test(id) ? Number(id) : undefined;

/** A JSON-RPC error as ours. A transport may put one of our errors in `data`; that one it is. */
const answeredError = (server: string, error: unknown): McpError => {
  const { code, message, data } = isRecord(error) ? error : { code: undefined, message: error, data: undefined };
  if (isMcpError(data)) return data;
  const reason = typeof message === "string" && message !== "" ? message : "no reason given";
  return new ProtocolError({
    server,
    code: typeof code === "number" ? code : -32603,
    reason,
    ...(data === undefined ? {} : { data }),
  });
};

export const makeCalls = ({ server, transportType, transport, diagnose, firstId = 1 }: CallsContext): Calls => {
  const pending = new Map<number, Call>();
  let lastId = firstId - 1;
  let lost: ((outcome: "not-sent" | "unknown") => ConnectionLost) | undefined;

  const take = (id: number | undefined): Call | undefined => {
    const call = id === undefined ? undefined : pending.get(id);
    if (call === undefined) return undefined;
    pending.delete(id!);
    call.stopListening?.();
    return call;
  };

  const sendFailure = (cause: unknown): McpError => {
    if (isMcpError(cause)) return cause;
    if (lost) return lost("unknown");
    const reason = cause instanceof Error ? cause.message : String(cause);
    // The SDK's HTTP transports reject with an error that carries the status.
    const status = isRecord(cause) ? cause["code"] : undefined;
    if (typeof status === "number" && status >= 400 && status < 600)
      return new HttpFailed({ server, status, reason }, cause);
    return new PluginFailed({ plugin: `transport ${transportType}`, reason }, cause);
  };

  const post = (message: unknown, failed: (cause: unknown) => void, sent?: () => void): void => {
    try {
      transport.send(message as JSONRPCMessage).then(sent, failed);
    } catch (cause) {
      failed(cause);
    }
  };

  const cancel = (id: number, why: unknown): void => {
    const call = take(id);
    // The specification forbids cancelling `initialize`.
    if (call && call.method !== "initialize" && !lost) {
      const timedOut = isMcpError(why) && why._tag === "RequestTimeout";
      const reason = timedOut ? "the request timed out" : "the caller gave up";
      const params = { requestId: id, reason };
      post({ jsonrpc: "2.0", method: "notifications/cancelled", params }, (cause) =>
        diagnose(`the cancellation of request ${id} could not be sent: ${sendFailure(cause).message}`),
      );
    }
    call?.reject(aborted(why));
  };

  return {
    request: (method, params, options) =>
      new Promise((resolve, reject) => {
        if (!options.onCancel && options.signal.aborted) return reject(aborted(options.signal.reason));
        const { onProgress } = options;
        if (lost) return reject(lost("not-sent"));
        const id = ++lastId;
        options.onId?.(id);
        const stopListening = listen(options, (why) => cancel(id, why));
        pending.set(id, { method, resolve, reject, onProgress, stopListening, options });
        const meta = params?.["_meta"];
        const sent = onProgress ? { ...params, _meta: { ...(isRecord(meta) && meta), progressToken: id } } : params;
        post({ jsonrpc: "2.0", id, method, ...(sent && { params: sent }) }, (cause) =>
          take(id)?.reject(sendFailure(cause)),
        );
      }),

    notify: (method, params) =>
      new Promise((resolve, reject) => {
        if (lost) return reject(lost("not-sent"));
        const message = { jsonrpc: "2.0", method, ...(params && { params }) };
        post(message, (cause) => reject(sendFailure(cause)), resolve);
      }),

    onAnswer: (message) => {
      let id = ourId(message["id"]);
      const error = message["error"] ?? undefined;
      // A server that could not read `initialize` answers it with the id null.
      if (message["id"] == null && error !== undefined && pending.size === 1)
        for (const [only, call] of pending) if (call.method === "initialize") id = only;
      const call = take(id);
      if (call === undefined) {
        const which = id !== undefined && id <= lastId ? "is done" : "was never sent";
        const text = isRecord(error) ? error["message"] : undefined;
        const said = typeof text === "string" ? `: ${text.slice(0, 200)}` : "";
        return diagnose(`ignored an ${error ? "error" : "answer"} for a request that ${which}${said}`);
      }
      if (error !== undefined) call.reject(answeredError(server, error));
      else if ("result" in message) call.resolve(message["result"]);
      else call.reject(answeredError(server, { message: "the answer holds neither result nor error" }));
    },

    hostWorks: () => {
      const ends = Array.from(pending.values(), ({ options }) => options.onHostWork?.());
      return () => ends.forEach((end) => end?.());
    },

    onProgress: (params) => {
      const { progressToken, progress, total, message } = params;
      const id = ourId(progressToken);
      const call = id === undefined ? undefined : pending.get(id);
      if (!call?.onProgress) return diagnose("ignored progress of a request that is done or unknown");
      if (typeof progress !== "number") return diagnose("ignored progress without a number");
      call.onProgress({
        progress,
        ...(typeof total === "number" && { total }),
        ...(typeof message === "string" && { message }),
      });
    },

    end: (reason) => {
      lost = reason;
      // A turn later: the transport may reject some sends first, knowing that they never left.
      setTimeout(() => {
        for (const id of pending.keys()) take(id)?.reject(reason("unknown"));
      });
    },
  };
};
