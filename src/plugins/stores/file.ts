/** Keeps artifacts that left memory as files: one per artifact, private, replaced at once or not at all. */
import * as Effect from "effect/Effect";
import type { FileSystem } from "effect/FileSystem";
import * as Option from "effect/Option";
import { asMcpError } from "../../core/answer.ts";
import type { ArtifactStore } from "../../core/contracts.ts";
import { digest } from "../../core/identity.ts";

export interface FileArtifactStoreOptions {
  /** The host's file system, for example of `@effect/platform-node-shared/NodeFileSystem`. */
  readonly fileSystem: FileSystem;
  /** Made when it does not exist, mode 0700. Used by this store alone. */
  readonly directory: string;
  /** Files kept; beyond, the oldest go. Default 10,000. */
  readonly maxCount?: number | undefined;
  /** Bytes kept; beyond, the oldest go. Default 1 GiB. */
  readonly maxBytes?: number | undefined;
}

const suffix = ".artifact.json";
/** A digest: refs hold characters that not every file system takes. */
const nameOf = (ref: string): string => digest(ref, 32) + suffix;

/** An `ArtifactStore` on files. What an earlier process left in the directory is found again. */
export const fileArtifactStore = (options: FileArtifactStoreOptions): ArtifactStore => {
  const { fileSystem: fs, directory } = options;
  const maxCount = options.maxCount ?? 10_000;
  const maxBytes = options.maxBytes ?? 1024 ** 3;
  /** Sizes by file name, oldest first. */
  let files: Map<string, number> | undefined;
  let bytes = 0;
  let turn = 0;

  const path = (name: string): string => `${directory}/${name}`;

  const list = Effect.gen(function* () {
    yield* fs.makeDirectory(directory, { recursive: true, mode: 0o700 });
    const names = (yield* fs.readDirectory(directory)).filter((name) => name.endsWith(suffix));
    // A file that another process removes meanwhile is just not there.
    const sized = (name: string) =>
      Effect.option(Effect.map(fs.stat(path(name)), (info) => ({ name, size: Number(info.size), at: info.mtime })));
    const found = (yield* Effect.forEach(names, sized, { concurrency: 8 })).flatMap(Option.toArray);
    found.sort((a, b) => mtime(a.at) - mtime(b.at));
    return new Map(found.map((file) => [file.name, file.size]));
  });

  const trim = (known: Map<string, number>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const out: Array<string> = [];
      for (const [name, size] of known) {
        if (known.size <= 1 || (known.size <= maxCount && bytes <= maxBytes)) break;
        known.delete(name);
        bytes -= size;
        out.push(name);
      }
      return Effect.forEach(out, (name) => Effect.ignore(fs.remove(path(name))), { discard: true });
    });

  const put = (ref: string, text: string) =>
    Effect.gen(function* () {
      if (!files) {
        const found = yield* list;
        // Two first writers may both have listed; the first one's list counts.
        if (!files) {
          files = found;
          for (const size of found.values()) bytes += size;
        }
      }
      const name = nameOf(ref);
      const draft = path(`${name}.${turn++}.tmp`);
      const data = new TextEncoder().encode(text);
      yield* fs.writeFile(draft, data, { mode: 0o600 }).pipe(
        Effect.andThen(fs.rename(draft, path(name))),
        Effect.onError(() => Effect.ignore(fs.remove(draft))),
      );
      bytes += data.length - (files.get(name) ?? 0);
      files.delete(name);
      files.set(name, data.length);
      yield* trim(files);
    });

  return {
    put: (ref, text) => Effect.mapError(put(ref, text), (cause) => asMcpError("file artifact store", cause)),
    get: (ref) =>
      fs.readFileString(path(nameOf(ref))).pipe(
        Effect.catchIf(
          (error) => error.reason._tag === "NotFound",
          () => Effect.undefined,
        ),
        Effect.mapError((cause) => asMcpError("file artifact store", cause)),
      ),
  };
};

const mtime = (at: Option.Option<Date>): number => Option.getOrUndefined(at)?.getTime() ?? 0;
