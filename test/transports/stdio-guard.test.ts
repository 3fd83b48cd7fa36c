import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { scriptedStdio } from "../support/scripted-stdio.ts";
import { openStdio } from "../support/stdio-client.ts";
import type { HostServer } from "../support/stdio-host.ts";
import { childrenOf, isAlive, readPids, until } from "../support/stdio-pids.ts";

const directory = mkdtempSync(join(tmpdir(), "nucleo-mcp-guard-"));
const script = fileURLToPath(new URL("../support/stdio-host.ts", import.meta.url));
const isGuard = (pid: number): boolean =>
  execFileSync("ps", ["-p", String(pid), "-o", "args="], { encoding: "utf8" }).includes("nucleo-mcp-guard");
const runtimeArguments = "Deno" in globalThis ? ["run", "-A"] : [];

/** Starts a host on the runtime that runs this test. */
const spawnHost = (servers: ReadonlyArray<HostServer>): ChildProcess =>
  spawn(process.execPath, [...runtimeArguments, script, JSON.stringify(servers)], {
    stdio: ["ignore", "pipe", "inherit"],
  });

/** Settles when the servers of the host answer. */
const startHost = async (servers: ReadonlyArray<HostServer>): Promise<ChildProcess> => {
  const host = spawnHost(servers);
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

  it("ends a server that had just been spawned: it kills the host as the first thing it does", async () => {
    const pidFile = join(directory, "newborn");
    const newborn = 'trap "" TERM; echo $$ >> "$0"; kill -9 $PPID; while :; do sleep 1; done';
    const first = { command: "sh", args: ["-c", newborn, pidFile] };
    // Once as the host's first server, and once beside another, when a guard runs already.
    const hosts = [spawnHost([first]), spawnHost([{ pidFile, ignoreStdinEnd: true, ignoreSigterm: true }, first])];
    await Promise.all(hosts.map((host) => new Promise((resolve) => host.once("exit", resolve))));
    expect(readPids(pidFile)).toHaveLength(3);
    await until("the servers are gone", () => !readPids(pidFile).some(isAlive), 5000);
  });
});

describe("the guard", () => {
  it.live("is replaced when it is killed, and its successor knows all servers", () =>
    Effect.gen(function* () {
      const before = childrenOf(process.pid);
      const guards = (): ReadonlyArray<number> =>
        childrenOf(process.pid).filter((pid) => !before.includes(pid) && isGuard(pid));
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* openStdio(scriptedStdio({}));
          const [first] = guards();
          process.kill(first!, "SIGKILL");
          yield* Effect.promise(() => until("another guard", () => guards().some((pid) => pid !== first)));
        }),
      );
      expect(guards()).toEqual([]);
    }),
  );

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
