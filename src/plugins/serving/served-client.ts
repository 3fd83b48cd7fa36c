/** One client of the gateway: its requests become work of the runtime. */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  type ClientCapabilities,
  type JSONRPCRequest,
  type LoggingMessageNotification,
  ResultSchema,
  type ServerNotification,
  type ServerRequest,
} from "@modelcontextprotocol/sdk/types.js";
import * as Effect from "effect/Effect";
import { lift } from "../../core/answer.ts";
import { isRecord } from "../../core/artifact/json.ts";
import type { Progress } from "../../core/contracts.ts";
import { InvalidArguments, PluginFailed } from "../../core/errors.ts";
import type { FairQueue } from "./fair-queue.ts";
import type { HostRelay, RunningCall } from "./host-relay.ts";
import type { HostTool, HostToolContext, ServedRuntime, ServingDeps, ServingOptions } from "./served-runtime.ts";
import type { ServedFeatures } from "./served-features.ts";
import type { ServedTools } from "./served-tools.ts";
import type { Subscriptions, Updated } from "./subscriptions.ts";
import { rpcError, type Wire, wireAnswer, wireError, wireFailure, wireResult } from "./wire.ts";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;
type Arguments = Readonly<Record<string, unknown>>;

/** A person may take long to answer; the server's or the client's own patience ends it sooner. */
const answerTimeout = 60 * 60 * 1000;

export interface ServedClientDeps extends ServingDeps {
  readonly runtime: ServedRuntime;
  readonly options: ServingOptions;
  readonly tools: ServedTools;
  readonly queue: FairQueue;
  readonly relay: HostRelay;
  readonly features: ServedFeatures;
  readonly subscriptions: Subscriptions;
}

export interface ServedClient {
  readonly connect: (transport: Transport) => Promise<void>;
  /** Passes a notification on; a client that is just going away is told nothing. */
  readonly notify: (method: string, params?: Wire) => void;
  /** Passes a log message on, where the client wants its level. */
  readonly log: (params: Wire) => void;
  /** What tells this client from others. */
  readonly identity: object;
  /** Requests that run or wait. */
  readonly busy: () => number;
  readonly close: () => Promise<void>;
}

/** Aborted with the request, or when the HTTP exchange that waits for its answer is gone. */
const signalOf = (extra: Extra): AbortSignal => {
  const gone = extra.authInfo?.extra?.["gone"];
  return gone instanceof AbortSignal ? AbortSignal.any([extra.signal, gone]) : extra.signal;
};

const supports = (capabilities: ClientCapabilities | undefined, method: string, params: unknown): boolean => {
  if (method === "sampling/createMessage") return capabilities?.sampling !== undefined;
  const elicitation = capabilities?.elicitation;
  if (isRecord(params) && params["mode"] === "url") return elicitation?.url !== undefined;
  // Before 2025-11-25 the capability had no parts and meant forms.
  return elicitation?.form !== undefined || (elicitation !== undefined && elicitation.url === undefined);
};

/** Progress in the order it came, and all of it before the answer. */
const makeProgress = (extra: Extra) => {
  const progressToken = extra._meta?.progressToken;
  let sent: Promise<unknown> = Promise.resolve();
  const onProgress = (progress: Progress): void => {
    const notification = {
      method: "notifications/progress" as const,
      params: { ...progress, progressToken: progressToken! },
    };
    sent = sent.then(() => extra.sendNotification(notification)).catch(() => {});
  };
  return { onProgress: progressToken === undefined ? undefined : onProgress, sent: () => sent };
};

export const makeServedClient = (deps: ServedClientDeps, onClose: () => void): ServedClient => {
  const { runtime, options, tools, queue, relay, features, subscriptions, validator } = deps;
  const serverInfo = options.serverInfo ?? { name: "nucleo-mcp-gateway", version: "0.1.0" };
  const { instructions } = options;
  const server = new Server(serverInfo, {
    capabilities: {
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      prompts: { listChanged: true },
      completions: {},
      logging: {},
    },
    ...(instructions !== undefined && { instructions }),
  });
  const client = {};
  let busy = 0;

  const notify = (method: string, params?: Wire): void =>
    void server.notification({ method, params } as ServerNotification).catch(() => {});
  const sessionId = (): string | undefined => server.transport?.sessionId;
  const onUpdated: Updated = (params) => notify("notifications/resources/updated", params);

  const ask =
    (extra: Extra): RunningCall["ask"] =>
    (method, params, signal) => {
      if (!supports(server.getClientCapabilities(), method, params))
        throw rpcError(-32601, `The client does not support ${method}`);
      const request = { method, params } as ServerRequest;
      return extra.sendRequest(request, ResultSchema, { signal, timeout: answerTimeout });
    };

  const callHostTool = async (tool: HostTool, args: Arguments, context: HostToolContext): Promise<Wire> => {
    const work = Effect.gen(function* () {
      const check = yield* lift("schema validator", () => validator.compile(tool.inputSchema));
      const issues = check(args);
      if (issues.length > 0) return yield* new InvalidArguments({ tool: tool.name, issues });
      return yield* lift(`tool ${tool.name}`, () => tool.run(args, context) as Effect.Effect<unknown>);
      // The model reads what the tool itself said.
    }).pipe(Effect.mapError((error) => (error instanceof PluginFailed ? (error.cause ?? error) : error)));
    return wireAnswer(await Effect.runPromise(work, { signal: context.signal }));
  };

  const callTool = async (params: unknown, extra: Extra): Promise<Wire> => {
    const { name, arguments: given, _meta } = isRecord(params) ? params : {};
    if (typeof name !== "string") throw rpcError(-32602, "Give the tool's name");
    if (given !== undefined && !isRecord(given)) throw rpcError(-32602, "Arguments must be an object");
    const signal = signalOf(extra);
    const { onProgress, sent } = makeProgress(extra);
    const hostTool = tools.hostTool(name);
    const handle = hostTool ? "" : tools.handleOf(name);
    const { progressToken: _, ...meta } = isRecord(_meta) ? _meta : {};
    const call = { client, handle, ask: ask(extra) };
    const run = async (): Promise<Wire> => {
      if (hostTool) return callHostTool(hostTool, given ?? {}, { signal, onProgress: onProgress ?? (() => {}) });
      relay.running.add(call);
      try {
        const result = await runtime.callTool(
          { tool: name, arguments: given },
          {
            signal,
            onProgress,
            timeout: options.callTimeout ?? runtime.settings.maxTotalTimeout,
            ...(Object.keys(meta).length > 0 && { meta }),
          },
        );
        return wireResult(result);
      } finally {
        relay.running.delete(call);
      }
    };
    const result = await queue.run(client, handle ?? "", signal, run).catch(wireFailure);
    await sent();
    return result;
  };

  const serve = ({ method, params = {} }: JSONRPCRequest, extra: Extra): Promise<Wire> => {
    if (method === "tools/call") return callTool(params, extra);
    if (method === "tools/list") return tools.page(params["cursor"], extra.signal);
    if (method === "resources/subscribe") return subscriptions.subscribe(String(params["uri"]), onUpdated);
    if (method === "resources/unsubscribe") return subscriptions.unsubscribe(String(params["uri"]), onUpdated);
    const { onProgress } = makeProgress(extra);
    const served = features.serve(method, params, { signal: signalOf(extra), onProgress });
    if (served) return served;
    throw rpcError(-32601, "Method not found");
  };

  // Not `setRequestHandler`: it parses each result again and strips or refuses what it does not know.
  const fallbackRequestHandler = async (request: JSONRPCRequest, extra: Extra): Promise<Wire> => {
    busy++;
    try {
      return await serve(request, extra).catch(wireError);
    } finally {
      busy--;
    }
  };
  const onclose = (): void => {
    subscriptions.leave(onUpdated);
    onClose();
  };
  Object.assign(server, { fallbackRequestHandler, onclose } satisfies Partial<Server>);

  return {
    connect: (transport) => server.connect(transport),
    notify,
    log: (params) =>
      void server.sendLoggingMessage(params as LoggingMessageNotification["params"], sessionId()).catch(() => {}),
    identity: client,
    busy: () => busy,
    close: () => server.close(),
  };
};
