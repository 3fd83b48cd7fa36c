/**
 * Tools for model providers: ready definitions, and the schema dialects behind them.
 *
 * ```ts
 * import { createRuntime } from "nucleo-mcp";
 * import { toolsFor } from "nucleo-mcp/dialects";
 *
 * const { tools } = await toolsFor(runtime, "anthropic");
 * const message = await client.messages.create({ model, max_tokens, messages, tools });
 * ```
 *
 * A dialect is also a plugin: `setup: (c) => c.register(ports.schemaNormalizers.token, { useValue: openaiStrict })`
 * makes every tool the runtime lists fit that provider.
 */
import type { ToolDefinition } from "./core/catalog.ts";
import {
  defineTools,
  type DefinedTools,
  type DefineOptions,
  type ToolFormat,
  type ToolFormats,
} from "./plugins/schemas/definitions.ts";

export { anthropic } from "./plugins/schemas/anthropic.ts";
export * from "./plugins/schemas/definitions.ts";
export type { Problem, SchemaDialect } from "./plugins/schemas/dialect.ts";
export { gemini } from "./plugins/schemas/gemini.ts";
export { inlineRefs } from "./plugins/schemas/inline-refs.ts";
export { openaiStrict } from "./plugins/schemas/openai-strict.ts";
export { openai } from "./plugins/schemas/openai.ts";

/** What is needed of a runtime: the Promise runtime is one. */
export interface ToolSource {
  readonly tools: () => Promise<ReadonlyArray<ToolDefinition>>;
}

/**
 * The tools of all attached servers as a provider's request wants them. Give the model's
 * calls to `runtime.callTool` under the names and with the arguments as they come.
 */
export const toolsFor = async <F extends ToolFormat>(
  source: ToolSource,
  format: F,
  options?: DefineOptions,
): Promise<DefinedTools<ToolFormats[F]>> => defineTools(await source.tools(), format, options);
