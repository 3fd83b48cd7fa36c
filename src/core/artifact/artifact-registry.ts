/** Keeps the host's artifacts by ref: bounded by count and bytes, oldest out. */
import * as Effect from "effect/Effect";
import type { ArtifactArchive } from "./artifact-archive.ts";
import { ArtifactNotFound } from "./artifact-errors.ts";
import { Artifact } from "./artifact.ts";
import { sizeWithin } from "./json.ts";
import { McpArtifact } from "./mcp-artifact.ts";

export interface ArtifactRegistryOptions {
  /** Default 10,000 artifacts; their parts do not count. */
  readonly maxCount?: number | undefined;
  /** Bytes as JSON. Default 256 MiB. The newest artifact is kept even when it alone is larger. */
  readonly maxBytes?: number | undefined;
  /** Keeps what leaves memory, and everything over restarts. Default: none, it is gone. */
  readonly archive?: Pick<ArtifactArchive, "write" | "find" | "settled"> | undefined;
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

/** An entry's artifact and its parts. */
const allOf = ({ artifact }: Entry): ReadonlyArray<Artifact> => [artifact, ...artifact.parts()];

const isKnown = (artifact: Artifact): boolean => artifact.knownRef !== undefined;

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

  /**
   * Keeps an artifact and its parts. `origin` names who made it, for example an endpoint
   * id. Never fails. Waits only where memory is full and the archive is behind.
   */
  keep(artifact: Artifact, origin: string = ""): Effect.Effect<void> {
    return Effect.suspend(() => this.#keep({ artifact, origin, bytes: bytesOf(artifact, this.#maxBytes) }, false));
  }

  /** The artifact of a ref, if it is in memory. */
  get(ref: string): Artifact | undefined {
    const found = this.#found.get(ref);
    if (found) return found;
    let owner: string | undefined;
    let newest: Artifact | undefined;
    for (const entry of this.#entries.values()) {
      if (owner !== undefined && entry.origin !== owner) continue;
      const match = allOf(entry).find((artifact) => artifact.knownRef === ref);
      if (!match) continue;
      owner = entry.origin;
      newest = match;
    }
    if (newest) this.#found.set(ref, newest);
    return newest;
  }

  /** The artifact of a ref, from memory or from the archive. Fails with `ArtifactNotFound`. */
  find(ref: string): Effect.Effect<Artifact, ArtifactNotFound> {
    return Effect.suspend(() => {
      const kept = this.get(ref);
      if (kept) return Effect.succeed(kept);
      const { archive } = this.#options;
      if (!archive) return Effect.fail(new ArtifactNotFound({ ref }));
      return Effect.flatMap(archive.find(ref), ({ artifact, origin }) =>
        Effect.as(this.#keep({ artifact, origin, bytes: bytesOf(artifact, this.#maxBytes) }, true), artifact),
      );
    });
  }

  /** What is archived already is written again only where it gets refs that nobody knew. */
  #keep(entry: Entry, archived: boolean): Effect.Effect<void> {
    const out = this.#add(entry);
    const { archive } = this.#options;
    if (!archive) return Effect.void;
    for (const artifact of allOf(entry)) {
      if (!isKnown(artifact)) Artifact.onRef(artifact, () => archive.write(artifact, entry.origin));
      else if (!archived) archive.write(artifact, entry.origin);
    }
    return out.length === 0 ? Effect.void : archive.settled(out.flatMap(allOf).filter(isKnown));
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
