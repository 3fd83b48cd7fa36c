/** A remote tool as a callable: what a model's tool call runs. */
import type * as Effect from "effect/Effect";
import type { RequestOptions } from "./client.ts";
import type { Demand } from "./contracts.ts";
import type { CallError, ToolFailed } from "./errors.ts";
import type { McpToolResult } from "./results.ts";

/** Options of one tool call. */
export interface CallOptions extends RequestOptions {
  /** Fail with `ToolFailed` where the result says `isError`. Default: the result is answered. */
  readonly failOnToolError?: boolean | undefined;
}

export interface Adapter {
  readonly name: string;
  /** What one call needs of the gates. */
  readonly requirements: Demand;
  /** Checks the input, admits, calls, releases, converts. Takes a live client from the pool each time. */
  readonly execute: (
    input?: Readonly<Record<string, unknown>>,
    options?: CallOptions,
  ) => Effect.Effect<McpToolResult, CallError | ToolFailed>;
}
