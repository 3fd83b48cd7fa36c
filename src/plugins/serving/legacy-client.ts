/** One client of the gateway that speaks a revision with sessions, 2024-10-07 to 2025-11-25. */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type JSONRPCRequest,
  ResultSchema,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js";
import type { LoggingLevel, Progress } from "../../core/contracts.ts";
import { type Exchange, supports } from "./exchange.ts";
import { defaultLevel, isLevel, type LogLevels, passes } from "./log-levels.ts";
import type { ServeRequest } from "./served-requests.ts";
import { introduction, type ServingOptions } from "./served-runtime.ts";
import type { Subscriptions, Updated } from "./subscriptions.ts";
import { rpcError, textParam, type Wire, wireError } from "./wire.ts";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

/** A person may take long to answer; the server's or the client's own patience ends it sooner. */
const answerTimeout = 60 * 60 * 1000;

export interface LegacyClientDeps {
  readonly options: ServingOptions;
  readonly serve: ServeRequest;
  readonly subscriptions: Subscriptions;
  readonly levels: LogLevels;
}

export interface LegacyClient {
  readonly connect: (transport: Transport) => Promise<void>;
  /** Passes a notification on; a client that is just going away is told nothing. */
  readonly notify: (method: string, params?: Wire) => void;
  /** Requests that run or wait. */
  readonly busy: () => number;
  readonly close: () => Promise<void>;
}

const uriOf = (params: Wire): string => textParam(params["uri"], "resource's uri");

/** Aborted with the request, or when the HTTP exchange that waits for its answer is gone. */
const signalOf = (extra: Extra): AbortSignal => {
  const gone = extra.authInfo?.extra?.["gone"];
  return gone instanceof AbortSignal ? AbortSignal.any([extra.signal, gone]) : extra.signal;
};

/** Progress in the order it came, and all of it before the answer. */
const makeProgress = (extra: Extra): Pick<Exchange, "onProgress" | "flush"> => {
  const progressToken = extra._meta?.progressToken;
  let sent: Promise<unknown> = Promise.resolve();
  const onProgress = (progress: Progress): void => {
    const notification = {
      method: "notifications/progress" as const,
      params: { ...progress, progressToken: progressToken! },
    };
    sent = sent.then(() => extra.sendNotification(notification)).catch(() => {});
  };
  return { onProgress: progressToken === undefined ? undefined : onProgress, flush: () => sent };
};

export const makeLegacyClient = (deps: LegacyClientDeps, onClose: () => void): LegacyClient => {
  const { options, serve, subscriptions, levels } = deps;
  const { serverInfo, ...given } = introduction(options);
  const server = new Server(serverInfo, given);
  // Its own handler would keep the level to itself.
  server.removeRequestHandler("logging/setLevel");
  const client = {};
  let level: LoggingLevel | undefined;
  let busy = 0;

  const notify = (method: string, params?: Wire): void =>
    void server.notification({ method, params } as ServerNotification).catch(() => {});
  const onUpdated: Updated = (params) => notify("notifications/resources/updated", params);

  const exchangeOf = (extra: Extra): Exchange => ({
    client,
    asker: client,
    signal: signalOf(extra),
    ...makeProgress(extra),
    ask: async (method, params, signal) => {
      if (!supports(server.getClientCapabilities(), method, params))
        throw rpcError(-32601, `The client does not support ${method}`);
      const request = { method, params } as ServerRequest;
      return extra.sendRequest(request, ResultSchema, { signal, timeout: answerTimeout });
    },
    log: (params) => {
      if (passes(params["level"], level ?? defaultLevel)) notify("notifications/message", params);
    },
  });

  const setLevel = (given: unknown): Wire => {
    if (!isLevel(given)) throw rpcError(-32602, "There is no such level");
    level = given;
    levels.want(client, given);
    return {};
  };

  const answer = async ({ method, params = {} }: JSONRPCRequest, extra: Extra): Promise<Wire> => {
    if (method === "logging/setLevel") return setLevel(params["level"]);
    if (method === "resources/subscribe") return subscriptions.subscribe(uriOf(params), onUpdated);
    if (method === "resources/unsubscribe") return subscriptions.unsubscribe(uriOf(params), onUpdated);
    return serve(method, params, exchangeOf(extra));
  };

  // Not `setRequestHandler`: it parses each result again and strips or refuses what it does not know.
  const fallbackRequestHandler = async (request: JSONRPCRequest, extra: Extra): Promise<Wire> => {
    busy++;
    try {
      return await answer(request, extra).catch(wireError);
    } finally {
      busy--;
    }
  };
  const onclose = (): void => {
    subscriptions.leave(onUpdated);
    levels.forget(client);
    onClose();
  };
  const oninitialized = (): void => levels.want(client, level);
  Object.assign(server, { fallbackRequestHandler, onclose, oninitialized } satisfies Partial<Server>);

  return { connect: (transport) => server.connect(transport), notify, busy: () => busy, close: () => server.close() };
};
