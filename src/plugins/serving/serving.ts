/**
 * Serves a runtime's tools to MCP clients: many clients, one pool. Clients come over
 * stdio, Streamable HTTP or any other transport of the SDK.
 *
 * Speaks the legacy revisions to clients (2024-10-07 to 2025-11-25); servers behind the
 * runtime may speak any. A client of 2026-07-28 falls back, as its revision asks.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { DependencyContainer } from "../../core/bridge.ts";
import type { Observer } from "../../core/contracts.ts";
import * as Ports from "../../core/ports.ts";
import { FairQueue } from "./fair-queue.ts";
import { makeHostRelay } from "./host-relay.ts";
import { makeServedClient, type ServedClient } from "./served-client.ts";
import { makeServedFeatures, type ServedFeatures } from "./served-features.ts";
import type { ServedRuntime, ServingDeps, ServingOptions } from "./served-runtime.ts";
import { makeServedTools } from "./served-tools.ts";
import { makeSubscriptions } from "./subscriptions.ts";

export interface Served {
  /** The client is gone, or was closed. */
  readonly closed: Promise<void>;
  /** Requests that run or wait. */
  readonly busy: () => number;
  readonly close: () => Promise<void>;
}

export interface Clients {
  /** Serves one client over a transport; settles when messages can come. */
  readonly connect: (transport: Transport) => Promise<Served>;
  readonly count: () => number;
  /** Ends every client's session; calls in flight are cancelled. */
  readonly close: () => Promise<void>;
}

export interface Serving {
  /** Registers what has to be in the runtime: pass it the container in `setup`. */
  readonly install: (container: DependencyContainer) => void;
  /** Serves the runtime that was set up so. */
  readonly start: (runtime: ServedRuntime) => Clients;
}

const listChanges: ReadonlyArray<string> = ["tools", "resources", "prompts"].map(
  (list) => `notifications/${list}/list_changed`,
);

/** Bursts of changes are told once. */
const changeDelay = 50;

export const makeServing = (options: ServingOptions, deps: ServingDeps): Serving => {
  const clients = new Set<ServedClient>();
  const pending = new Set<string>();
  let served: ServedRuntime | undefined;
  let features: ServedFeatures | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;

  const relay = makeHostRelay((endpointId) =>
    (served?.connectors() ?? [])
      .filter(({ endpoint }) => endpoint.endpointId === endpointId)
      .map(({ handle }) => handle),
  );

  const changed = (...methods: ReadonlyArray<string>): void => {
    for (const method of methods) pending.add(method);
    timer ??= setTimeout(() => {
      timer = undefined;
      for (const client of clients) for (const method of pending) client.notify(method);
      pending.clear();
    }, changeDelay);
  };
  const observer: Observer = {
    on: (event) => {
      features?.onEvent(event);
      if (event.type === "attached" || event.type === "detached") return changed(...listChanges);
      if (event.type !== "notification") return;
      if (listChanges.includes(event.method)) changed(event.method);
      if (event.method !== "notifications/message") return;
      const wanted = relay.clientOf(event.endpointId);
      for (const client of clients) if (client.identity === wanted) client.log(event.params);
    },
  };

  const limitOf = (handle: string): number => {
    const connector = served!.connectors().find((one) => one.handle === handle);
    const { stdioEndpointMax, httpPoolMax } = served!.settings;
    return connector?.endpoint.transportType === "stdio" ? stdioEndpointMax : httpPoolMax;
  };

  return {
    install: (container) => {
      container.registerInstance(Ports.observers.token, observer);
      // A host that answers its servers itself goes on doing so.
      if (!container.isRegistered(Ports.hostHandlers.token, true))
        container.registerInstance(Ports.hostHandlers.token, relay.handlers);
    },
    start: (runtime) => {
      served = runtime;
      const tools = makeServedTools(runtime, options, () => changed("notifications/tools/list_changed"));
      const own = (features = makeServedFeatures(runtime, options));
      const subscriptions = makeSubscriptions(runtime, own);
      const queue = new FairQueue({ limitOf, queueMax: runtime.settings.admissionQueueMax });
      return {
        connect: async (transport) => {
          let client!: ServedClient;
          const closed = new Promise<void>((resolve) => {
            const parts = { runtime, options, tools, queue, relay, features: own, subscriptions };
            client = makeServedClient({ ...deps, ...parts }, resolve);
          });
          clients.add(client);
          void closed.then(() => clients.delete(client));
          await client.connect(transport);
          return { closed, busy: client.busy, close: client.close };
        },
        count: () => clients.size,
        close: async () => {
          clearTimeout(timer);
          await Promise.all([...clients].map((client) => client.close()));
        },
      };
    },
  };
};
