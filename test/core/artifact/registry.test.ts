import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { ArtifactNotFound } from "../../../src/core/artifact/artifact-errors.ts";
import { ArtifactRegistry } from "../../../src/core/artifact/artifact-registry.ts";
import { Artifact, ListArtifact } from "../../../src/core/artifact/artifact.ts";
import { walk } from "../../../src/core/artifact/walk.ts";

class Note extends Artifact {
  static override readonly typeAlias: string = "note";
  readonly text: string;
  constructor(text: string) {
    super();
    this.text = text;
  }
}

const generic = (data: unknown) => walk(data, { mcpHandle: "h", toolName: "t" });
const claim = (text: string) => generic({ artifact_ref: "artifact:note~1", text });

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
});
