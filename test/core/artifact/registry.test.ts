import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { artifactType, TypeAliasRegistry } from "../../../src/core/artifact/alias.ts";
import { ArtifactNotFound } from "../../../src/core/artifact/artifact-errors.ts";
import { ArtifactRegistry } from "../../../src/core/artifact/artifact-registry.ts";
import { Artifact, ListArtifact } from "../../../src/core/artifact/artifact.ts";
import { McpArtifact } from "../../../src/core/artifact/mcp-artifact.ts";
import { walk } from "../../../src/core/artifact/walk.ts";
import type { ArtifactStore } from "../../../src/core/contracts.ts";
import { PluginFailed } from "../../../src/core/errors.ts";

class Note extends Artifact {
  static override readonly typeAlias: string = "note";
  readonly text: string;
  constructor(text: string) {
    super();
    this.text = text;
  }
  static fromWire(payload: Readonly<Record<string, unknown>>): Note | undefined {
    return typeof payload["text"] === "string" ? new Note(payload["text"]) : undefined;
  }
}

const generic = (data: unknown): McpArtifact => walk(data, { mcpHandle: "h", toolName: "t" });
const claim = (text: string): McpArtifact => generic({ artifact_ref: "artifact:note~1", text });
const memoryStore = (): ArtifactStore & { readonly texts: Map<string, string> } => {
  const texts = new Map<string, string>();
  return { texts, put: (ref, text) => void texts.set(ref, text), get: async (ref) => texts.get(ref) };
};

describe("ArtifactRegistry", () => {
  it.effect("finds what it keeps by the ref it shows, parts included", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const big = generic({ part: Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`k${i}`, "some text"])) });
      const list = new ListArtifact([new Note("a"), new Note("b")]);
      yield* registry.keep(generic("other"));
      yield* registry.keep(big);
      yield* registry.keep(list);
      const part = big.nested.get("/part")!;
      for (const artifact of [big, part, list, list.items[1]!]) {
        expect(registry.get(artifact.ref)).toBe(artifact);
        expect(yield* registry.find(artifact.ref)).toBe(artifact);
      }
      expect(registry.count).toBe(3);
      const error = yield* Effect.flip(registry.find("artifact:mcp~000000000000"));
      expect(error).toBeInstanceOf(ArtifactNotFound);
      expect(error.message).toMatch(/no artifact 'artifact:mcp~000000000000'/);
    }),
  );

  it.effect("is bounded by count and by bytes; the oldest go, the newest stays however large", () =>
    Effect.gen(function* () {
      const byCount = new ArtifactRegistry({ maxCount: 3 });
      const all = Array.from({ length: 10 }, (_, i) => generic(`text ${i}`));
      for (const artifact of all) yield* byCount.keep(artifact);
      expect(all.map((artifact) => byCount.has(artifact))).toEqual([...Array(7).fill(false), true, true, true]);
      expect(byCount.get(all[0]!.ref)).toBeUndefined();
      const byBytes = new ArtifactRegistry({ maxBytes: 80 });
      for (const artifact of all) yield* byBytes.keep(artifact);
      expect(byBytes.bytes).toBe(80);
      expect(byBytes.count).toBe(10);
      yield* byBytes.keep(generic("text x"));
      expect(byBytes.bytes).toBe(80);
      expect(byBytes.count).toBe(10);
      expect(byBytes.has(all[0]!)).toBe(false);
      const huge = generic("x".repeat(1000));
      yield* byBytes.keep(huge);
      expect(byBytes.count).toBe(1);
      expect(byBytes.get(huge.ref)).toBe(huge);
      yield* byBytes.keep(huge);
      expect(byBytes.bytes).toBe(1002);
    }),
  );

  it.effect("keeping what is kept makes it young again", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry({ maxCount: 2 });
      const [a, b, c] = [generic("a"), generic("b"), generic("c")];
      for (const artifact of [a, b, a, c]) yield* registry.keep(artifact);
      expect([a, b, c].map((artifact) => registry.has(artifact))).toEqual([true, false, true]);
    }),
  );

  it.effect("a ref belongs to the origin that kept it first, and that origin may renew it", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const [mine, forged, renewed] = [claim("mine"), claim("forged"), claim("renewed")];
      yield* registry.keep(mine, "server a");
      yield* registry.keep(forged, "server b");
      expect(registry.get("artifact:note~1")).toBe(mine);
      yield* registry.keep(renewed, "server a");
      expect(registry.get("artifact:note~1")).toBe(renewed);
    }),
  );

  it.effect("what is pushed out goes to the store whole and comes back as what it was", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const types = new TypeAliasRegistry([artifactType(Note)]);
      const registry = new ArtifactRegistry({ maxCount: 1, store, types });
      const note = new Note("remember");
      const text = generic({ long: "y".repeat(5000), n: [1, 2, 3] });
      const secretive = generic("nobody knows my ref");
      const refs = [note.ref, text.ref];
      for (const artifact of [note, text, secretive, generic("last")]) yield* registry.keep(artifact, "origin");
      expect([...store.texts.keys()].toSorted()).toEqual(refs.toSorted());
      const back = yield* registry.find(note.ref);
      expect(back).toBeInstanceOf(Note);
      expect(back).not.toBe(note);
      expect(back.toWire()).toEqual(note.toWire());
      const generic2 = yield* registry.find(text.ref);
      expect(generic2).toBeInstanceOf(McpArtifact);
      expect(generic2.toWire()).toEqual(text.toWire());
      expect((generic2 as McpArtifact).summaries.size).toBe(1);
    }),
  );

  it.effect("data of 100,000 levels survives the store", () =>
    Effect.gen(function* () {
      const store = memoryStore();
      const registry = new ArtifactRegistry({ maxCount: 1, store });
      const deep = generic(JSON.parse("[".repeat(100_000) + "]".repeat(100_000)));
      const { ref } = deep;
      yield* registry.keep(deep);
      yield* registry.keep(generic("next"));
      const back = yield* registry.find(ref);
      expect(back.ref).toBe(ref);
    }),
  );

  it.effect("data that contains itself ends, too", () =>
    Effect.gen(function* () {
      const registry = new ArtifactRegistry();
      const endless: Array<unknown> = [];
      endless.push(endless);
      const artifact = walk(endless, { mcpHandle: "h", toolName: "t" }, { nodes: 10_000 });
      yield* registry.keep(artifact);
      expect(registry.get(artifact.ref)).toBe(artifact);
      expect(JSON.stringify(artifact).length).toBeLessThan(1000);
    }),
  );

  it.effect("a store that fails costs the artifact, never the call", () =>
    Effect.gen(function* () {
      const broken: ArtifactStore = {
        put: () => Promise.reject(new Error("disk full")),
        get: () => Effect.fail(new PluginFailed({ plugin: "store", reason: "disk gone" })),
      };
      const registry = new ArtifactRegistry({ maxCount: 1, store: broken });
      const lost = generic("lost");
      const { ref } = lost;
      yield* registry.keep(lost);
      yield* registry.keep(generic("next"));
      expect(yield* Effect.flip(registry.find(ref))).toBeInstanceOf(ArtifactNotFound);
    }),
  );

  it.effect("garbage in the store is no artifact", () =>
    Effect.gen(function* () {
      for (const text of ["", "[]", "{}", '{"wire":{"artifact_ref":"artifact:a~2"}}']) {
        const registry = new ArtifactRegistry({ store: { put: () => {}, get: () => text } });
        expect(yield* Effect.flip(registry.find("artifact:a~1"))).toBeInstanceOf(ArtifactNotFound);
      }
    }),
  );
});
