/**
 * nucleo-mcp for Promise hosts.
 *
 * ```ts
 * import { createRuntime, StdioEndpoint } from "nucleo-mcp";
 *
 * await using runtime = await createRuntime();
 * await runtime.attach("files", new StdioEndpoint({ name: "files", command: "npx", args: ["-y", "server", "."] }));
 * const result = await runtime.callTool({ tool: "files__read_file", arguments: { path: "a.txt" } });
 * console.log(result.textContent);
 * ```
 */
import { createPromiseRuntime, type PromiseRuntime } from "./core/promise.ts";
import type { RuntimeOptions } from "./core/runtime.ts";
import { defaults } from "./defaults.ts";

export type {
  PromiseAdapter as Adapter,
  PromiseCallOptions as CallOptions,
  PromiseClient as McpClient,
  PromiseConnector as McpConnector,
  PromiseProvider as Provider,
  PromiseRequestOptions as RequestOptions,
  PromiseRuntime as McpRuntime,
} from "./core/promise.ts";
export type { ToolCall } from "./core/call.ts";
export type { ToolDefinition } from "./core/catalog.ts";
export type { McpTool } from "./core/client.ts";
export type { ConnectorStatus } from "./core/connector.ts";
export type { AttachOptions } from "./core/connector-registry.ts";
export * from "./core/endpoint.ts";
export * from "./core/errors.ts";
export type { McpEvent } from "./core/events.ts";
export type { ConnectorHealth, EndpointHealth, HealthSnapshot } from "./core/health.ts";
export type { QuarantinedTool } from "./core/pinning/quarantine.ts";
export * as ports from "./core/ports.ts";
export { McpToolResult, modelText } from "./core/results.ts";
export type { RuntimeOptions } from "./core/runtime.ts";
export type { McpSettings, McpSettingsInput } from "./core/settings.ts";
export * from "./plugins/credentials/credentials.ts";
export { InMemoryEndpoint } from "./transports/in-memory.ts";
export { WebSocketEndpoint } from "./transports/websocket.ts";

/**
 * Builds a runtime. Close it with `await using` or `close()`: then every client is
 * closed and every subprocess gone.
 *
 * @throws PluginFailed when plugins are registered wrongly (every fault at once),
 * InvalidConfig when a setting cannot be used.
 */
export const createRuntime = (options: RuntimeOptions = {}): Promise<PromiseRuntime> =>
  createPromiseRuntime(options, defaults);
