/**
 * Tools for the Vercel AI SDK (peer dependency `ai`, 6 or later).
 *
 * ```ts
 * import { aiTools } from "nucleo-mcp/ai-sdk";
 * const { text } = await generateText({ model, prompt, tools: await aiTools(runtime) });
 * ```
 */
import { dynamicTool, jsonSchema, type JSONSchema7, type ToolSet } from "ai";
import type { PromiseRuntime } from "./core/promise.ts";
import type { McpToolResult } from "./core/results.ts";
import { type Remark, writeTools } from "./plugins/schemas/definitions.ts";
import type { SchemaDialect } from "./plugins/schemas/dialect.ts";

/** What is needed of a runtime: the Promise runtime is one. */
export type AiToolSource = Pick<PromiseRuntime, "tools" | "callTool" | "modelText">;

export interface AiToolsOptions {
  /** The dialect of the model's provider, from `nucleo-mcp/dialects`. Default: schemas as the runtime lists them. */
  readonly dialect?: SchemaDialect | undefined;
  /** Told of each tool that cannot be given to the chosen dialect; the others are not affected. */
  readonly onSkipped?: ((tool: Remark) => void) | undefined;
}

/**
 * All tools of the runtime as a `ToolSet`. A call runs with the SDK's abort signal. The model
 * reads what the runtime shows a model; a tool's own error is an error the model reads.
 */
export const aiTools = async (runtime: AiToolSource, options?: AiToolsOptions): Promise<ToolSet> => {
  const tools: ToolSet = {};
  const skip = options?.onSkipped ?? (() => {});
  for (const { name, description, parameters } of writeTools(await runtime.tools(), options?.dialect, skip)) {
    tools[name] = dynamicTool({
      description,
      inputSchema: jsonSchema(parameters as JSONSchema7),
      execute: (input, { abortSignal }) =>
        runtime.callTool({ tool: name, arguments: input as Record<string, unknown> }, { signal: abortSignal }),
      toModelOutput: ({ output }) => {
        const result = output as McpToolResult;
        return { type: result.isError ? "error-text" : "text", value: runtime.modelText(result) };
      },
    });
  }
  return tools;
};
