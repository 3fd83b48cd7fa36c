/** Serves 2026-07-28 over Streamable HTTP: every request stands alone. Loaded when the first client of it comes. */
import { createMcpHandler } from "@modelcontextprotocol/server";
import { isRecord } from "../../core/artifact/json.ts";
import { refusal, watched } from "./http-response.ts";
import { type ModernClient, type ModernClients, makeModernClients } from "./modern-clients.ts";
import { type Caller, isServed, makeModernServer, type ModernServerDeps } from "./modern-server.ts";
import { makeResourceWatch } from "./resource-watch.ts";
import type { Subscriptions } from "./subscriptions.ts";
import type { Wire } from "./wire.ts";

export interface ModernHttpDeps extends ModernServerDeps {
  readonly subscriptions: Subscriptions;
}

export interface ModernHttpOptions {
  readonly clientsMax: number;
  /** A client that does nothing is forgotten after this, ms. */
  readonly presence: number;
}

export interface ModernHttp {
  /** `message` is the parsed body; undefined for methods that have none. */
  readonly fetch: (request: Request, message: unknown) => Promise<Response>;
  readonly clients: Pick<ModernClients, "count">;
  /** Tells those who listen of a change. */
  readonly notify: (method: string) => void;
  readonly close: () => Promise<void>;
}

const changes = {
  "notifications/tools/list_changed": "tools_list_changed",
  "notifications/prompts/list_changed": "prompts_list_changed",
  "notifications/resources/list_changed": "resources_list_changed",
} as const;

export const makeModernHttp = (deps: ModernHttpDeps, options: ModernHttpOptions): ModernHttp => {
  const clients = makeModernClients({
    max: options.clientsMax,
    presence: options.presence,
    onForgotten: deps.levels.forget,
  });

  const callerOf = (client: ModernClient): Caller => ({
    client,
    // Two processes may introduce themselves alike, and none may be asked for the other.
    asker: () => ({}),
    hold: () => {
      clients.hold(client);
      return () => clients.release(client);
    },
  });

  const handler = createMcpHandler(
    ({ authInfo, requestInfo }) => {
      const server = makeModernServer(deps, callerOf(authInfo!.extra!["client"] as ModernClient));
      // An unknown method has to be refused before it is dispatched, or its status is 200.
      if (!isServed(requestInfo!.headers.get("mcp-method"))) delete server.fallbackRequestHandler;
      return server;
    },
    // A stream from the start: its end is how a client cancels.
    { legacy: "reject", responseMode: "sse", maxSubscriptions: options.clientsMax },
  );
  const watch = makeResourceWatch(deps.subscriptions, (params) =>
    handler.bus.publish({ kind: "resource_updated", uri: String(params["uri"]), params }),
  );

  const isListen = (message: unknown): message is Wire =>
    isRecord(message) && message["method"] === "subscriptions/listen";

  return {
    clients,
    fetch: async (request, message) => {
      const client = clients.enter(request, message);
      if (!client)
        return refusal(503, `All ${options.clientsMax} clients of this gateway are at work`, { "retry-after": "10" });
      let stream = { message: message as Wire, close: (): void => {} };
      const leave = (): void => {
        stream.close();
        clients.release(client);
      };
      try {
        if (isListen(message)) stream = await watch.open(message);
        // Without the server's own signal: what becomes of the response's body says the same on every runtime.
        const { url, method, headers } = request;
        const response = await handler.fetch(new Request(url, { method, headers }), {
          authInfo: { token: "", clientId: "", scopes: [], extra: { client } },
          ...(message !== undefined && { parsedBody: stream.message }),
        });
        return watched(response, leave);
      } catch (cause) {
        leave();
        throw cause;
      }
    },
    notify: (method) => {
      const kind = changes[method as keyof typeof changes];
      if (kind) handler.bus.publish({ kind });
    },
    close: async () => {
      clients.close();
      await handler.close();
      watch.close();
    },
  };
};
