/** nucleo-mcp for Effect hosts: the same runtime as a service with typed errors and scopes. */
import * as Context from "effect/Context";
import type * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import type { InvalidConfig, PluginFailed } from "./core/errors.ts";
import { makeRuntime, type McpRuntime as Runtime, type RuntimeOptions } from "./core/runtime.ts";
import { defaults } from "./defaults.ts";

export type { Adapter, CallOptions } from "./core/adapter.ts";
export type { ToolCall } from "./core/call.ts";
export type { ToolDefinition } from "./core/catalog.ts";
export type { McpClient, McpTool, RequestOptions } from "./core/client.ts";
export type { McpConnector } from "./core/connector.ts";
export type { AttachOptions } from "./core/connector-registry.ts";
export * from "./core/endpoint.ts";
export * from "./core/errors.ts";
export type { McpEvent } from "./core/events.ts";
export type { HealthSnapshot } from "./core/health.ts";
export type { QuarantinedTool } from "./core/pinning/quarantine.ts";
export * as ports from "./core/ports.ts";
export type { Provider } from "./core/provider.ts";
export { McpToolResult, modelText } from "./core/results.ts";
export type { RuntimeOptions } from "./core/runtime.ts";
export type { McpSettings, McpSettingsInput } from "./core/settings.ts";
export * from "./plugins/credentials/credentials.ts";
export { InMemoryEndpoint } from "./transports/in-memory.ts";
export { WebSocketEndpoint } from "./transports/websocket.ts";

/** The runtime service. */
export type McpRuntime = Runtime;
export const McpRuntime: Context.Service<McpRuntime, McpRuntime> = Context.Service<McpRuntime>("nucleo-mcp/McpRuntime");

/** Builds a runtime that closes with the scope. */
export const make = (
  options: RuntimeOptions = {},
): Effect.Effect<McpRuntime, PluginFailed | InvalidConfig, Scope.Scope> => makeRuntime(options, defaults);

/** The runtime as a layer. Plugins come from `options`, or from layers of `ports.<name>.service`. */
export const layer = (options: RuntimeOptions = {}): Layer.Layer<McpRuntime, PluginFailed | InvalidConfig> =>
  Layer.effect(McpRuntime, make(options));
