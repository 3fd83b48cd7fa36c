import { describe, expect, it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import { TestClock } from "effect/testing";
import { artifactType, TypeAliasRegistry } from "../../../src/core/artifact/alias.ts";
import { makeArtifactArchive } from "../../../src/core/artifact/artifact-archive.ts";
import { ArtifactNotFound } from "../../../src/core/artifact/artifact-errors.ts";
import { ArtifactRegistry, type ArtifactRegistryOptions } from "../../../src/core/artifact/artifact-registry.ts";
import { Artifact, ListArtifact } from "../../../src/core/artifact/artifact.ts";
import { getArtifactField } from "../../../src/core/artifact/artifact-field.ts";
import { McpArtifact } from "../../../src/core/artifact/mcp-artifact.ts";
import { walk } from "../../../src/core/artifact/walk.ts";
import type { ArtifactStore } from "../../../src/core/contracts.ts";
import { PluginFailed } from "../../../src/core/errors.ts";

class Note extends Artifact {
  static override readonly typeAlias: string = "note:short";
  readonly text: string;
  constructor(text: string) {
    super();
    this.text = text;
  }
  static fromWire(payload: Readonly<Record<string, unknown>>): Artifact | undefined {
    return typeof payload["text"] === "string" ? new this(payload["text"]) : undefined;
  }
}
class AnyNote extends Note {
  static override readonly typeAlias: string = "note";
}

const generic = (data: unknown): McpArtifact => walk(data, { mcpHandle: "h", toolName: "t" });
const claim = (text: string): McpArtifact => generic({ artifact_ref: "artifact:note~1", text });

const memoryStore = (): ArtifactStore & { readonly texts: Map<string, string> } => {
  const texts = new Map<string, string>();
  return { texts, put: (ref, text) => void texts.set(ref, text), get: async (ref) => texts.get(ref) };
};

interface Process {
  readonly registry: ArtifactRegistry;
  readonly problems: Array<string>;
  /** The runtime closes. */
  readonly end: Effect.Effect<void>;
}

/** What one process has on a store that outlives it. */
const processOn = (
  store: ArtifactStore,
  classes: ReadonlyArray<typeof Note> = [],
  options: ArtifactRegistryOptions = {},
): Effect.Effect<Process> =>
  Effect.gen(function* () {
    const problems: Array<string> = [];
    const scope = yield* Scope.make();
    const types = new TypeAliasRegistry(classes.map(artifactType));
    const archive = yield* makeArtifactArchive({
      store,
      types,
      diagnose: (problem) => void problems.push(problem),
    }).pipe(Scope.provide(scope));
    return {
      registry: new ArtifactRegistry({ archive, ...options }),
      problems,
      end: Scope.close(scope, Exit.void),
    };
  });

describe("artifacts over restarts", () => {
  it.effect("whatever has a ref that somebody knows is found by the next process, and nothing else is written", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const first = yield* processOn(store);
      const rows = Array.from({ length: 900 }, (_, i) => [`k${i}`, "some text"]);
      const big = generic({ part: Object.fromEntries(rows), other: Object.fromEntries(rows) });
      const list = new ListArtifact([new Note("a"), new Note("b")]);
      const shownLater = generic("shown later");
      const unasked = generic("nobody asks for its ref");
      for (const artifact of [big, list, shownLater, unasked, claim("claimed")]) yield* first.registry.keep(artifact);
      const refs = [list.ref, ...list.items.map(({ ref }) => ref), "artifact:note~1"];
      // A model reads the text: the ref of the whole and of one part are shown.
      refs.push(big.ref, big.nested.get("/part")!.ref);
      yield* Effect.yieldNow;
      refs.push(shownLater.ref);
      yield* first.end;
      expect([...store.texts.keys()].toSorted()).toEqual(refs.toSorted());

      const next = yield* processOn(store, [Note]);
      for (const ref of refs) expect((yield* next.registry.find(ref)).ref).toBe(ref);
      const page = yield* getArtifactField(next.registry, { ref: big.nested.get("/part")!.ref, pointer: "/k899" });
      expect(page.value).toBe("some text");
      expect([...first.problems, ...next.problems]).toEqual([]);
    }),
  );

  it.effect("comes back by the alias ladder: the class, its nearest known ancestor, or a generic artifact", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const first = yield* processOn(store);
      const note = new Note("remember");
      const list = new ListArtifact([note]);
      yield* first.registry.keep(list, "origin");
      const refs = [note.ref, list.ref];
      yield* first.end;
      for (const [classes, expected] of [
        [[Note, AnyNote], Note],
        [[AnyNote], AnyNote],
        [[], McpArtifact],
      ] as const) {
        const next = yield* processOn(store, classes);
        const back = yield* next.registry.find(refs[0]!);
        expect(back.constructor).toBe(expected);
        expect(back.toWire()).toEqual({ artifact_ref: refs[0], text: "remember" });
        const all = yield* next.registry.find(refs[1]!);
        expect((all as ListArtifact).items.map((item) => item.constructor)).toEqual([expected]);
        yield* next.end;
      }
    }),
  );

  it.effect("a stored payload that does not fit its class falls down the ladder, with a diagnostic", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      store.texts.set("artifact:note:short~1", '{"origin":"o","wire":{"artifact_ref":"artifact:note:short~1","n":1}}');
      const { registry, problems } = yield* processOn(store, [Note]);
      expect(yield* registry.find("artifact:note:short~1")).toBeInstanceOf(McpArtifact);
      expect(problems).toEqual(["artifact:note:short~1: the payload does not fit the class of 'note:short'"]);
    }),
  );

  it.effect("what memory pushes out is found whole, also while it is still to be written", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const { registry } = yield* processOn(store, [Note], { maxCount: 1 });
      const note = new Note("remember");
      const text = generic({ long: "y".repeat(5000), n: [1, 2, 3] });
      const refs = [note.ref, text.ref];
      for (const artifact of [note, text, generic("last")]) yield* registry.keep(artifact, "origin");
      expect(registry.get(refs[0]!)).toBeUndefined();
      const back = yield* registry.find(refs[0]!);
      expect(back).toBeInstanceOf(Note);
      expect(back.toWire()).toEqual(note.toWire());
      const second = yield* registry.find(refs[1]!);
      expect(second.toWire()).toEqual(text.toWire());
      expect((second as McpArtifact).summaries.size).toBe(1);
    }),
  );

  it.effect("parts of what came back are written when their refs become known", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const first = yield* processOn(store);
      const whole = generic({
        part: Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`k${i}`, "some text"])),
      });
      yield* first.registry.keep(whole);
      const { ref } = whole;
      yield* first.end;
      const second = yield* processOn(store);
      const back = (yield* second.registry.find(ref)) as McpArtifact;
      const partRef = back.nested.get("/part")!.ref;
      yield* second.end;
      expect([...store.texts.keys()]).toEqual([ref, partRef]);
    }),
  );

  it.effect("data of 100,000 levels survives the store", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const first = yield* processOn(store);
      const deep = generic(JSON.parse("[".repeat(100_000) + "]".repeat(100_000)));
      const { ref } = deep;
      yield* first.registry.keep(deep);
      yield* first.end;
      const { registry } = yield* processOn(store);
      expect((yield* registry.find(ref)).ref).toBe(ref);
    }),
  );

  it.effect("a ref belongs to the origin that stored it first; another one that claims it cannot replace it", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const first = yield* processOn(store);
      yield* first.registry.keep(claim("mine"), "server a");
      yield* first.end;
      const second = yield* processOn(store);
      yield* second.registry.keep(claim("forged"), "server b");
      yield* second.end;
      expect(second.problems).toEqual([
        expect.stringMatching(/artifact:note~1 was not stored: it is another server's/),
      ]);
      const third = yield* processOn(store);
      expect((yield* third.registry.find("artifact:note~1")).toWire()["text"]).toBe("mine");
      yield* third.registry.keep(claim("renewed"), "server a");
      yield* third.end;
      expect(store.texts.get("artifact:note~1")).toContain("renewed");
      expect(third.problems).toEqual([]);
    }),
  );

  it.effect("a store that fails costs the artifact's next life, never the call, and is diagnosed", () =>
    Effect.gen(function* () {
      const broken: ArtifactStore = {
        put: () => Promise.reject(new Error("disk full")),
        get: () => undefined,
      };
      const { registry, problems, end } = yield* processOn(broken, [], { maxCount: 1 });
      const lost = claim("lost");
      yield* registry.keep(lost);
      expect(yield* registry.find(lost.ref)).toBe(lost);
      yield* registry.keep(generic("next"));
      yield* end;
      expect(problems).toEqual([expect.stringMatching(/artifact:note~1 was not stored: .*disk full/)]);
      const { registry: unreadable } = yield* processOn({
        put: () => {},
        get: () => Effect.fail(new PluginFailed({ plugin: "store", reason: "disk gone" })),
      });
      const error = yield* Effect.flip(unreadable.find("artifact:note~1"));
      expect(error).toBeInstanceOf(ArtifactNotFound);
      expect(String(error.cause)).toContain("disk gone");
    }),
  );

  it.effect("a store that hangs holds up a call for a second at most, where memory is full, and the end for five", () =>
    Effect.gen(function* () {
      const asked = yield* Deferred.make<void>();
      const hanging: ArtifactStore = {
        get: () => undefined,
        put: () => Effect.andThen(Deferred.succeed(asked, undefined), Effect.never),
      };
      const { registry, problems, end } = yield* processOn(hanging, [], { maxCount: 1 });
      yield* registry.keep(claim("one"));
      yield* Deferred.await(asked);
      const pushing = yield* Effect.forkChild(registry.keep(generic("two")), { startImmediately: true });
      yield* TestClock.adjust("999 millis");
      expect(pushing.pollUnsafe()).toBeUndefined();
      yield* TestClock.adjust("1 millis");
      yield* Fiber.join(pushing);
      expect(problems).toEqual([
        expect.stringMatching(/artifact:note~1 .*memory is full, and the store took too long/),
      ]);
      expect(registry.get("artifact:note~1")).toBeUndefined();
      const last = generic("three");
      yield* registry.keep(last);
      const { ref } = last;
      const ending = yield* Effect.forkChild(end, { startImmediately: true });
      yield* TestClock.adjust("5 seconds");
      yield* Fiber.join(ending);
      expect(problems.slice(1)).toEqual([expect.stringMatching(new RegExp(`${ref} .*the runtime closed before`))]);
    }),
  );

  it.effect("garbage in the store is no artifact, and is written over", () =>
    Effect.gen(function* () {
      for (const text of ["", "[]", "{}", '{"wire":{"artifact_ref":"artifact:a~2"}}']) {
        const store = memoryStore();
        store.texts.set("artifact:note~1", text);
        const { registry, end } = yield* processOn(store);
        expect(yield* Effect.flip(registry.find("artifact:note~1"))).toBeInstanceOf(ArtifactNotFound);
        yield* registry.keep(claim("sound"), "o");
        yield* end;
        expect(store.texts.get("artifact:note~1")).toContain("sound");
      }
    }),
  );
});
