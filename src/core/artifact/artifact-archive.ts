/** Keeps artifacts over restarts: writes to the host's store in the background, and rebuilds what it reads there. */
import * as Cause from "effect/Cause";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Queue from "effect/Queue";
import type * as Scope from "effect/Scope";
import { lift } from "../answer.ts";
import type { ArtifactStore } from "../contracts.ts";
import type { TypeAliasRegistry } from "./alias.ts";
import { ArtifactNotFound } from "./artifact-errors.ts";
import { type Artifact, wireText } from "./artifact.ts";
import { isRecord, jsonText, parseJson } from "./json.ts";

/** An artifact, and who made it. */
export interface Archived {
  readonly artifact: Artifact;
  readonly origin: string;
}

export interface ArtifactArchive {
  /** Writes it soon. Never waits, never fails. */
  readonly write: (artifact: Artifact, origin: string) => void;
  /** What is still to be written, else what the store has, rebuilt by its alias. */
  readonly find: (ref: string) => Effect.Effect<Archived, ArtifactNotFound>;
  /** Settles when these are written. One that the store does not take within a second is given up. */
  readonly settled: (artifacts: Iterable<Artifact>) => Effect.Effect<void>;
}

export interface ArtifactArchiveOptions {
  readonly store: ArtifactStore;
  readonly types: TypeAliasRegistry;
  /** Told of each artifact that could not be written or read as it was. */
  readonly diagnose: (message: string, origin: string) => void;
}

/** Longest time for one write, ms. */
const writePatience = 10_000;
/** Longest wait for a write whose artifact leaves memory, ms. */
const settlePatience = 1_000;
/** What the store gets to take the last writes when the runtime closes, ms. */
const farewell = 5_000;
/** Writes under way at once. */
const writers = 8;

interface Waiting extends Archived {
  readonly written: Deferred.Deferred<void>;
}

const headOf = (origin: string): string => `{"origin":${jsonText(origin)},"wire":`;

/**
 * A ref is written when it becomes known, so nothing is written that nobody can ask
 * for. It belongs to the origin that wrote it first: what a server claims never replaces
 * what another one made. When the scope closes, what waits is still written.
 */
export const makeArtifactArchive = (
  options: ArtifactArchiveOptions,
): Effect.Effect<ArtifactArchive, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { store, types, diagnose } = options;
    /** By ref, with what is being written now. */
    const waiting = new Map<string, Waiting>();
    const queue = yield* Queue.unbounded<string, Cause.Done>();

    const lose = (ref: string, origin: string, why: string): void =>
      diagnose(`the artifact ${ref} was not stored: ${why}`, origin);

    const put = (ref: string, { artifact, origin }: Archived) =>
      Effect.gen(function* () {
        const head = headOf(origin);
        const text = `${head}${wireText(artifact)}}`;
        const there = yield* lift("artifactStore", () => store.get(ref));
        if (there === undefined || there.startsWith(head) || !there.startsWith('{"origin":'))
          return yield* lift("artifactStore", () => store.put(ref, text));
        if (!there.endsWith(text.slice(head.length)))
          lose(ref, origin, "it is another server's, and nobody else can replace it");
      });

    const writeOne = (ref: string) =>
      Effect.suspend(() => {
        const entry = waiting.get(ref);
        if (!entry) return Effect.void;
        return put(ref, entry).pipe(
          Effect.timeoutOrElse({
            duration: writePatience,
            orElse: () => Effect.sync(() => lose(ref, entry.origin, "the store took too long")),
          }),
          Effect.catchCause((cause) => Effect.sync(() => lose(ref, entry.origin, String(Cause.squash(cause))))),
          Effect.ensuring(
            Effect.sync(() => {
              // A newer one of the same ref waits in its place, and whoever waits for this one waits for that.
              if (waiting.get(ref) !== entry) return;
              waiting.delete(ref);
              Deferred.doneUnsafe(entry.written, Effect.void);
            }),
          ),
        );
      });

    const writeAll = Effect.flatMap(Queue.takeAll(queue), (refs) =>
      Effect.forEach(new Set(refs), writeOne, { concurrency: writers, discard: true }),
    );
    const writing = yield* Effect.forkScoped(Effect.ignore(Effect.forever(writeAll)));
    yield* Effect.addFinalizer(() =>
      Effect.gen(function* () {
        yield* Queue.end(queue);
        yield* Effect.timeoutOption(Fiber.await(writing), farewell);
        for (const [ref, { origin }] of waiting) lose(ref, origin, "the runtime closed before the store took it");
        waiting.clear();
      }),
    );

    const restore = (ref: string, text: string | undefined): Effect.Effect<Archived, ArtifactNotFound> => {
      const stored = text === undefined ? undefined : parseJson(text);
      if (!isRecord(stored) || !isRecord(stored["wire"]) || stored["wire"]["artifact_ref"] !== ref)
        return Effect.fail(new ArtifactNotFound({ ref }));
      const origin = String(stored["origin"]);
      const artifact = types.revive(stored["wire"], { mcpHandle: "", toolName: "" }, (problem) =>
        diagnose(problem, origin),
      );
      return Effect.succeed({ artifact, origin });
    };

    return {
      write: (artifact, origin) => {
        const { ref } = artifact;
        const before = waiting.get(ref);
        if (before && before.origin !== origin) return;
        if (!Queue.offerUnsafe(queue, ref)) return;
        waiting.set(ref, { artifact, origin, written: before?.written ?? Deferred.makeUnsafe() });
      },
      find: (ref) =>
        Effect.suspend(() => {
          const entry = waiting.get(ref);
          if (entry) return Effect.succeed(entry);
          return lift("artifactStore", () => store.get(ref)).pipe(
            Effect.mapError((cause) => new ArtifactNotFound({ ref }, cause)),
            Effect.flatMap((text) => restore(ref, text)),
          );
        }),
      settled: (artifacts) =>
        Effect.suspend(() => {
          const entries = [...artifacts].flatMap(({ knownRef = "" }) => {
            const entry = waiting.get(knownRef);
            return entry ? [[knownRef, entry] as const] : [];
          });
          if (entries.length === 0) return Effect.void;
          return Effect.forEach(entries, ([, { written }]) => Deferred.await(written), { discard: true }).pipe(
            Effect.timeoutOrElse({
              duration: settlePatience,
              orElse: () =>
                Effect.sync(() => {
                  for (const [ref, entry] of entries) {
                    if (waiting.get(ref) !== entry) continue;
                    waiting.delete(ref);
                    lose(ref, entry.origin, "memory is full, and the store took too long");
                  }
                }),
            }),
          );
        }),
    };
  });
