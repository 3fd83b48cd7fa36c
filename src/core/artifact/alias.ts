/** Which class an alias means, and how a payload becomes an artifact again. */
import type { ArtifactType } from "../contracts.ts";
import { PluginFailed } from "../errors.ts";
import { Artifact, ListArtifact } from "./artifact.ts";
import { isRecord } from "./json.ts";
import { aliasLadder, aliasOf, carriedRef, isAlias } from "./ref.ts";
import { walk, type WalkSource } from "./walk.ts";

/** A class of artifacts that can be rebuilt from its wire form. */
export interface ArtifactClass {
  readonly name: string;
  readonly typeAlias: string | undefined;
  /** Answers `undefined`, or throws, when the payload does not fit. `revive` rebuilds artifacts inside it. */
  readonly fromWire: ArtifactType["fromWire"];
}

/** The plugin value of an artifact class, for the port `artifactTypes`. */
export const artifactType = (artifactClass: ArtifactClass): ArtifactType => {
  const alias = artifactClass.typeAlias;
  if (alias === undefined || !isAlias(alias))
    throw new PluginFailed({ plugin: artifactClass.name, reason: "the artifact class has no valid typeAlias" });
  return { alias, fromWire: (payload, revive) => artifactClass.fromWire(payload, revive) };
};

const listType: ArtifactType = {
  alias: "list",
  fromWire: (payload, revive) => {
    const items = payload["items"];
    if (!Array.isArray(items) || !items.every((item) => carriedRef(item) !== undefined)) return undefined;
    return new ListArtifact(items.map((item) => revive(item)));
  },
};

/** Types by alias. `list` and `mcp` are built in. */
export class TypeAliasRegistry {
  readonly #types: ReadonlyMap<string, ArtifactType>;

  constructor(types: Iterable<ArtifactType> = []) {
    const all = [listType, mcpType, ...types];
    this.#types = new Map(all.map((type) => [type.alias, type]));
  }

  /** The types that may stand for an alias, nearest first: its own, then its ancestors', dropping the last segment each time. */
  ladder(alias: string): ReadonlyArray<ArtifactType> {
    return aliasLadder(alias).flatMap((step) => this.#types.get(step) ?? []);
  }

  /** The type of an alias, else of its nearest registered ancestor. */
  resolveWithFallback(alias: string): ArtifactType | undefined {
    return this.ladder(alias)[0];
  }

  /**
   * Rebuilds the artifact of a payload that carries an `artifact_ref`: the exact class,
   * else the nearest ancestor that fits, else a generic artifact. The ref stays as minted.
   */
  revive(payload: unknown, source: WalkSource, diagnose: (problem: string) => void = () => {}): Artifact {
    return this.#revive(payload, source, diagnose, 0);
  }

  #revive(payload: unknown, source: WalkSource, diagnose: (problem: string) => void, depth: number): Artifact {
    const ref = carriedRef(payload);
    const alias = aliasOf(ref);
    if (!isRecord(payload) || ref === undefined || alias === undefined) return walk(payload, source);
    const inner = (part: unknown): Artifact => {
      if (depth >= 16) throw new Error("artifacts are nested too deep");
      return this.#revive(part, source, diagnose, depth + 1);
    };
    for (const type of this.ladder(alias)) {
      const artifact = attempt(type, payload, inner, (problem) => diagnose(`${ref}: ${problem}`));
      if (artifact) return Artifact.adopt(artifact, ref);
    }
    return walk(payload, source);
  }
}

const mcpType: ArtifactType = {
  alias: "mcp",
  fromWire: (payload) => {
    const { data, mcpHandle, toolName } = payload;
    if (data === undefined || typeof mcpHandle !== "string" || typeof toolName !== "string") return undefined;
    return walk(data, { mcpHandle, toolName });
  },
};

const attempt = (
  type: ArtifactType,
  payload: Readonly<Record<string, unknown>>,
  revive: (part: unknown) => Artifact,
  diagnose: (problem: string) => void,
): Artifact | undefined => {
  try {
    const artifact = type.fromWire(payload, revive);
    if (artifact instanceof Artifact) return artifact;
    diagnose(`the payload does not fit the class of '${type.alias}'`);
  } catch (cause) {
    diagnose(
      `the class of '${type.alias}' refused the payload: ${cause instanceof Error ? cause.message : String(cause)}`,
    );
  }
  return undefined;
};
