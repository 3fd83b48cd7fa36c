/**
 * Serves a runtime's tools to MCP clients: many clients, one pool. Clients come over
 * stdio, Streamable HTTP or any other transport of the SDK, and speak any revision, as
 * do the servers behind the runtime. What is needed for 2026-07-28 is loaded when the
 * first client speaks it.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import * as Duration from "effect/Duration";
import type { DependencyContainer } from "../../core/bridge.ts";
import type { Observer } from "../../core/contracts.ts";
import type { McpEvent } from "../../core/events.ts";
import * as Ports from "../../core/ports.ts";
import { connectEras } from "./eras.ts";
import { FairQueue } from "./fair-queue.ts";
import { makeHostRelay } from "./host-relay.ts";
import { makeInputRounds } from "./input-rounds.ts";
import { type LegacyClient, makeLegacyClient } from "./legacy-client.ts";
import { makeLogLevels } from "./log-levels.ts";
import type { ModernHttp, ModernHttpOptions } from "./modern-http.ts";
import { makeServedFeatures } from "./served-features.ts";
import { makeServedRequests } from "./served-requests.ts";
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

/** One that is told of changes. */
type Audience = Pick<LegacyClient, "notify">;

export interface Clients {
  /** Serves one client of any revision over a transport; settles when messages can come. */
  readonly connect: (transport: Transport) => Promise<Served>;
  /** The same for a transport that is known to carry a session. */
  readonly openSession: (transport: Transport) => Promise<Served>;
  /** Serves the clients that have none. */
  readonly openModernHttp: (options: ModernHttpOptions) => Promise<ModernHttp>;
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
  const audiences = new Set<Audience>();
  const pending = new Set<string>();
  const observers = new Set<(event: McpEvent) => void>();
  let served: ServedRuntime | undefined;
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
      for (const audience of audiences) for (const method of pending) audience.notify(method);
      pending.clear();
    }, changeDelay);
  };
  const observer: Observer = {
    on: (event) => {
      for (const observe of observers) observe(event);
      if (event.type === "attached" || event.type === "detached") return changed(...listChanges);
      if (event.type === "tool.quarantined" || event.type === "tools.released") changed(listChanges[0]!);
      if (event.type === "notification" && listChanges.includes(event.method)) changed(event.method);
    },
  };

  const limitOf = (handle: string): number => {
    const connector = served!.connectors().find((one) => one.handle === handle);
    const { stdioEndpointMax, httpPoolMax } = served!.settings;
    return connector?.endpoint.transportType === "stdio" ? stdioEndpointMax : httpPoolMax;
  };

  const start = (runtime: ServedRuntime): Clients => {
    served = runtime;
    const tools = makeServedTools(runtime, options, () => changed("notifications/tools/list_changed"));
    const features = makeServedFeatures(runtime, options);
    const subscriptions = makeSubscriptions(runtime, features);
    const levels = makeLogLevels(runtime, (endpointId, params) => relay.callOf(endpointId)?.exchange.log(params));
    for (const { onEvent } of [features, subscriptions, levels]) observers.add(onEvent);
    const queue = new FairQueue({ limitOf, queueMax: runtime.settings.admissionQueueMax });
    const serve = makeServedRequests({ ...deps, runtime, options, tools, queue, relay, features, levels });
    const rounds = makeInputRounds(Duration.toMillis(Duration.fromInputUnsafe(options.inputPatience ?? "10 minutes")));
    const parts = { options, serve, subscriptions, levels, rounds };
    const connections = new Set<Served>();
    const modern = new Set<ModernHttp>();

    const openLegacy = async (transport: Transport): Promise<Served> => {
      let client!: LegacyClient;
      const closed = new Promise<void>((resolve) => (client = makeLegacyClient(parts, resolve)));
      audiences.add(client);
      void closed.then(() => audiences.delete(client));
      await client.connect(transport);
      return { closed, busy: client.busy, close: client.close };
    };
    const openModern = async (transport: Transport): Promise<Served> => {
      const { openModernConnection } = await import("./modern-connection.ts");
      const connection = openModernConnection(parts, transport);
      audiences.add(connection);
      void connection.closed.then(() => audiences.delete(connection));
      return connection;
    };
    const counted = async (opening: Promise<Served>): Promise<Served> => {
      const one = await opening;
      connections.add(one);
      void one.closed.then(() => connections.delete(one));
      return one;
    };
    return {
      openSession: (transport) => counted(openLegacy(transport)),
      connect: (transport) => counted(connectEras(transport, { legacy: openLegacy, modern: openModern })),
      openModernHttp: async (given) => {
        const { makeModernHttp } = await import("./modern-http.ts");
        const http = makeModernHttp(parts, given);
        modern.add(http);
        audiences.add(http);
        return http;
      },
      count: () => [...modern].reduce((sum, { clients }) => sum + clients.count(), connections.size),
      close: async () => {
        clearTimeout(timer);
        subscriptions.close();
        rounds.leave();
        await Promise.all([...connections, ...modern].map((one) => one.close()));
      },
    };
  };

  return {
    start,
    install: (container) => {
      container.registerInstance(Ports.observers.token, observer);
      // A host that answers its servers itself goes on doing so.
      if (!container.isRegistered(Ports.hostHandlers.token, true))
        container.registerInstance(Ports.hostHandlers.token, relay.handlers);
    },
  };
};
