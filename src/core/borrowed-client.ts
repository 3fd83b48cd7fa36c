/** A client as one borrower has it: its work passes admission, and its subscriptions end with it. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { Admission } from "./admission/admission.ts";
import type { LiveClient, McpClient } from "./client.ts";
import type { RequestError } from "./errors.ts";

/** How many borrowers want to hear of a resource, by connection. */
const subscribers = new WeakMap<LiveClient, Map<string, number>>();

const subscribersOf = (client: LiveClient): Map<string, number> => {
  const known = subscribers.get(client) ?? new Map<string, number>();
  subscribers.set(client, known);
  return known;
};

/**
 * Calls, reads, prompts and completions wait for their grant, as a connector's calls do;
 * listing and pings do not. A resource stays subscribed until the last borrower that
 * subscribed to it unsubscribes or ends.
 */
export const borrowed = (client: LiveClient, admission: Admission): Effect.Effect<McpClient, never, Scope.Scope> => {
  const granted = <A>(work: Effect.Effect<A, RequestError>): Effect.Effect<A, RequestError> =>
    admission.withGrant(client.demand, work);
  const counts = subscribersOf(client);
  const own = new Set<string>();

  /** True when nobody else wants to hear of it. */
  const release = (uri: string): boolean => {
    const left = (counts.get(uri) ?? 0) - (own.delete(uri) ? 1 : 0);
    if (left > 0) counts.set(uri, left);
    else counts.delete(uri);
    return left <= 0;
  };

  const made = Object.assign(Object.create(client) as LiveClient, {
    callTool: (...args: Parameters<McpClient["callTool"]>) => granted(client.callTool(...args)),
    readResource: (...args: Parameters<McpClient["readResource"]>) => granted(client.readResource(...args)),
    getPrompt: (...args: Parameters<McpClient["getPrompt"]>) => granted(client.getPrompt(...args)),
    complete: (...args: Parameters<McpClient["complete"]>) => granted(client.complete(...args)),
    subscribeResource: (...args: Parameters<McpClient["subscribeResource"]>) =>
      Effect.suspend(() => {
        const [uri] = args;
        if (own.has(uri)) return client.subscribeResource(...args);
        // Counted before it is made: whoever ends its own meanwhile must not end this one at the server.
        counts.set(uri, (counts.get(uri) ?? 0) + 1);
        own.add(uri);
        return Effect.onError(client.subscribeResource(...args), () => Effect.sync(() => void release(uri)));
      }),
    unsubscribeResource: (...args: Parameters<McpClient["unsubscribeResource"]>) =>
      Effect.suspend(() => (release(args[0]) ? client.unsubscribeResource(...args) : Effect.succeed({}))),
  });

  const end = Effect.suspend(() => {
    const last = [...own].filter(release);
    // The server may take its time: giving a client back waits for nobody.
    return client.isConnected
      ? Effect.forEach(last, (uri) => Effect.forkDetach(Effect.ignore(client.unsubscribeResource(uri))), {
          discard: true,
        })
      : Effect.void;
  });
  return Effect.as(
    Effect.addFinalizer(() => end),
    made,
  );
};
