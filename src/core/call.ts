/** The path of one tool call, top to bottom. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Tracer from "effect/Tracer";
import type { Adapter, CallOptions } from "./adapter.ts";
import type { Admission } from "./admission/admission.ts";
import type { SchemaChecks } from "./arguments.ts";
import type { Catalog } from "./catalog.ts";
import type { LiveClient } from "./client.ts";
import type { RawToolResult } from "./contracts.ts";
import { endpointName } from "./endpoint.ts";
import {
  type AcquireError,
  type CallError,
  type ConnectionLost,
  isMcpError,
  type OutputInvalid,
  PluginFailed,
  ToolFailed,
} from "./errors.ts";
import type { EventBus, McpEventBody } from "./events.ts";
import type { ClientPool } from "./pool/client-pool.ts";
import type { Presentation } from "./presentation.ts";
import type { Provider } from "./provider.ts";
import type { McpToolResult } from "./results.ts";

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
  readonly presentation: Presentation;
  /** Whether a call that may have run is sent once more, for tools annotated read-only or idempotent. */
  readonly resend: "never" | "annotated";
}

export interface Calls {
  readonly callTool: (call: ToolCall, options?: CallOptions) => Effect.Effect<McpToolResult, CallError | ToolFailed>;
  readonly createAdapter: (provider: Provider) => Effect.Effect<Adapter, AcquireError>;
}

type Arguments = Readonly<Record<string, unknown>>;

export const makeCalls = (deps: CallDeps): Calls => {
  const { catalog, checks, pool, admission, events, presentation } = deps;

  const execute = (
    provider: Provider,
    input: Arguments | undefined,
    options: CallOptions | undefined,
  ): Effect.Effect<McpToolResult, CallError | ToolFailed> =>
    observed(
      provider,
      // The tool's own schema: InvalidArguments.
      Effect.flatMap(checks.arguments(provider, input), (args) =>
        Effect.flatMap(
          Effect.catchTag(attempt(provider, args, options), "ConnectionLost", (lost) =>
            mayRepeat(lost, provider) ? again(lost, attempt(provider, args, options)) : Effect.fail(lost),
          ),
          (raw) => answer(provider, raw, options),
        ),
      ),
    );

  /** The live client: CircuitOpen, ConnectFailed. Then the whole demand at once: Overloaded. Then the server. */
  const attempt = (
    provider: Provider,
    args: Arguments,
    options: CallOptions | undefined,
  ): Effect.Effect<RawToolResult, CallError> =>
    pool.withClient(provider.endpoint, (client) =>
      admission.withGrant(client.demand, send(client, provider, args, options)),
    );

  const send = (client: LiveClient, provider: Provider, args: Arguments, options: CallOptions | undefined) => {
    const record = pool.record(provider.endpoint);
    if ("calls" in record) record.calls++;
    return client.callRaw(provider.tool, args, options); // RequestTimeout, ConnectionLost, ProtocolError, Unauthorized
  };

  /** Not sent at all: safe. May have run: only where the host allowed it and the tool says so. */
  const mayRepeat = (lost: ConnectionLost, provider: Provider): boolean => {
    if (lost.outcome === "not-sent") return true;
    const hints = provider.raw.annotations;
    return deps.resend === "annotated" && (hints?.["readOnlyHint"] === true || hints?.["idempotentHint"] === true);
  };

  /** A call that may have run has to say so, also when it could not be sent again. */
  const again = <A>(lost: ConnectionLost, second: Effect.Effect<A, CallError>): Effect.Effect<A, CallError> =>
    lost.outcome === "not-sent" ? second : Effect.mapError(second, (error) => (wasNotSent(error) ? lost : error));

  /** Checked against the output schema (OutputInvalid), then made into what the caller gets. */
  const answer = (
    provider: Provider,
    raw: RawToolResult,
    options: CallOptions | undefined,
  ): Effect.Effect<McpToolResult, OutputInvalid | PluginFailed | ToolFailed> => {
    const presented = provider.raw.outputSchema
      ? Effect.andThen(checks.output(provider, raw), presentation.present(provider, raw))
      : presentation.present(provider, raw);
    if (!options?.failOnToolError || !raw.isError) return presented;
    return Effect.flatMap(presented, (result) =>
      Effect.fail(new ToolFailed({ tool: provider.name, text: result.allTextContent, result })),
    );
  };

  /** A span where the host has a tracer, and the events of start and end. */
  const observed = <A extends McpToolResult, E>(provider: Provider, call: Effect.Effect<A, E>): Effect.Effect<A, E> =>
    Effect.withFiber((fiber) => {
      const isTraced = fiber.context.mapUnsafe.has(Tracer.Tracer.key);
      if (!isTraced && !events.active) return call;
      const at = { endpointId: provider.endpoint.endpointId, server: endpointName(provider.endpoint) };
      const attributes = { "mcp.tool.name": provider.tool, "mcp.server": at.server };
      const traced = isTraced ? Effect.withSpan(call, "mcp.tools/call", { attributes }) : call;
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
      Effect.suspend(() => {
        const known = catalog.known(call.tool);
        if (known) return execute(known, call.arguments, options);
        if (call.tool === presentation.fieldTool.name) return presentation.readField(call.arguments);
        return Effect.flatMap(catalog.resolve(call.tool), (provider) => execute(provider, call.arguments, options));
      }),
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

const wasNotSent = (error: CallError): boolean =>
  error._tag === "ConnectionLost"
    ? error.outcome === "not-sent"
    : ["CircuitOpen", "ConnectFailed", "Overloaded", "RuntimeClosed"].includes(error._tag);

const outcomeOf = (
  exit: Exit.Exit<McpToolResult, unknown>,
): Pick<Extract<McpEventBody, { type: "call.end" }>, "outcome" | "error"> => {
  if (Exit.isSuccess(exit)) return { outcome: exit.value.isError ? "tool-error" : "success" };
  const error = Exit.findErrorOption(exit);
  if (error._tag === "None") return { outcome: "cancelled" };
  return { outcome: "failure", error: isMcpError(error.value) ? error.value : undefined };
};
