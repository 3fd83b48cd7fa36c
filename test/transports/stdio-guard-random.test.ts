/** A few of the runs of `npm run orphans`, on the runtime that runs this test. */
import { describe, expect, it } from "@effect/vitest";
import { dieOnce, ways } from "../support/stdio-host-death.ts";
import { plans } from "../support/stdio-host-plan.ts";

const command = [process.execPath, ...("Deno" in globalThis ? ["run", "-A"] : [])];
const possible = ways.filter((way) => process.platform === "linux" || way !== "end of the terminal");

describe("C-002: the death of a busy host", () => {
  it(`by ${possible.join(", ")} leaves no server of any kind alive 5 s later`, { timeout: 60_000 }, async () => {
    const chosen = plans(20_261_201, possible.length);
    const deaths = await Promise.all(possible.map((way, at) => dieOnce(command, chosen[at]!, way)));
    expect(deaths.flatMap(({ survivors }) => survivors)).toEqual([]);
    // Else it proved nothing.
    expect(deaths.reduce((sum, { alive }) => sum + alive, 0)).toBeGreaterThan(possible.length);
  });
});
