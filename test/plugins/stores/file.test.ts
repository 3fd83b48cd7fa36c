import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { FileSystem } from "effect/FileSystem";
import { ArtifactRegistry } from "../../../src/core/artifact/artifact-registry.ts";
import { walk } from "../../../src/core/artifact/walk.ts";
import { lift } from "../../../src/core/answer.ts";
import type { ArtifactStore } from "../../../src/core/contracts.ts";
import { PluginFailed } from "../../../src/core/errors.ts";
import { fileArtifactStore, type FileArtifactStoreOptions } from "../../../src/plugins/stores/file.ts";

const put = (store: ArtifactStore, ref: string, text: string) => lift("store", () => store.put(ref, text));
const get = (store: ArtifactStore, ref: string) => lift("store", () => store.get(ref));

const withDirectory = <A, E>(
  use: (directory: string, open: (options?: Partial<FileArtifactStoreOptions>) => ArtifactStore) => Effect.Effect<A, E>,
): Effect.Effect<A, E> =>
  Effect.gen(function* () {
    const root = mkdtempSync(join(tmpdir(), "artifact-store-"));
    const directory = join(root, "kept");
    const fileSystem = yield* FileSystem;
    const open = (options: Partial<FileArtifactStoreOptions> = {}): ArtifactStore =>
      fileArtifactStore({ fileSystem, directory, ...options });
    return yield* Effect.ensuring(
      use(directory, open),
      Effect.sync(() => rmSync(root, { recursive: true })),
    );
  }).pipe(Effect.provide(NodeFileSystem.layer));

describe("file artifact store", () => {
  it.live("keeps texts as private files that another store on the directory finds", () =>
    withDirectory((directory, open) =>
      Effect.gen(function* () {
        const store = open();
        const text = `é😀${"x".repeat(100_000)}`;
        yield* put(store, "artifact:link:cite~1", text);
        yield* put(store, "artifact:link:cite~2", "two");
        yield* put(store, "artifact:link:cite~2", "two again");
        expect(yield* get(open(), "artifact:link:cite~1")).toBe(text);
        expect(yield* get(store, "artifact:link:cite~2")).toBe("two again");
        expect(yield* get(store, "artifact:../../etc/passwd")).toBeUndefined();
        const names = readdirSync(directory);
        expect(names).toHaveLength(2);
        for (const name of names) {
          expect(name).toMatch(/^[0-9a-f]{32}\.artifact\.json$/);
          if (process.platform !== "win32") expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
        }
      }),
    ),
  );

  it.live("is bounded by count and bytes over restarts, and leaves strange files alone", () =>
    withDirectory((directory, open) =>
      Effect.gen(function* () {
        yield* put(open(), "artifact:a~0", "zero");
        writeFileSync(join(directory, "README"), "not mine");
        const store = open({ maxCount: 3 });
        for (let i = 1; i <= 5; i++) yield* put(store, `artifact:a~${i}`, `text ${i}`);
        expect(readdirSync(directory)).toHaveLength(4);
        expect(readdirSync(directory)).toContain("README");
        expect(yield* get(store, "artifact:a~0")).toBeUndefined();
        expect(yield* get(store, "artifact:a~5")).toBe("text 5");
        const small = open({ maxBytes: 10 });
        yield* put(small, "artifact:a~6", "123456789");
        expect(readdirSync(directory)).toHaveLength(2);
        expect(yield* get(small, "artifact:a~6")).toBe("123456789");
      }),
    ),
  );

  it.live("serves a registry what left its memory, also to the next process", () =>
    withDirectory((_, open) =>
      Effect.gen(function* () {
        const artifact = walk({ rows: [1, 2, 3] }, { mcpHandle: "h", toolName: "t" });
        const { ref } = artifact;
        const first = new ArtifactRegistry({ maxCount: 1, store: open() });
        yield* first.keep(artifact);
        yield* first.keep(walk("other", { mcpHandle: "h", toolName: "t" }));
        const next = new ArtifactRegistry({ store: open() });
        expect((yield* next.find(ref)).toWire()).toEqual(artifact.toWire());
      }),
    ),
  );

  it.live("a directory that cannot be made fails typed", () =>
    withDirectory((directory, open) =>
      Effect.gen(function* () {
        writeFileSync(directory, "a file is in the way");
        const error = yield* Effect.flip(put(open(), "artifact:a~1", "x"));
        expect(error).toBeInstanceOf(PluginFailed);
      }),
    ),
  );
});
