/** Who wants to hear of which resource: one subscription at the server for all clients that have one. */
import type { PromiseClient } from "../../core/promise.ts";
import type { ServedFeatures } from "./served-features.ts";
import type { ServedRuntime } from "./served-runtime.ts";
import type { Wire } from "./wire.ts";

/** Tells a client that a resource changed. */
export type Updated = (params: Wire) => void;

interface Subscription {
  readonly listeners: Set<Updated>;
  /** Borrowed as long as somebody listens, so that the server is not put to sleep. */
  readonly client: Promise<PromiseClient>;
}

export interface Subscriptions {
  readonly subscribe: (uri: string, listener: Updated) => Promise<Wire>;
  readonly unsubscribe: (uri: string, listener: Updated) => Promise<Wire>;
  /** The client is gone. */
  readonly leave: (listener: Updated) => void;
}

export const makeSubscriptions = (
  runtime: ServedRuntime,
  { ownerOf }: Pick<ServedFeatures, "ownerOf">,
): Subscriptions => {
  const open = new Map<string, Subscription>();

  const begin = async (uri: string, listeners: ReadonlySet<Updated>): Promise<PromiseClient> => {
    const { endpoint } = await ownerOf(uri);
    const client = await runtime.client(endpoint);
    client.onNotification((method, params) => {
      if (method !== "notifications/resources/updated" || params["uri"] !== uri) return;
      for (const listener of listeners) listener(params);
    });
    await client.subscribeResource(uri).catch(async (cause: unknown) => {
      await client.close();
      throw cause;
    });
    return client;
  };

  const unsubscribe: Subscriptions["unsubscribe"] = async (uri, listener) => {
    const subscription = open.get(uri);
    if (!subscription?.listeners.delete(listener) || subscription.listeners.size > 0) return {};
    open.delete(uri);
    const client = await subscription.client;
    await client.unsubscribeResource(uri).finally(() => client.close());
    return {};
  };

  return {
    unsubscribe,
    subscribe: async (uri, listener) => {
      const known = open.get(uri);
      const listeners = known?.listeners ?? new Set();
      const subscription = known ?? { listeners, client: begin(uri, listeners) };
      open.set(uri, subscription);
      listeners.add(listener);
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
  };
};
