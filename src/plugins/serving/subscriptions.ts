/**
 * Who wants to hear of which resource: one subscription at the server for all clients that
 * have one. When the server's connection is lost, the subscription is made again on the
 * next one, and the clients are told that the resource may have changed meanwhile.
 */
import type { McpEvent } from "../../core/events.ts";
import type { PromiseClient } from "../../core/promise.ts";
import { later } from "./background-timer.ts";
import type { ServedFeatures } from "./served-features.ts";
import type { ServedRuntime } from "./served-runtime.ts";
import type { Wire } from "./wire.ts";

/** Tells a client that a resource changed. */
export type Updated = (params: Wire) => void;

interface Subscription {
  readonly listeners: Set<Updated>;
  /** Borrowed as long as somebody listens, so that the server is not put to sleep. */
  client: Promise<PromiseClient>;
  /** Stops hearing the connection, which others may go on using. */
  deafen: () => void;
  endpointId: string | undefined;
  /** Ends the wait before the next attempt. */
  retry: (() => void) | undefined;
}

/** First and longest wait before a lost subscription is tried again, ms. */
const firstDelay = 250;
const longestDelay = 30_000;

export interface Subscriptions {
  readonly subscribe: (uri: string, listener: Updated) => Promise<Wire>;
  readonly unsubscribe: (uri: string, listener: Updated) => Promise<Wire>;
  /** The client is gone. */
  readonly leave: (listener: Updated) => void;
  readonly onEvent: (event: McpEvent) => void;
  readonly close: () => void;
}

export const makeSubscriptions = (
  runtime: ServedRuntime,
  { ownerOf }: Pick<ServedFeatures, "ownerOf">,
): Subscriptions => {
  const open = new Map<string, Subscription>();
  let closed = false;

  const isWanted = (uri: string, subscription: Subscription): boolean => !closed && open.get(uri) === subscription;

  const begin = async (uri: string, subscription: Subscription): Promise<PromiseClient> => {
    const { endpoint } = await ownerOf(uri);
    subscription.endpointId = endpoint.endpointId;
    const client = await runtime.client(endpoint);
    subscription.deafen = client.onNotification((method, params) => {
      if (method !== "notifications/resources/updated" || params["uri"] !== uri) return;
      // What the server said about its own connection with us is not for clients.
      const { _meta, ...told } = params;
      for (const listener of subscription.listeners) listener(told);
    });
    await client.subscribeResource(uri).catch(async (cause: unknown) => {
      subscription.deafen();
      await client.close();
      throw cause;
    });
    return client;
  };

  const pause = (subscription: Subscription, ms: number): Promise<void> =>
    new Promise<void>((resolve) => {
      const timer = later(ms, resolve);
      subscription.retry = () => {
        clearTimeout(timer);
        resolve();
      };
    }).then(() => void (subscription.retry = undefined));

  const renew = async (uri: string, subscription: Subscription): Promise<PromiseClient> => {
    for (let delay = firstDelay; ; delay = Math.min(2 * delay, longestDelay)) {
      const client = await begin(uri, subscription).catch(() => undefined);
      if (client) return client;
      await pause(subscription, delay);
      if (!isWanted(uri, subscription)) throw new Error("Nobody listens any more");
    }
  };

  const onLost = async (uri: string, subscription: Subscription): Promise<void> => {
    const { client } = subscription;
    const lost = await client;
    if (lost.isConnected || subscription.client !== client || !isWanted(uri, subscription)) return;
    subscription.client = renew(uri, subscription);
    await lost.close();
    await subscription.client;
    for (const listener of subscription.listeners) listener({ uri });
  };

  const unsubscribe: Subscriptions["unsubscribe"] = async (uri, listener) => {
    const subscription = open.get(uri);
    if (!subscription?.listeners.delete(listener) || subscription.listeners.size > 0) return {};
    open.delete(uri);
    subscription.retry?.();
    const client = await subscription.client;
    subscription.deafen();
    await client.unsubscribeResource(uri).finally(() => client.close());
    return {};
  };

  return {
    unsubscribe,
    subscribe: async (uri, listener) => {
      const known = open.get(uri);
      const subscription: Subscription = known ?? {
        listeners: new Set(),
        client: new Promise(() => {}),
        deafen: () => {},
        endpointId: undefined,
        retry: undefined,
      };
      if (!known) {
        open.set(uri, subscription);
        subscription.client = begin(uri, subscription);
      }
      subscription.listeners.add(listener);
      try {
        await subscription.client;
      } catch (cause) {
        if (open.get(uri) === subscription) open.delete(uri);
        throw cause;
      }
      return {};
    },
    leave: (listener) => {
      for (const uri of open.keys()) void unsubscribe(uri, listener).catch(() => {});
    },
    onEvent: (event) => {
      if (event.type !== "disconnected" && event.type !== "connect.ready" && event.type !== "attached") return;
      for (const [uri, subscription] of open) {
        if (event.type === "disconnected" && subscription.endpointId === event.endpointId)
          void onLost(uri, subscription).catch(() => {});
        // Wherever it comes back, there is no reason to wait any longer.
        else if (event.type !== "disconnected") subscription.retry?.();
      }
    },
    close: () => {
      closed = true;
      for (const { retry } of open.values()) retry?.();
    },
  };
};
