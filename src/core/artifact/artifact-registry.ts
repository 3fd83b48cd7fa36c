/** Keeps the host's artifacts by ref: bounded by count and bytes, oldest out. */
import * as Effect from "effect/Effect";
import { lift } from "../answer.ts";
import type { ArtifactStore } from "../contracts.ts";
import { TypeAliasRegistry } from "./alias.ts";
import { ArtifactNotFound } from "./artifact-errors.ts";
import { type Artifact, wireText } from "./artifact.ts";
import { isRecord, jsonText, parseJson, sizeWithin } from "./json.ts";
import { McpArtifact } from "./mcp-artifact.ts";

export interface ArtifactRegistryOptions {
  /** Default 10,000 artifacts; their parts do not count. */
  readonly maxCount?: number | undefined;
  /** Bytes as JSON. Default 256 MiB. The newest artifact is kept even when it alone is larger. */
  readonly maxBytes?: number | undefined;
  /** Gets what is pushed out. Default: none, it is gone. */
  readonly store?: ArtifactStore | undefined;
  /** Rebuilds what comes back from the store. Default: generic artifacts. */
  readonly types?: TypeAliasRegistry | undefined;
}

interface Entry {
  readonly artifact: Artifact;
  readonly origin: string;
  readonly bytes: number;
}

/** Bytes as JSON; what is too deep to measure, or endless, counts as one largest message. */
const bytesOf = (artifact: Artifact, limit: number): number => {
  const known = artifact instanceof McpArtifact ? artifact.size : undefined;
  return known ?? sizeWithin(artifact.root(), limit, 300_000) ?? Math.min(limit, 64 * 1024 * 1024);
};

/** Artifacts of an entry whose ref somebody knows: nobody can ask for the others. */
const known = (entry: Entry): ReadonlyArray<Artifact> =>
  [entry.artifact, ...entry.artifact.parts()].filter((artifact) => artifact.knownRef !== undefined);

/**
 * Artifacts by ref. Keeping one costs no digest: refs are minted when first shown, and
 * looked up by the refs that were. A ref belongs to the origin that first kept it;
 * another origin that claims it cannot replace what is there.
 */
export class ArtifactRegistry {
  readonly #entries = new Map<Artifact, Entry>();
  readonly #found = new Map<string, Artifact>();
  readonly #options: ArtifactRegistryOptions;
  readonly #maxCount: number;
  readonly #maxBytes: number;
  #bytes = 0;

  constructor(options: ArtifactRegistryOptions = {}) {
    this.#options = options;
    this.#maxCount = options.maxCount ?? 10_000;
    this.#maxBytes = options.maxBytes ?? 256 * 1024 * 1024;
  }

  /** Artifacts kept, without their parts. */
  get count(): number {
    return this.#entries.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  has(artifact: Artifact): boolean {
    return this.#entries.has(artifact);
  }

  /** Keeps an artifact and its parts. `origin` names who made it, for example an endpoint id. Never fails. */
  keep(artifact: Artifact, origin: string = ""): Effect.Effect<void> {
    return Effect.suspend(() => {
      const out = this.#add({ artifact, origin, bytes: bytesOf(artifact, this.#maxBytes) });
      const { store } = this.#options;
      return store === undefined || out.length === 0
        ? Effect.void
        : Effect.forEach(out, (entry) => spill(store, entry), { discard: true });
    });
  }

  /** The artifact of a ref, if it is in memory. */
  get(ref: string): Artifact | undefined {
    const found = this.#found.get(ref);
    if (found) return found;
    let owner: string | undefined;
    let newest: Artifact | undefined;
    for (const entry of this.#entries.values()) {
      if (owner !== undefined && entry.origin !== owner) continue;
      const match = known(entry).find((artifact) => artifact.knownRef === ref);
      if (!match) continue;
      owner = entry.origin;
      newest = match;
    }
    if (newest) this.#found.set(ref, newest);
    return newest;
  }

  /** The artifact of a ref, from memory or from the store. Fails with `ArtifactNotFound`. */
  find(ref: string): Effect.Effect<Artifact, ArtifactNotFound> {
    return Effect.suspend(() => {
      const artifact = this.get(ref);
      if (artifact) return Effect.succeed(artifact);
      const { store } = this.#options;
      const missing = new ArtifactNotFound({ ref });
      if (!store) return Effect.fail(missing);
      return lift("artifactStore", () => store.get(ref)).pipe(
        Effect.mapError((cause) => new ArtifactNotFound({ ref }, cause)),
        Effect.flatMap((text) => (text === undefined ? Effect.fail(missing) : this.#restore(ref, text))),
      );
    });
  }

  #restore(ref: string, text: string): Effect.Effect<Artifact, ArtifactNotFound> {
    const stored = parseJson(text);
    if (!isRecord(stored) || !isRecord(stored["wire"]) || stored["wire"]["artifact_ref"] !== ref)
      return Effect.fail(new ArtifactNotFound({ ref }));
    const types = this.#options.types ?? new TypeAliasRegistry();
    const artifact = types.revive(stored["wire"], { mcpHandle: "", toolName: "" });
    return Effect.as(this.keep(artifact, String(stored["origin"])), artifact);
  }

  #add(entry: Entry): ReadonlyArray<Entry> {
    const out: Array<Entry> = [];
    const drop = (old: Entry): void => {
      this.#entries.delete(old.artifact);
      this.#bytes -= old.bytes;
    };
    const before = this.#entries.get(entry.artifact);
    if (before) drop(before);
    this.#entries.set(entry.artifact, entry);
    this.#bytes += entry.bytes;
    this.#found.clear();
    while (this.#entries.size > 1 && (this.#entries.size > this.#maxCount || this.#bytes > this.#maxBytes)) {
      const oldest = this.#entries.values().next().value!;
      drop(oldest);
      out.push(oldest);
    }
    return out;
  }
}

/** Writes what others may still ask for to the store. A store that fails costs the artifact, not the call. */
const spill = (store: ArtifactStore, entry: Entry): Effect.Effect<void> =>
  Effect.forEach(
    known(entry),
    (artifact) => {
      const text = `{"origin":${jsonText(entry.origin)},"wire":${wireText(artifact)}}`;
      return lift("artifactStore", () => store.put(artifact.ref, text));
    },
    { discard: true },
  ).pipe(Effect.catchCause((cause) => Effect.logDebug("An artifact could not be stored", cause)));
