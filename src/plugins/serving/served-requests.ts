/** What clients request becomes work of the runtime, the same for every revision. */
import * as Effect from "effect/Effect";
import { lift } from "../../core/answer.ts";
import { isRecord } from "../../core/artifact/json.ts";
import { InvalidArguments, PluginFailed } from "../../core/errors.ts";
import type { PromiseConnector } from "../../core/promise.ts";
import type { Exchange } from "./exchange.ts";
import type { FairQueue } from "./fair-queue.ts";
import type { HostRelay } from "./host-relay.ts";
import type { LogLevels } from "./log-levels.ts";
import type { ServedFeatures } from "./served-features.ts";
import type { HostTool, HostToolContext, ServedRuntime, ServingDeps, ServingOptions } from "./served-runtime.ts";
import type { ServedTools } from "./served-tools.ts";
import { rpcError, type Wire, wireAnswer, wireError, wireFailure, wireResult } from "./wire.ts";

type Arguments = Readonly<Record<string, unknown>>;

export interface ServedRequestsDeps extends ServingDeps {
  readonly runtime: ServedRuntime;
  readonly options: ServingOptions;
  readonly tools: ServedTools;
  readonly queue: FairQueue;
  readonly relay: HostRelay;
  readonly features: ServedFeatures;
  readonly levels: LogLevels;
}

/** Answers a request; rejects with an error that carries its JSON-RPC code. */
export type ServeRequest = (method: string, params: Wire, exchange: Exchange) => Promise<Wire>;

export const makeServedRequests = (deps: ServedRequestsDeps): ServeRequest => {
  const { runtime, options, tools, queue, relay, features, levels, validator } = deps;

  /**
   * Runs work of a server in the client's turn, and lets the server's questions find the
   * client. `likely` is the server where `handle` cannot say for certain.
   */
  const during = <A>(
    exchange: Exchange,
    handle: string | undefined,
    work: () => Promise<A>,
    likely: string = handle ?? "",
  ): Promise<A> =>
    queue.run(exchange.client, likely, exchange.signal, async () => {
      const connector = runtime.connectors().find((one: PromiseConnector) => one.handle === likely);
      if (connector) await levels.prepare(connector.endpoint);
      const ended = relay.starts({ exchange, handle });
      try {
        return await work();
      } finally {
        ended();
      }
    });

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

  const callTool = async (params: Wire, exchange: Exchange): Promise<Wire> => {
    const { name, arguments: given, _meta } = params;
    if (typeof name !== "string") throw rpcError(-32602, "Give the tool's name");
    if (given !== undefined && !isRecord(given)) throw rpcError(-32602, "Arguments must be an object");
    const { signal, onProgress } = exchange;
    const { progressToken: _, ...meta } = isRecord(_meta) ? _meta : {};
    const hostTool = tools.hostTool(name);
    const run = async (): Promise<Wire> => {
      const limits = {
        signal,
        onProgress,
        timeout: options.callTimeout ?? runtime.settings.maxTotalTimeout,
        ...(Object.keys(meta).length > 0 && { meta }),
      };
      return wireResult(await runtime.callTool({ tool: name, arguments: given }, limits));
    };
    const context = { signal, onProgress: onProgress ?? (() => {}) };
    return hostTool
      ? queue.run(exchange.client, "", signal, () => callHostTool(hostTool, given ?? {}, context)).catch(wireFailure)
      : during(exchange, tools.handleOf(name), run, tools.likelyHandleOf(name)).catch(wireFailure);
  };

  const answer: ServeRequest = (method, params, exchange) => {
    if (method === "tools/call") return callTool(params, exchange);
    if (method === "tools/list") return tools.page(params["cursor"], exchange.signal);
    const { signal, onProgress } = exchange;
    const served = features.serve(method, params, {
      signal,
      onProgress,
      during: (handle, work) => during(exchange, handle, work),
    });
    if (served) return served;
    throw rpcError(-32601, "Method not found");
  };

  return async (method, params, exchange) => {
    try {
      return await answer(method, params, exchange);
    } catch (error) {
      return wireError(error);
    } finally {
      await exchange.flush();
    }
  };
};
