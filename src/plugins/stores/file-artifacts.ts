/** Keeps artifacts over restarts as files: one per artifact, bounded, the oldest out. */
import type { ArtifactStore } from "../../core/contracts.ts";
import { digest } from "../../core/identity.ts";
import { directoryOf, privateFiles } from "./private-files.ts";

export interface FileArtifactStoreOptions {
  /** Made when it does not exist, mode 0700. Any number of processes may share it; other files in it stay. */
  readonly directory: string;
  /** Files kept; beyond, the oldest go. Default 10,000. */
  readonly maxCount?: number | undefined;
  /** Bytes kept; beyond, the oldest go, but never the newest. Default 1 GiB. */
  readonly maxBytes?: number | undefined;
}

const suffix = ".artifact.json";
/** A digest: refs hold characters that not every file system takes. */
const nameOf = (ref: string): string => digest(ref, 32) + suffix;
/** What a process that was killed left half written goes after this, ms. */
const draftLife = 60 * 60 * 1000;

/**
 * An `ArtifactStore` on files that only their owner can read. What earlier processes
 * left is found again. A file is there whole or not at all; one that was written in the
 * last seconds before the machine itself falls may be lost.
 *
 * Processes that share a directory learn of each other's files from time to time: each
 * of them may exceed the bounds by an eighth meanwhile.
 */
export const fileArtifactStore = (options: FileArtifactStoreOptions): ArtifactStore => {
  const files = privateFiles(directoryOf("fileArtifactStore", options));
  const { maxCount = 10_000, maxBytes = 1024 ** 3 } = options;
  /** Sizes by name, oldest first. */
  let known: Map<string, number> | undefined;
  let bytes = 0;
  /** Written since the directory was last read. */
  let fresh = { count: 0, bytes: 0 };
  let turn: Promise<void> = Promise.resolve();

  const readDirectory = async (): Promise<Map<string, number>> => {
    for (const { name, writtenAt } of await files.list(".tmp"))
      if (name.includes(suffix) && writtenAt < Date.now() - draftLife) await files.remove(name);
    const found = new Map((await files.list(suffix)).map(({ name, size }) => [name, size]));
    bytes = [...found.values()].reduce((sum, size) => sum + size, 0);
    fresh = { count: 0, bytes: 0 };
    return found;
  };

  /** Counts a new file in, and removes the oldest beyond the bounds. */
  const account = async (name: string, size: number): Promise<void> => {
    if (!known || fresh.count * 8 >= maxCount || fresh.bytes * 8 >= maxBytes) known = await readDirectory();
    bytes += size - (known.get(name) ?? 0);
    known.delete(name);
    known.set(name, size);
    fresh.count++;
    fresh.bytes += size;
    for (const [oldest, its] of known) {
      if (known.size <= 1 || (known.size <= maxCount && bytes <= maxBytes)) break;
      known.delete(oldest);
      bytes -= its;
      await files.remove(oldest);
    }
  };

  return {
    put: async (ref, text) => {
      const name = nameOf(ref);
      await files.replace(name, text, { durable: false });
      const size = new TextEncoder().encode(text).length;
      const mine = turn.then(() => account(name, size));
      turn = mine.catch(() => {});
      await mine;
    },
    get: (ref) => files.read(nameOf(ref)),
  };
};
