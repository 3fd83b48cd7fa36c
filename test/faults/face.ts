/** The public runtime as the callers use it, by its Promise API or by its Effect API: one shape for both. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as EffectApi from "../../src/effect.ts";
import {
  type CallOptions,
  createRuntime,
  type HealthSnapshot,
  type McpEndpoint,
  type RequestOptions,
  type RuntimeOptions,
  type ToolCall,
} from "../../src/mod.ts";

/** What was no typed failure: a defect, or an interruption nobody asked for. */
export class Untyped extends Error {}

type Signalled<O> = O & { readonly signal?: AbortSignal | undefined };

export interface FaceClient {
  readonly callTool: (
    args: Record<string, unknown>,
    options: Signalled<RequestOptions>,
  ) => Promise<{ textContent: string }>;
  readonly listTools: (options: Signalled<{}>) => Promise<unknown>;
  readonly ping: (options: Signalled<RequestOptions>) => Promise<unknown>;
  readonly close: () => Promise<void>;
}

export interface Face {
  readonly attach: (handle: string, endpoint: McpEndpoint) => Promise<unknown>;
  /** Takes what `attach` answered. */
  readonly detach: (connector: never) => Promise<void>;
  readonly tools: (options: Signalled<{ within?: number | undefined }>) => Promise<unknown>;
  readonly callTool: (call: ToolCall, options: Signalled<CallOptions>) => Promise<{ textContent: string }>;
  /** By an adapter of the first tool of the handle; without one, by name. */
  readonly execute: (
    handle: string,
    args: Record<string, unknown>,
    options: Signalled<CallOptions>,
  ) => Promise<{ textContent: string }>;
  readonly client: (endpoint: McpEndpoint, signal: AbortSignal | undefined) => Promise<FaceClient>;
  readonly health: () => Promise<HealthSnapshot>;
  readonly close: () => Promise<void>;
}

const openPromise = async (options: RuntimeOptions): Promise<Face> => {
  const runtime = await createRuntime(options);
  return {
    attach: runtime.attach,
    detach: runtime.detach,
    tools: runtime.tools,
    callTool: runtime.callTool,
    execute: async (handle, args, given) => {
      const connector = runtime.connectors().find((candidate) => candidate.handle === handle);
      const [provider] = (await connector?.providers(given)) ?? [];
      if (!provider) return runtime.callTool({ tool: `${handle}__echo`, arguments: args }, given);
      return (await provider.create(given)).execute(args, given);
    },
    client: async (endpoint, signal) => {
      const client = await runtime.client(endpoint, { signal });
      return {
        callTool: (args, given) => client.callTool("echo", args, given),
        listTools: client.listTools,
        ping: client.ping,
        close: client.close,
      };
    },
    health: runtime.health,
    close: runtime.close,
  };
};

const run = async <A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal): Promise<A> => {
  // Effect starts what it then interrupts; an Effect host looks before.
  signal?.throwIfAborted();
  const exit = await Effect.runPromiseExit(effect, { signal });
  if (Exit.isSuccess(exit)) return exit.value;
  const failure = Cause.findErrorOption(exit.cause);
  if (failure._tag === "Some") throw failure.value;
  if (Cause.hasInterruptsOnly(exit.cause) && signal?.aborted) throw signal.reason;
  throw new Untyped(Cause.pretty(exit.cause));
};

const openEffect = async (options: RuntimeOptions): Promise<Face> => {
  const scope = await run(Scope.make());
  const runtime = await run(Scope.provide(EffectApi.make(options), scope));
  let closing: Promise<void> | undefined;
  return {
    attach: (handle, endpoint) => run(runtime.attach(handle, endpoint)),
    detach: (connector) => run(runtime.detach(connector)),
    tools: ({ signal, within }) => run(runtime.tools({ within }), signal),
    callTool: (call, { signal, ...given }) => run(runtime.callTool(call, given), signal),
    execute: (handle, args, { signal, ...given }) =>
      run(
        Effect.gen(function* () {
          const connector = runtime.connectors().find((candidate) => candidate.handle === handle);
          const [provider] = connector ? yield* connector.providers() : [];
          if (!provider) return yield* runtime.callTool({ tool: `${handle}__echo`, arguments: args }, given);
          return yield* (yield* provider.create()).execute(args, given);
        }),
        signal,
      ),
    client: async (endpoint, signal) => {
      const borrowed = await run(Scope.make());
      const close = () => run(Scope.close(borrowed, Exit.void));
      const client = await run(
        Effect.onError(Scope.provide(runtime.client(endpoint), borrowed), () => Scope.close(borrowed, Exit.void)),
        signal,
      );
      return {
        callTool: (args, { signal: own, ...given }) => run(client.callTool("echo", args, given), own),
        listTools: ({ signal: own }) => run(client.listTools(), own),
        ping: ({ signal: own, ...given }) => run(client.ping(given), own),
        close,
      };
    },
    health: () => run(runtime.health),
    close: () => (closing ??= run(Scope.close(scope, Exit.void))),
  };
};

export const openFace = (face: "promise" | "effect", options: RuntimeOptions): Promise<Face> =>
  face === "promise" ? openPromise(options) : openEffect(options);
