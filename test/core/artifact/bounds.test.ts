import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type { McpSettingsInput } from "../../../src/core/settings.ts";
import { runtimeWith } from "../../support/runtime-with.ts";
import { ScriptedEndpoint } from "../../support/scripted-endpoint.ts";

/** Of three results of about 20 KB, those that can still be paged through at the end, by their numbers. */
const kept = (settings: McpSettingsInput) =>
  Effect.gen(function* () {
    const runtime = yield* runtimeWith({ settings });
    const endpoint = new ScriptedEndpoint("large");
    let calls = 0;
    endpoint.answer = () => ({ content: [{ type: "text", text: String((calls += 1)).repeat(20_000) }] });
    yield* runtime.attach("large", endpoint);
    const refs: Array<string> = [];
    for (let n = 0; n < 3; n++) {
      const result = yield* runtime.callTool({ tool: "large__echo", arguments: {} });
      refs.push(/artifact:[\w:~]+/.exec(runtime.modelText(result, 1000))![0]);
    }
    const found: Array<number> = [];
    for (const [at, ref] of refs.entries()) {
      const asked = runtime.callTool({ tool: "get_artifact_field", arguments: { ref, pointer: "" } });
      const error = yield* Effect.match(asked, { onFailure: ({ _tag }) => _tag, onSuccess: () => undefined });
      if (error === undefined) found.push(at);
      else expect(error).toBe("ArtifactNotFound");
    }
    return found;
  });

describe("the artifacts a runtime keeps in memory", () => {
  it.effect("are all of a few, by default", () =>
    Effect.gen(function* () {
      expect(yield* kept({})).toEqual([0, 1, 2]);
    }),
  );

  it.effect("are bounded by count, the oldest out", () =>
    Effect.gen(function* () {
      expect(yield* kept({ artifactsMax: 2 })).toEqual([1, 2]);
    }),
  );

  it.effect("are bounded by bytes, the oldest out", () =>
    Effect.gen(function* () {
      expect(yield* kept({ artifactBytesMax: 30_000 })).toEqual([2]);
    }),
  );
});
