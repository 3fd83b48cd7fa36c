/**
 * Long-lived `subscriptions/listen` requests: one for the lists that the server says may
 * change, one for each resource the host subscribed to. They are opened again when they
 * break. Source: MCP 2026-07-28, basic/patterns/subscriptions.
 */
import { isRecord } from "../../core/artifact/json.ts";
import type { ServerCapabilities, SessionListener, SessionRequestOptions } from "../../core/contracts.ts";
import { ConnectionLost, HttpFailed, type McpError, ProtocolError } from "../../core/errors.ts";
import { aborted, type Calls, type Json } from "./legacy-calls.ts";
import { pause } from "./modern-input.ts";

export const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";

/** First and longest wait before a stream is opened again, ms. A stream that lasted longer than that begins anew. */
const FIRST_DELAY = 1000;
const DELAY_MAX = 30_000;
/** Attempts in a row before a stream is given up: about three minutes. */
const ATTEMPTS = 10;
const METHOD_NOT_FOUND = -32_601;

const LISTS = ["tools", "prompts", "resources"] as const;

interface Filter {
  readonly toolsListChanged?: true;
  readonly promptsListChanged?: true;
  readonly resourcesListChanged?: true;
  readonly resourceSubscriptions?: ReadonlyArray<string>;
}

/** A subscription that is kept open. */
interface Kept {
  /** Settles with what the server agreed to, or rejects when it never will. */
  readonly opened: Promise<Json>;
  readonly close: () => void;
}

export interface Subscriptions {
  /** Follows the lists whose changes the server promises to tell. */
  readonly follow: (capabilities: ServerCapabilities) => void;
  readonly subscribe: (uri: string, options: SessionRequestOptions) => Promise<Json>;
  readonly unsubscribe: (uri: string) => Json;
  readonly onAcknowledged: (params: Json) => void;
  /** The server ends a subscription (stdio). */
  readonly onCancelled: (id: unknown) => void;
  readonly isLive: (id: unknown) => boolean;
  readonly end: () => void;
}

export interface SubscriptionsContext {
  readonly server: string;
  readonly calls: Pick<Calls, "request">;
  readonly listener: SessionListener;
}

/** Whether another attempt may succeed. */
const mayPass = (error: unknown): boolean =>
  error instanceof ConnectionLost ||
  (error instanceof HttpFailed && (error.status >= 500 || error.status === 408 || error.status === 429));

export const makeSubscriptions = ({ server, calls, listener }: SubscriptionsContext): Subscriptions => {
  const live = new Map<string, { readonly acknowledged: (honoured: Json) => void; readonly end: () => void }>();
  const resources = new Map<string, Kept>();
  const over = new AbortController();

  /** Changes may have passed unseen while the stream was down. */
  const assumeChanged = (filter: Filter): void => {
    for (const list of LISTS)
      if (filter[`${list}ListChanged`]) listener.onNotification(`notifications/${list}/list_changed`, {});
    for (const uri of filter.resourceSubscriptions ?? [])
      listener.onNotification("notifications/resources/updated", { uri });
  };

  /** One stream, until it ends; rejects with the reason where there is one. */
  const listen = async (filter: Filter, signal: AbortSignal, acknowledged: (honoured: Json) => void) => {
    const ended = new AbortController();
    const end = (): void => ended.abort(new ConnectionLost({ server, outcome: "unknown", reason: "it was ended" }));
    let own = "";
    const onId = (id: number): void => {
      own = String(id);
      live.set(own, { acknowledged, end });
    };
    try {
      const within = AbortSignal.any([signal, ended.signal]);
      await calls.request("subscriptions/listen", { notifications: filter }, { signal: within, onId });
    } finally {
      live.delete(own);
    }
  };

  const keep = (filter: Filter): Kept => {
    const closed = new AbortController();
    const signal = AbortSignal.any([closed.signal, over.signal]);
    let resolve!: (honoured: Json) => void;
    let reject!: (failure: unknown) => void;
    const opened = new Promise<Json>((yes, no) => {
      resolve = yes;
      reject = no;
    });
    opened.catch(() => {});
    const run = async (): Promise<void> => {
      let before = false;
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const began = performance.now();
        const failure = await listen(filter, signal, (honoured) => {
          resolve(honoured);
          if (before) assumeChanged(filter);
          before = true;
        }).catch((error: unknown) => error as McpError);
        if (signal.aborted) return reject(failure);
        if (failure !== undefined && !mayPass(failure)) {
          const unknown = failure instanceof ProtocolError && failure.code === METHOD_NOT_FOUND;
          listener.onDiagnostic(`no news of changes: ${unknown ? "it knows no subscriptions" : failure.message}`);
          return reject(failure);
        }
        if (performance.now() - began > DELAY_MAX) attempt = 0;
        const delay = Math.min(FIRST_DELAY * 2 ** attempt, DELAY_MAX);
        await pause(delay * (1 + Math.random() / 4), signal);
      }
      const reason = `the stream of changes ended ${ATTEMPTS} times`;
      listener.onDiagnostic(`no news of changes: ${reason}`);
      reject(new ConnectionLost({ server, outcome: "unknown", reason }));
    };
    void run();
    return { opened, close: () => closed.abort() };
  };

  const drop = (uri: string): void => {
    resources.get(uri)?.close();
    resources.delete(uri);
  };

  return {
    follow: (capabilities) => {
      const changing = LISTS.filter((list) => (capabilities[list] as Json | undefined)?.["listChanged"] === true);
      if (changing.length > 0) keep(Object.fromEntries(changing.map((list) => [`${list}ListChanged`, true])) as Filter);
    },

    subscribe: async (uri, { signal }) => {
      const kept = resources.get(uri) ?? keep({ resourceSubscriptions: [uri] });
      resources.set(uri, kept);
      const cancelled = new Promise<never>((_resolve, reject) => {
        const onAbort = (): void => reject(aborted(signal.reason));
        if (signal.aborted) onAbort();
        signal.addEventListener("abort", onAbort, { once: true });
      });
      try {
        const honoured = await Promise.race([kept.opened, cancelled]);
        const uris = honoured["resourceSubscriptions"];
        if (Array.isArray(uris) && uris.includes(uri)) return {};
        const reason = `it tells no updates of ${uri}`;
        throw new ProtocolError({ server, code: METHOD_NOT_FOUND, reason });
      } catch (error) {
        drop(uri);
        throw error;
      }
    },

    unsubscribe: (uri) => {
      drop(uri);
      return {};
    },

    onAcknowledged: ({ _meta, notifications }) => {
      const id = isRecord(_meta) ? _meta[SUBSCRIPTION_ID] : undefined;
      live.get(String(id))?.acknowledged(isRecord(notifications) ? notifications : {});
    },

    onCancelled: (id) => live.get(String(id))?.end(),
    isLive: (id) => live.has(String(id)),
    end: () => over.abort(),
  };
};
