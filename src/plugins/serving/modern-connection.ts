/**
 * Serves one client of 2026-07-28 over a connection of its own, such as stdio. Loaded when
 * the first client of it comes.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage, JSONRPCNotification, JSONRPCRequest } from "@modelcontextprotocol/sdk/types.js";
import type { Notification, Server } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { type Caller, makeModernServer, type ModernServerDeps } from "./modern-server.ts";
import { makeResourceWatch } from "./resource-watch.ts";
import type { Served } from "./serving.ts";
import type { Subscriptions } from "./subscriptions.ts";
import type { Wire } from "./wire.ts";

export interface ModernConnectionDeps extends ModernServerDeps {
  readonly subscriptions: Subscriptions;
}

export interface ModernConnection extends Served {
  readonly notify: (method: string, params?: Wire) => void;
}

export const openModernConnection = (deps: ModernConnectionDeps, transport: Transport): ModernConnection => {
  const client = {};
  let server: Server | undefined;
  let busy = 0;

  const caller: Caller = {
    client,
    // All that comes over the connection is of one client.
    asker: () => client,
    hold: () => {
      busy++;
      return () => void busy--;
    },
  };

  const notify = (method: string, params?: Wire): void =>
    void server?.notification({ method, params } as Notification).catch(() => {});
  const watch = makeResourceWatch(deps.subscriptions, (params) => notify("notifications/resources/updated", params));
  /** How to end each stream; undefined while it is being opened. */
  const streams = new Map<unknown, (() => void) | undefined>();

  const endStream = (id: unknown): void => {
    streams.get(id)?.();
    streams.delete(id);
  };

  /** Subscribes at the servers first. Meanwhile other messages go on, and the client may have cancelled. */
  const listen = async (message: JSONRPCRequest): Promise<void> => {
    const { id } = message;
    endStream(id);
    streams.set(id, undefined);
    const stream = await watch.open(message as unknown as Wire);
    if (!streams.has(id)) return stream.close();
    streams.set(id, stream.close);
    inner.onmessage?.(stream.message as unknown as JSONRPCRequest);
  };

  const onmessage = (message: JSONRPCMessage): void => {
    const method = "method" in message ? message.method : undefined;
    if (method === "subscriptions/listen" && "id" in message) return void listen(message as JSONRPCRequest);
    if (method === "notifications/cancelled") endStream((message as JSONRPCNotification).params?.["requestId"]);
    inner.onmessage?.(message);
  };

  /** The connection as the SDK's own era decision sees it; the one it would refuse does not come here. */
  const inner: Transport = {
    start: async () => {},
    send: (message, options) => transport.send(message, options),
    close: async () => {},
  };
  const handle = serveStdio(
    () => {
      server = makeModernServer(deps, caller);
      return server;
    },
    { legacy: "reject", transport: inner as NonNullable<Parameters<typeof serveStdio>[1]>["transport"] & {} },
  );
  const closed = new Promise<void>((resolve) => {
    const onclose = (): void => {
      watch.close();
      deps.rounds.leave(client);
      deps.levels.forget(client);
      inner.onclose?.();
      resolve();
    };
    Object.assign(transport, { onmessage, onclose } satisfies Partial<Transport>);
  });
  return {
    closed,
    notify,
    busy: () => busy,
    close: async () => {
      await handle.close();
      await transport.close();
    },
  };
};
