/** Every numbered example runs by itself on the runtime that runs this suite, and exits 0. */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";

const folder = new URL("../examples/", import.meta.url);
const root = fileURLToPath(new URL("..", import.meta.url));
const examples = readdirSync(folder)
  .filter((name) => /^\d\d-.*\.ts$/.test(name))
  .toSorted();
const runtime = "Deno" in globalThis ? ["run", "-A"] : [];

interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const run = (name: string): Promise<Run> =>
  new Promise((resolve) => {
    const file = fileURLToPath(new URL(name, folder));
    execFile(process.execPath, [...runtime, file], { cwd: root, timeout: 25_000 }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code ?? -1) : 0, stdout, stderr }),
    );
  });

const lines = (name: string): ReadonlyArray<string> =>
  readFileSync(new URL(name, folder), "utf8").trimEnd().split("\n");

describe("examples", () => {
  it("have numbers of their own", () => {
    expect(examples.length).toBeGreaterThanOrEqual(7);
    expect(new Set(examples.map((name) => name.slice(0, 2))).size).toBe(examples.length);
  });

  it.each(examples)("%s holds what it says", async (name) => {
    const { code, stdout, stderr } = await run(name);
    expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout.trim()).not.toBe("");
  });

  it("the first call takes ten lines, a transport of one's own at most sixty", () => {
    expect(lines("01-first-call.ts").length).toBeLessThanOrEqual(10);
    expect(lines("02-own-transport.ts").length).toBeLessThanOrEqual(60);
  });
});
