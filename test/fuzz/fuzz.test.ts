/** A small part of `npm run fuzz`, the same on every run: it keeps the targets working, and finds what is new. */
import { describe, expect, it } from "@effect/vitest";
import { jsonText } from "../../src/core/artifact/json.ts";
import { runTarget } from "./run-target.ts";
import { targets } from "./targets.ts";

/** Messages for each unit of a target's weight. */
const messages = 20;

describe("fuzzing", () => {
  it.each(targets.map((target) => [target.name, target] as const))("%s", { timeout: 60_000 }, async (_name, target) => {
    const { broken } = await runTarget(target, { seed: 42, messages: Math.ceil(target.weight * messages) });
    const { seed, path, script, error } = broken ?? {};
    expect(error, `seed ${seed}, path ${path}: ${jsonText(script).slice(0, 2000)}`).toBeUndefined();
  });
});
