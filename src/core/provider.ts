/** Remote tools that can be turned into callables; built from what a server lists. */
import { isRecord } from "./artifact/json.ts";
import type * as Effect from "effect/Effect";
import type { Adapter } from "./adapter.ts";
import type { AcquireError, ArgumentIssue } from "./errors.ts";
import { SchemaRejected } from "./errors.ts";
import type { JsonSchema, SchemaNormalizer } from "./contracts.ts";
import type { McpTool } from "./client.ts";
import type { McpEndpoint } from "./endpoint.ts";
import { exposedName } from "./tool-name.ts";

/** A check of a value against a schema; empty means it fits. */
export type Check = (value: unknown) => ReadonlyArray<ArgumentIssue>;

/** One remote tool. */
export interface Provider {
  /** Name for models; the catalog may rename it where policies or clashes ask for it. */
  readonly name: string;
  readonly handle: string;
  /** The server's own name of the tool. */
  readonly tool: string;
  readonly title: string | undefined;
  readonly description: string | undefined;
  /** Normalized, for models. */
  readonly inputSchema: JsonSchema;
  /** The tool as the server sent it; arguments are checked against its schema. */
  readonly raw: McpTool;
  readonly endpoint: McpEndpoint;
  readonly diagnostics: ReadonlyArray<string>;
  /** Makes an adapter against the client that is live at that moment. */
  readonly create: () => Effect.Effect<Adapter, AcquireError>;
}

/** A tool that cannot be offered, and why. */
export interface SkippedTool {
  readonly tool: string;
  readonly reason: string;
}

export interface BuiltProviders {
  readonly providers: ReadonlyArray<Provider>;
  readonly skipped: ReadonlyArray<SkippedTool>;
}

const reasonOf = (cause: unknown): string => {
  if (cause instanceof SchemaRejected) return `its input schema cannot be used: ${cause.reason}`;
  return cause instanceof Error ? cause.message : `it could not be read: ${String(cause)}`;
};

/** Builds a provider from every usable item; each unusable one is set aside with its reason. */
export const buildProviders = (
  items: ReadonlyArray<unknown>,
  handle: string,
  endpoint: McpEndpoint,
  normalizers: ReadonlyArray<SchemaNormalizer>,
  create: (provider: Provider) => Effect.Effect<Adapter, AcquireError>,
): BuiltProviders => {
  const providers = new Map<string, Provider>();
  const skipped: Array<SkippedTool> = [];
  for (const [i, item] of items.entries()) {
    const tool = isRecord(item) ? item["name"] : undefined;
    if (!isRecord(item) || typeof tool !== "string" || tool === "") {
      skipped.push({ tool: `(item ${i})`, reason: "it is no object with a name" });
      continue;
    }
    if (providers.has(tool)) {
      skipped.push({ tool, reason: "the server lists another tool of the same name before it" });
      continue;
    }
    try {
      const raw = item as McpTool;
      const diagnostics: Array<string> = [];
      const notes: Array<string> = [];
      let schema: unknown = raw.inputSchema;
      for (const normalizer of normalizers) {
        const normalized = normalizer.normalize(schema, { name: tool });
        schema = normalized.schema;
        diagnostics.push(...normalized.diagnostics);
        if (normalized.note) notes.push(normalized.note);
      }
      const description = [typeof raw.description === "string" ? raw.description : "", ...notes].filter(Boolean);
      const provider: Provider = {
        name: exposedName(handle, tool),
        handle,
        tool,
        title: typeof raw.title === "string" ? raw.title : undefined,
        description: description.length > 0 ? description.join("\n\n") : undefined,
        inputSchema: schema as JsonSchema,
        raw,
        endpoint,
        diagnostics,
        create: () => create(provider),
      };
      providers.set(tool, provider);
    } catch (cause) {
      skipped.push({ tool, reason: reasonOf(cause) });
    }
  }
  return { providers: [...providers.values()], skipped };
};
