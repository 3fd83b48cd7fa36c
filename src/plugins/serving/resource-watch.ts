/** The resources that the `subscriptions/listen` requests of one line want to hear of. */
import { isRecord } from "../../core/artifact/json.ts";
import type { Subscriptions } from "./subscriptions.ts";
import type { Wire } from "./wire.ts";

export interface ResourceWatch {
  /**
   * Subscribes at the servers. Answers the message as it may be acknowledged, without the
   * resources that cannot be subscribed to, and how to end it.
   */
  readonly open: (message: Wire) => Promise<{ readonly message: Wire; readonly close: () => void }>;
  readonly close: () => void;
}

/** `publish` tells the line of a changed resource, once for all who listen on it. */
export const makeResourceWatch = (subscriptions: Subscriptions, publish: (params: Wire) => void): ResourceWatch => {
  const listeners = new Map<string, number>();
  const updated = (params: Wire): void => publish(params);

  const release = (uri: string): void => {
    const left = (listeners.get(uri) ?? 1) - 1;
    if (left > 0) return void listeners.set(uri, left);
    listeners.delete(uri);
    void subscriptions.unsubscribe(uri, updated).catch(() => {});
  };

  const watch = async (uri: string): Promise<string | undefined> => {
    listeners.set(uri, (listeners.get(uri) ?? 0) + 1);
    try {
      await subscriptions.subscribe(uri, updated);
      return uri;
    } catch {
      release(uri);
      return undefined;
    }
  };

  return {
    open: async (message) => {
      const params = isRecord(message["params"]) ? message["params"] : {};
      const notifications = isRecord(params["notifications"]) ? params["notifications"] : {};
      const { resourceSubscriptions: wanted } = notifications;
      // What is malformed is refused further on.
      if (!Array.isArray(wanted) || !wanted.every((uri) => typeof uri === "string"))
        return { message, close: () => {} };
      const found = await Promise.all([...new Set(wanted as ReadonlyArray<string>)].map(watch));
      const watched = found.filter((uri) => uri !== undefined);
      const { resourceSubscriptions: _, ...others } = notifications;
      const narrowed = watched.length > 0 ? { ...others, resourceSubscriptions: watched } : others;
      return {
        message: { ...message, params: { ...params, notifications: narrowed } },
        close: () => watched.splice(0).forEach(release),
      };
    },
    close: () => subscriptions.leave(updated),
  };
};
