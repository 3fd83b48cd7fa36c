/** From a raw result to what models and programs get; large parts stay reachable as artifacts. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { lift } from "./answer.ts";
import { Artifact } from "./artifact/artifact.ts";
import { TypeAliasRegistry } from "./artifact/alias.ts";
import { makeArtifactArchive } from "./artifact/artifact-archive.ts";
import { artifactFieldTool, getArtifactField } from "./artifact/artifact-field.ts";
import type { ArtifactNotFound, PointerUnresolved } from "./artifact/artifact-errors.ts";
import { McpArtifact } from "./artifact/mcp-artifact.ts";
import { ArtifactRegistry } from "./artifact/artifact-registry.ts";
import type { ToolDefinition } from "./catalog.ts";
import type {
  ArtifactRehydrator,
  ArtifactStore,
  ArtifactType,
  RawToolResult,
  ResultNormalizer,
  ResultSource,
} from "./contracts.ts";
import { type InvalidArguments, PluginFailed } from "./errors.ts";
import type { Provider } from "./provider.ts";
import { makeToolResult, type McpToolResult, modelText } from "./results.ts";
import type { McpSettings } from "./settings.ts";

export interface PresentationDeps {
  readonly rehydrators: ReadonlyArray<ArtifactRehydrator>;
  readonly normalizer: ResultNormalizer;
  readonly artifactTypes: ReadonlyArray<ArtifactType>;
  readonly artifactStore: ArtifactStore | undefined;
  readonly settings: Pick<McpSettings, "artifactsMax" | "artifactBytesMax">;
  /** `origin` is the endpoint id of the server that it is about; empty for the host's own artifacts. */
  readonly onDiagnostic: (origin: string, message: string) => void;
}

export interface Presentation {
  /** Rehydrators in order, else the normalizer. An artifact is kept whole before anything is shown of it. */
  readonly present: (provider: Provider, raw: RawToolResult) => Effect.Effect<McpToolResult, PluginFailed>;
  /** What a model reads of a result, within its budget; the rest is reachable by `get_artifact_field`. */
  readonly modelText: (result: McpToolResult, budget?: number) => string;
  /** The tool `get_artifact_field`, as a definition and as its answer to a call. */
  readonly fieldTool: ToolDefinition;
  readonly readField: (
    args: unknown,
  ) => Effect.Effect<McpToolResult, InvalidArguments | ArtifactNotFound | PointerUnresolved>;
  readonly artifacts: ArtifactRegistry;
}

/** Small, without parts or summaries: nobody will have to ask for the rest of it. */
const isShownWhole = (artifact: Artifact): boolean =>
  artifact instanceof McpArtifact &&
  artifact.size !== undefined &&
  artifact.size <= 1024 &&
  artifact.knownRef === undefined;

const toPluginFailed = (plugin: string, cause: unknown): PluginFailed =>
  new PluginFailed({ plugin, reason: String(cause) }, cause);

/** When the scope closes, what is not yet in the store is written to it. */
export const makePresentation = (deps: PresentationDeps): Effect.Effect<Presentation, never, Scope.Scope> => {
  const types = new TypeAliasRegistry(deps.artifactTypes);
  const { artifactStore: store, onDiagnostic, settings } = deps;
  const bounds = { maxCount: settings.artifactsMax, maxBytes: settings.artifactBytesMax };
  if (!store) return Effect.succeed(presentationWith(deps, types, new ArtifactRegistry(bounds)));
  const diagnose = (message: string, origin: string): void => onDiagnostic(origin, message);
  return Effect.map(makeArtifactArchive({ store, types, diagnose }), (archive) =>
    presentationWith(deps, types, new ArtifactRegistry({ ...bounds, archive })),
  );
};

const presentationWith = (
  deps: PresentationDeps,
  types: TypeAliasRegistry,
  artifacts: ArtifactRegistry,
): Presentation => {
  const keep = (raw: RawToolResult, made: unknown, source: ResultSource): Effect.Effect<McpToolResult> => {
    const result = makeToolResult(raw, made);
    return made instanceof Artifact && !isShownWhole(made)
      ? Effect.as(artifacts.keep(made, source.endpointId), result)
      : Effect.succeed(result);
  };

  return {
    present: (provider, raw) => {
      const source: ResultSource = {
        handle: provider.handle,
        tool: provider.tool,
        endpointId: provider.endpoint.endpointId,
        types,
        diagnose: (message) =>
          deps.onDiagnostic(provider.endpoint.endpointId, `result of '${provider.tool}': ${message}`),
      };
      const from = (i: number): Effect.Effect<McpToolResult, PluginFailed> => {
        const rehydrator = deps.rehydrators[i];
        if (rehydrator) {
          const asked = lift<unknown, PluginFailed>("rehydrator", () => rehydrator.rehydrate(raw, source));
          return Effect.flatMap(asked, (made) => (made === undefined ? from(i + 1) : keep(raw, made, source)));
        }
        try {
          return keep(raw, deps.normalizer.normalize(raw, source), source);
        } catch (cause) {
          return Effect.fail(toPluginFailed("result normalizer", cause));
        }
      };
      return from(0);
    },
    modelText: (result, budget) => modelText(result, { artifacts, budget }),
    fieldTool: { ...artifactFieldTool, handle: "", tool: artifactFieldTool.name },
    readField: (args) =>
      Effect.map(getArtifactField(artifacts, args ?? {}), (page) => {
        const raw: RawToolResult = { content: [{ type: "text", text: JSON.stringify(page) }], isError: false };
        return makeToolResult(raw, page);
      }),
    artifacts,
  };
};
