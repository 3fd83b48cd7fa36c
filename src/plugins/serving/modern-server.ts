/** Answers clients of 2026-07-28; what is asked of the servers goes the way of every revision. */
import {
  CLIENT_CAPABILITIES_META_KEY,
  LOG_LEVEL_META_KEY,
  type Notification,
  SERVER_INFO_META_KEY,
  Server,
  type ServerContext,
} from "@modelcontextprotocol/server";
import * as Duration from "effect/Duration";
import { isRecord } from "../../core/artifact/json.ts";
import type { Progress } from "../../core/contracts.ts";
import type { Exchange } from "./exchange.ts";
import type { InputRounds, Round } from "./input-rounds.ts";
import { isLevel, type LogLevels, passes } from "./log-levels.ts";
import type { ServeRequest } from "./served-requests.ts";
import { introduction, type ServingOptions } from "./served-runtime.ts";
import { rpcError, type Wire } from "./wire.ts";

export interface ModernServerDeps {
  readonly options: ServingOptions;
  readonly serve: ServeRequest;
  readonly levels: LogLevels;
  readonly rounds: InputRounds;
}

/** The client that a server is made for. */
export interface Caller {
  readonly client: object;
  /** Who may be asked while a call runs; a new one for each call where calls may be of different clients. */
  readonly asker: () => object;
  /** Notes that the client is at work; answers how to end that. */
  readonly hold: () => () => void;
}

type Params = Readonly<Record<string, unknown>>;

/** The methods whose result may be a question. */
const asking: ReadonlyArray<string> = ["tools/call", "prompts/get", "resources/read"];
const lists: ReadonlyArray<string> = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/** The methods that are answered here; all others get the SDK's answer. */
export const isServed = (method: string | null): boolean =>
  method !== null && [...asking, ...lists, "completion/complete"].includes(method);

/** The form check of its own answers that the SDK would build anew for every request; nothing here uses it. */
const jsonSchemaValidator = {
  getValidator: () => (): never => {
    throw new Error("Results are checked by the runtime");
  },
};

/** What the request's envelope says under a key. */
const enveloped = ({ mcpReq }: ServerContext, key: string): unknown => (mcpReq.envelope as Params | undefined)?.[key];

const progressOf = ({ mcpReq }: ServerContext): Exchange["onProgress"] => {
  const progressToken = mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return (progress: Progress) =>
    void mcpReq.notify({ method: "notifications/progress", params: { ...progress, progressToken } }).catch(() => {});
};

export const makeModernServer = (deps: ModernServerDeps, caller: Caller): Server => {
  const { options, serve, levels, rounds } = deps;
  const { serverInfo, ...given } = introduction(options);
  const server = new Server(serverInfo, { ...given, jsonSchemaValidator });
  const ttlMs = Duration.toMillis(Duration.fromInputUnsafe(options.listTtl ?? "30 seconds"));

  const logOf = (context: ServerContext): Exchange["log"] => {
    const wanted = enveloped(context, LOG_LEVEL_META_KEY);
    if (!isLevel(wanted)) return () => {};
    levels.want(caller.client, wanted);
    return (params) => {
      if (!passes(params["level"], wanted)) return;
      void context.mcpReq.notify({ method: "notifications/message", params } as Notification).catch(() => {});
    };
  };

  const call = (method: string, params: Params, context: ServerContext): Promise<Wire> => {
    const { mcpReq } = context;
    const round: Round = {
      client: caller.client,
      method,
      params,
      requestState: mcpReq.requestState(),
      responses: mcpReq.inputResponses ?? {},
      capabilities: enveloped(context, CLIENT_CAPABILITIES_META_KEY),
      signal: mcpReq.signal,
      onProgress: progressOf(context),
      log: logOf(context),
      hold: caller.hold,
    };
    return rounds.serve(round, caller.asker(), (exchange) => serve(method, params, exchange));
  };

  const answer = async (method: string, params: Params, context: ServerContext): Promise<Wire> => {
    if (asking.includes(method)) return call(method, params, context);
    const exchange: Exchange = {
      client: caller.client,
      asker: caller.asker(),
      signal: context.mcpReq.signal,
      onProgress: progressOf(context),
      ask: async (asked) => {
        throw rpcError(-32601, `A client of this revision cannot be asked for ${asked} during ${method}`);
      },
      log: logOf(context),
      flush: () => Promise.resolve(),
    };
    const result = await serve(method, params, exchange);
    return lists.includes(method) ? { ttlMs, cacheScope: "private", ...result } : result;
  };

  // Not `setRequestHandler`: it parses each result again and strips or refuses what it does not know.
  server.fallbackRequestHandler = async ({ method, params }, context) => {
    const { _meta, ...result } = await answer(method, isRecord(params) ? params : {}, context);
    if (!isRecord(_meta)) return result;
    // This result is the gateway's, whoever made it.
    const { [SERVER_INFO_META_KEY]: _, ...meta } = _meta;
    return { ...result, _meta: meta };
  };
  return server;
};
