import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { scriptedStdio, type StdioProgram } from "../support/scripted-stdio.ts";
import { openStdio } from "../support/stdio-client.ts";
import { childrenOf, isAlive, readPids, until } from "../support/stdio-pids.ts";

const directory = mkdtempSync(join(tmpdir(), "nucleo-mcp-guard-"));
const script = fileURLToPath(new URL("../support/stdio-host.ts", import.meta.url));
const runtimeArguments = "Deno" in globalThis ? ["run", "-A"] : [];

/** Starts a host on the runtime that runs this test; settles when its servers answer. */
const startHost = async (programs: ReadonlyArray<StdioProgram>): Promise<ChildProcess> => {
  const host = spawn(process.execPath, [...runtimeArguments, script, JSON.stringify(programs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise<void>((resolve, reject) => {
    host.stdout!.once("data", () => resolve());
    host.once("exit", (code, signal) => reject(new Error(`host ended: ${code} ${signal}`)));
  });
  return host;
};

/** Starts a host with hostile servers, kills it, and sees all of them go. */
const dieBy = async (signal: NodeJS.Signals): Promise<void> => {
  const pidFile = join(directory, signal);
  const host = await startHost([
    { pidFile },
    { pidFile, ignoreStdinEnd: true, onStart: [{ grandchild: { pidFile, ignoreSigterm: true } }] },
    { pidFile, ignoreStdinEnd: true, ignoreSigterm: true },
  ]);
  const family = childrenOf(host.pid!);
  const pids = [...readPids(pidFile), ...family];
  // Three servers, one grandchild, and the children of the host again: the servers and the guard.
  expect([pids.length, family.length]).toEqual([8, 4]);
  expect(pids.filter((pid) => !isAlive(pid))).toEqual([]);
  host.kill(signal);
  await until(`all servers of the host killed by ${signal} are gone`, () => !pids.some(isAlive), 5000);
};

describe("C-002: the death of the host", () => {
  it("by SIGKILL, SIGHUP, SIGTERM and SIGINT ends all its servers within 5 s, also those that ignore it", async () => {
    await Promise.all((["SIGKILL", "SIGHUP", "SIGTERM", "SIGINT"] as const).map(dieBy));
  });
});

describe("the guard", () => {
  it.live("is one process for all servers, and goes with the last of them", () =>
    Effect.gen(function* () {
      const before = childrenOf(process.pid);
      const others = (): number => childrenOf(process.pid).filter((pid) => !before.includes(pid)).length;
      yield* Effect.scoped(
        Effect.gen(function* () {
          for (let i = 0; i < 3; i++) yield* openStdio(scriptedStdio({}));
          expect(others()).toBe(4);
          const last = yield* openStdio(scriptedStdio({}));
          yield* Effect.promise(() => last.transport.close());
          expect(others()).toBe(4);
        }),
      );
      expect(others()).toBe(0);
    }),
  );
});
