/**
 * Tools for LangChain (peer dependency `@langchain/core`, 1 or later).
 *
 * ```ts
 * import { langchainTools } from "nucleo-mcp/langchain";
 * const agent = createAgent({ model, tools: await langchainTools(runtime) });
 * ```
 */
import { DynamicStructuredTool } from "@langchain/core/tools";
import type { PromiseRuntime } from "./core/promise.ts";
import { type Remark, writeTools } from "./plugins/schemas/definitions.ts";
import type { SchemaDialect } from "./plugins/schemas/dialect.ts";

/** What is needed of a runtime: the Promise runtime is one. */
export type LangchainToolSource = Pick<PromiseRuntime, "tools" | "callTool" | "modelText">;

export interface LangchainToolsOptions {
  /** The dialect of the model's provider, from `nucleo-mcp/dialects`. Default: schemas as the runtime lists them. */
  readonly dialect?: SchemaDialect | undefined;
  /** Told of each tool that cannot be given to the chosen dialect; the others are not affected. */
  readonly onSkipped?: ((tool: Remark) => void) | undefined;
}

/**
 * All tools of the runtime as LangChain tools. A call answers the text a model reads, with the
 * whole `McpToolResult` as the message's artifact. A tool's own error is text the model reads.
 */
export const langchainTools = async (
  runtime: LangchainToolSource,
  options?: LangchainToolsOptions,
): Promise<Array<DynamicStructuredTool>> => {
  const skip = options?.onSkipped ?? (() => {});
  return writeTools(await runtime.tools(), options?.dialect, skip).map(
    ({ name, description, parameters }) =>
      new DynamicStructuredTool({
        name,
        description,
        schema: parameters as never,
        responseFormat: "content_and_artifact",
        func: async (input: unknown, _manager, config) => {
          const call = { tool: name, arguments: input as Record<string, unknown> };
          const result = await runtime.callTool(call, { signal: config?.signal });
          return [runtime.modelText(result), result];
        },
      }) as unknown as DynamicStructuredTool,
  );
};
