/** The path of one tool call, top to bottom. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Tracer from "effect/Tracer";
import type { Adapter, CallOptions } from "./adapter.ts";
import type { Admission } from "./admission/admission.ts";
import { lift } from "./answer.ts";
import type { SchemaChecks } from "./arguments.ts";
import type { Catalog } from "./catalog.ts";
import type { LiveClient } from "./client.ts";
import type { ArtifactRehydrator, RawToolResult, ResultNormalizer, ResultSource } from "./contracts.ts";
import { endpointName } from "./endpoint.ts";
import { type AcquireError, type CallError, isMcpError, PluginFailed, ToolFailed } from "./errors.ts";
import type { EventBus, McpEventBody } from "./events.ts";
import type { ClientPool } from "./pool/client-pool.ts";
import type { Provider } from "./provider.ts";
import { makeToolResult, type McpToolResult } from "./results.ts";

/** A model's tool call: the exposed name and the arguments. */
export interface ToolCall {
  readonly tool: string;
  readonly arguments?: Readonly<Record<string, unknown>> | undefined;
}

export interface CallDeps {
  readonly catalog: Catalog;
  readonly checks: SchemaChecks;
  readonly pool: ClientPool;
  readonly admission: Admission;
  readonly events: EventBus;
  readonly rehydrators: ReadonlyArray<ArtifactRehydrator>;
  readonly normalizer: ResultNormalizer;
  /** Whether a call that may have run is sent once more, for tools annotated read-only or idempotent. */
  readonly resend: "never" | "annotated";
}

export interface Calls {
  readonly callTool: (call: ToolCall, options?: CallOptions) => Effect.Effect<McpToolResult, CallError | ToolFailed>;
  readonly createAdapter: (provider: Provider) => Effect.Effect<Adapter, AcquireError>;
}

type Arguments = Readonly<Record<string, unknown>>;

export const makeCalls = (deps: CallDeps): Calls => {
  const { catalog, checks, pool, admission, events } = deps;

  const execute = (
    provider: Provider,
    input: Arguments | undefined,
    options: CallOptions | undefined,
  ): Effect.Effect<McpToolResult, CallError | ToolFailed> =>
    observed(
      provider,
      Effect.gen(function* () {
        const args = yield* checks.arguments(provider, input); // InvalidArguments
        const raw = yield* Effect.retry(
          // The live client: CircuitOpen, ConnectFailed. Then the whole demand at once: Overloaded.
          pool.withClient(provider.endpoint, (client) =>
            admission.withGrant(client.demand, send(client, provider, args, options)),
          ),
          { times: 1, while: (error) => mayRepeat(error, provider) },
        );
        yield* checks.output(provider, raw); // OutputInvalid
        const result = yield* present(provider, raw);
        return options?.failOnToolError && result.isError
          ? yield* new ToolFailed({ tool: provider.name, text: result.allTextContent, result })
          : result;
      }),
    );

  const send = (client: LiveClient, provider: Provider, args: Arguments, options: CallOptions | undefined) => {
    const record = pool.record(provider.endpoint);
    if ("calls" in record) record.calls++;
    return client.callRaw(provider.tool, args, options); // RequestTimeout, ConnectionLost, ProtocolError, Unauthorized
  };

  /** Not sent at all: safe. May have run: only where the host allowed it and the tool says so. */
  const mayRepeat = (error: CallError, provider: Provider): boolean => {
    if (error._tag !== "ConnectionLost") return false;
    if (error.outcome === "not-sent") return true;
    const hints = provider.raw.annotations;
    return deps.resend === "annotated" && (hints?.["readOnlyHint"] === true || hints?.["idempotentHint"] === true);
  };

  /** Rehydrators in order, else the normalizer: what a model sees. */
  const present = (provider: Provider, raw: RawToolResult): Effect.Effect<McpToolResult, PluginFailed> => {
    const source: ResultSource = {
      handle: provider.handle,
      tool: provider.tool,
      endpointId: provider.endpoint.endpointId,
    };
    const normalized = Effect.try({
      try: () => makeToolResult(raw, deps.normalizer.normalize(raw, source)),
      catch: (cause) => new PluginFailed({ plugin: "result normalizer", reason: String(cause) }, cause),
    });
    return deps.rehydrators.reduceRight<Effect.Effect<McpToolResult, PluginFailed>>(
      (next, rehydrator) =>
        Effect.flatMap(
          lift("rehydrator", () => rehydrator.rehydrate(raw, source)) as Effect.Effect<unknown, PluginFailed>,
          (artifact) => (artifact === undefined ? next : Effect.succeed(makeToolResult(raw, artifact))),
        ),
      normalized,
    );
  };

  /** A span where the host has a tracer, and the events of start and end. */
  const observed = <A extends McpToolResult, E>(provider: Provider, call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.withFiber((fiber) => {
      const at = { endpointId: provider.endpoint.endpointId, server: endpointName(provider.endpoint) };
      const traced = fiber.context.mapUnsafe.has(Tracer.Tracer.key)
        ? Effect.withSpan(call, "mcp.tools/call", {
            attributes: { "mcp.tool.name": provider.tool, "mcp.server": at.server },
          })
        : call;
      if (!events.active) return traced;
      const clock = fiber.getRef(Clock.Clock);
      const startedAt = clock.currentTimeMillisUnsafe();
      events.publish({ type: "call.start", tool: provider.name, ...at });
      return Effect.onExit(traced, (exit) =>
        Effect.sync(() => {
          const duration = clock.currentTimeMillisUnsafe() - startedAt;
          events.publish({ type: "call.end", tool: provider.name, duration, ...outcomeOf(exit), ...at });
        }),
      );
    });

  return {
    callTool: (call, options) =>
      Effect.flatMap(catalog.resolve(call.tool), (provider) => execute(provider, call.arguments, options)),
    createAdapter: (provider) =>
      pool.withClient(provider.endpoint, (client) =>
        Effect.succeed<Adapter>({
          name: provider.name,
          requirements: client.demand,
          execute: (input, options) => execute(provider, input, options),
        }),
      ),
  };
};

const outcomeOf = (
  exit: Exit.Exit<McpToolResult, unknown>,
): Pick<Extract<McpEventBody, { type: "call.end" }>, "outcome" | "error"> => {
  if (Exit.isSuccess(exit)) return { outcome: exit.value.isError ? "tool-error" : "success" };
  const error = Exit.findErrorOption(exit);
  if (error._tag === "None") return { outcome: "cancelled" };
  return { outcome: "failure", error: isMcpError(error.value) ? error.value : undefined };
};
