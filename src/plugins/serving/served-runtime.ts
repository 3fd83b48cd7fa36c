/** What serving needs of a runtime and of its host. */
import type * as Duration from "effect/Duration";
import type { Answer } from "../../core/answer.ts";
import type { Implementation, JsonSchema, Progress, SchemaValidator } from "../../core/contracts.ts";
import type { PromiseRuntime } from "../../core/promise.ts";

/** As much of a runtime as is served. */
export type ServedRuntime = Pick<PromiseRuntime, "tools" | "callTool" | "client" | "connectors" | "settings">;

export interface HostToolContext {
  /** Aborted when the client cancels or goes away. */
  readonly signal: AbortSignal;
  readonly onProgress: (progress: Progress) => void;
}

/** A tool of the host itself, offered to the clients of the gateway. */
export interface HostTool {
  /** As clients see it; no attached server's tool has a name without `__`. */
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Arguments are checked against it. */
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: JsonSchema | undefined;
  readonly annotations?: Readonly<Record<string, unknown>> | undefined;
  /**
   * Answers an artifact, a list of artifacts, a text, an `McpToolResult`, or any JSON.
   * A failure becomes an error result that the model reads.
   */
  readonly run: (args: Readonly<Record<string, unknown>>, context: HostToolContext) => Answer<unknown, Error>;
}

export interface ServingOptions {
  /** Tools of the host, beside those of the attached servers. */
  readonly tools?: ReadonlyArray<HostTool> | undefined;
  /**
   * For clients whose models cannot take large results: those above 8 KiB are answered
   * within that, with a ref, and the tool `get_artifact_field` pages through the rest;
   * tools promise no structured content then. With an `artifactStore` the refs hold over
   * restarts. Default false: every result is passed on whole.
   */
  readonly artifacts?: boolean | undefined;
  /** How the gateway introduces itself to its clients. Default: `nucleo-mcp-gateway`. */
  readonly serverInfo?: Implementation | undefined;
  readonly instructions?: string | undefined;
  /** Items on one page of a list. Default 1,000, because many clients read the first page only. */
  readonly pageSize?: number | undefined;
  /**
   * How long a client waits for the lists of slow servers. It then gets what is there,
   * and is told when the rest has come. Default 5 s.
   */
  readonly listPatience?: Duration.Input | undefined;
  /**
   * Silence after which a call is given up. Default: the setting `maxTotalTimeout`,
   * because a client has its own patience and cancels.
   */
  readonly callTimeout?: Duration.Input | undefined;
  /**
   * How long a call waits for a client of 2026-07-28 to come back with the answer to a
   * server's question. Then the call is cancelled. Default 10 min.
   */
  readonly inputPatience?: Duration.Input | undefined;
  /** How long clients of 2026-07-28 may keep a complete list without asking again. Default 30 s. */
  readonly listTtl?: Duration.Input | undefined;
}

/** How the gateway introduces itself, whatever revision it is asked in. */
export interface Introduction {
  readonly serverInfo: Implementation;
  readonly capabilities: {
    readonly tools: { readonly listChanged: true };
    readonly resources: { readonly listChanged: true; readonly subscribe: true };
    readonly prompts: { readonly listChanged: true };
    readonly completions: {};
    readonly logging: {};
  };
  readonly instructions?: string;
}

export const introduction = ({ serverInfo, instructions }: ServingOptions): Introduction => ({
  serverInfo: serverInfo ?? { name: "nucleo-mcp-gateway", version: "0.1.0" },
  capabilities: {
    tools: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    prompts: { listChanged: true },
    completions: {},
    logging: {},
  },
  ...(instructions !== undefined && { instructions }),
});

/** What serving takes from the place that puts it together. */
export interface ServingDeps {
  readonly validator: SchemaValidator;
}
