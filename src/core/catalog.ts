/** All tools of all attached servers, by the names models see. */
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { CatalogPolicies } from "./catalog-policies.ts";
import type { ConnectorState } from "./connector.ts";
import type { JsonSchema } from "./contracts.ts";
import type { ConnectorRegistry } from "./connector-registry.ts";
import { endpointName } from "./endpoint.ts";
import { type AcquireError, type RequestError, ToolNotFound, type ToolQuarantined } from "./errors.ts";
import { digest } from "./identity.ts";
import { quarantineError } from "./pinning/quarantine.ts";
import type { HeldTool } from "./pinning/tool-shelf.ts";
import type { Provider } from "./provider.ts";
import { exposedName, toolNameMax } from "./tool-name.ts";

/** A tool as a model is shown it. */
export interface ToolDefinition {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: JsonSchema;
  readonly outputSchema?: unknown;
  readonly annotations?: Readonly<Record<string, unknown>>;
  readonly handle: string;
  /** The server's own name of the tool. */
  readonly tool: string;
}

export interface Catalog {
  /**
   * Exposed name to provider; asks servers not listed yet and those whose list changed.
   * A server that takes longer than `within` is answered with its last good list.
   */
  readonly entries: (within?: Duration.Input) => Effect.Effect<ReadonlyMap<string, Provider>>;
  /** The provider of that name in the lists at hand, without I/O. */
  readonly known: (name: string) => Provider | undefined;
  /** Without I/O when the name is known; else lists once and tries again. */
  readonly resolve: (
    name: string,
  ) => Effect.Effect<Provider, ToolNotFound | ToolQuarantined | AcquireError | RequestError>;
}

export const toDefinition = (name: string, provider: Provider): ToolDefinition => {
  const { title, description, inputSchema, raw, handle, tool } = provider;
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema,
    ...(raw.outputSchema !== undefined && { outputSchema: raw.outputSchema }),
    ...(raw.annotations !== undefined && { annotations: raw.annotations }),
    handle,
    tool,
  };
};

type Decide = CatalogPolicies["decide"];

/** Names that several servers claim get a digest of the endpoint id each, so none depends on the order. */
const named = (decide: Decide, providers: ReadonlyArray<Provider>): Map<string, Provider> => {
  const claims = new Map<string, Array<Provider>>();
  for (const provider of providers) {
    const name = decide(provider);
    if (name !== undefined) claims.set(name, [...(claims.get(name) ?? []), provider]);
  }
  const entries = new Map<string, Provider>();
  for (const [name, claimants] of claims) {
    for (const provider of claimants) {
      const mark = `_${digest(provider.endpoint.endpointId + provider.handle + provider.tool, 8)}`;
      entries.set(claimants.length === 1 ? name : name.slice(0, toolNameMax - mark.length) + mark, provider);
    }
  }
  return entries;
};

/** The tools by their names: those offered, and those held back. */
interface Index {
  readonly offered: ReadonlyMap<string, Provider>;
  readonly held: ReadonlyMap<string, HeldTool>;
}

/** A tool that changed keeps its claim on its name, so that its neighbours keep theirs; a new one has none yet. */
const index = (decide: Decide, connectors: ReadonlyArray<ConnectorState>): Index => {
  const held = new Map(connectors.flatMap((one) => one.held()).map((tool) => [tool.provider, tool]));
  if (held.size === 0)
    return {
      offered: named(
        decide,
        connectors.flatMap((connector) => connector.current()),
      ),
      held: new Map(),
    };
  const isNew = ({ quarantined }: HeldTool): boolean => quarantined.change === "new";
  const claimants = connectors.flatMap((connector) => [
    ...connector.current(),
    ...connector.held().flatMap((tool) => (isNew(tool) ? [] : [tool.provider])),
  ]);
  const entries = [...named(decide, claimants)];
  const newcomers = [...held.values()].filter(isNew).map(({ provider }) => provider);
  return {
    offered: new Map(entries.filter(([, provider]) => !held.has(provider))),
    held: new Map(
      [...named(decide, newcomers), ...entries].flatMap(([name, provider]) => {
        const tool = held.get(provider);
        return tool ? [[name, tool] as const] : [];
      }),
    ),
  };
};

const similarity = (a: string, b: string): number => {
  const words = new Set(a.toLowerCase().split(/[^a-z0-9]+/));
  return b
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => words.has(word)).length;
};

const handlePrefix = (handle: string): string => exposedName(handle, "").split("__")[0]!;

export const makeCatalog = (registry: ConnectorRegistry, decide: Decide): Catalog => {
  let version = -1;
  let known: Index = { offered: new Map(), held: new Map() };

  /** Of the lists at hand, without I/O; kept while none of them changed. */
  const current = (): Index => {
    if (version !== registry.version()) {
      version = registry.version();
      known = index(decide, registry.connectors());
    }
    return known;
  };

  const list = (connectors: ReadonlyArray<ConnectorState>, within?: Duration.Input): Effect.Effect<void> =>
    Effect.forEach(
      connectors,
      (connector): Effect.Effect<unknown> =>
        within === undefined ? connector.providers() : Effect.timeoutOption(connector.providers(), within),
      { concurrency: "unbounded", discard: true },
    );

  const find = (name: string): Effect.Effect<Provider | undefined, ToolQuarantined> =>
    Effect.suspend(() => {
      const { offered, held } = current();
      const tool = offered.has(name) ? undefined : held.get(name);
      if (!tool) return Effect.succeed(offered.get(name));
      return Effect.fail(quarantineError(name, endpointName(tool.provider.endpoint), tool.quarantined));
    });

  const notFound = (name: string): ToolNotFound => {
    const ranked = [...current().offered.keys()].map((other) => ({ other, score: similarity(name, other) }));
    const similar = ranked.filter(({ score }) => score > 0).toSorted((a, b) => b.score - a.score);
    return new ToolNotFound({ tool: name, similar: similar.slice(0, 5).map(({ other }) => other) });
  };

  return {
    known: (name) => current().offered.get(name),
    entries: (within) => Effect.map(list(registry.connectors(), within), () => current().offered),
    resolve: (name) =>
      Effect.suspend(() => {
        const hit = current().offered.get(name);
        if (hit) return Effect.succeed(hit);
        // First only the servers whose handle the name begins with: a hanging one delays no other.
        const likely = registry.connectors().filter(({ handle }) => name.startsWith(handlePrefix(handle)));
        return Effect.gen(function* () {
          yield* list(likely);
          const first = yield* find(name);
          if (first) return first;
          yield* list(registry.connectors().filter((connector) => !likely.includes(connector)));
          const second = yield* find(name);
          if (second) return second;
          // A tool of a server that cannot be listed is not missing: its server is.
          const broken = likely.find((connector) => connector.status.state === "failed")?.status.error;
          return yield* broken ?? notFound(name);
        });
      }),
  };
};
