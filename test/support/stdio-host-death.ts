/** Lets a busy host die, and sees how long what it started lives on. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import type { Plan } from "./stdio-host-plan.ts";
import { isAlive, readPids } from "./stdio-pids.ts";

/**
 * How the host dies: by SIGKILL alone, with its whole process group (as a job that is
 * killed), or by the end of its terminal.
 */
export const ways = ["SIGKILL", "SIGKILL to the group", "SIGTERM to the group", "end of the terminal"] as const;
export type Way = (typeof ways)[number];

export interface Death {
  /** Processes that servers wrote down or that were found, dead or alive. */
  readonly processes: number;
  /** Those that lived when the host died. */
  readonly alive: number;
  /** ms from the death of the host to that of the last of them. */
  readonly lasted: number;
  /** Those that live on after the deadline; they are ended then. */
  readonly survivors: ReadonlyArray<string>;
  /** What the host was about when it died. */
  readonly about: ReadonlyArray<string>;
}

const script = fileURLToPath(new URL("./stdio-host-busy.ts", import.meta.url));

/** Processes that carry the mark in their environment, so that also one is found that had no time to write its id down. */
const marked = (tag: string): ReadonlyArray<number> => {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").includes(`NUCLEO_TEST_RUN=${tag}`);
      } catch {
        return false;
      }
    })
    .map(Number);
};

const commandOf = (pid: number): string => {
  try {
    return `${pid} ${readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").slice(0, 300)}`;
  } catch {
    return String(pid);
  }
};

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`;

const startHost = (command: ReadonlyArray<string>, argument: string, way: Way): ChildProcess => {
  const all = [...command, script, argument];
  const [program, ...args] =
    way === "end of the terminal" ? ["script", "-qefc", `exec ${all.map(quoted).join(" ")}`, "/dev/null"] : all;
  // A group of its own in any case: the test's own group must not be hit.
  return spawn(program!, args, { detached: true, stdio: ["ignore", "pipe", "inherit"] });
};

const kill = (host: ChildProcess, way: Way): void => {
  if (way === "SIGKILL" || way === "end of the terminal") host.kill("SIGKILL");
  else process.kill(-host.pid!, way === "SIGTERM to the group" ? "SIGTERM" : "SIGKILL");
};

/** `command`: the runtime's command line. `deadline`: ms after which nothing may live. */
export const dieOnce = async (
  command: ReadonlyArray<string>,
  { moment, lanes }: Plan,
  way: Way,
  deadline = 5000,
): Promise<Death> => {
  const directory = mkdtempSync(join(tmpdir(), "nucleo-mcp-death-"));
  const pidFile = join(directory, "pids");
  const tag = crypto.randomUUID();
  const host = startHost(command, JSON.stringify({ lanes, pidFile, tag }), way);
  const exited = new Promise((resolve) => host.once("exit", resolve));
  const about = new Map<string, string>();
  await new Promise<void>((resolve) => {
    createInterface({ input: host.stdout! }).on("line", (line) => {
      const [sign, id, ...what] = line.trim().split(" ");
      if (sign === "+") about.set(id!, what.join(" "));
      else about.delete(id!);
      resolve();
    });
    host.once("exit", () => resolve());
  });
  await new Promise((resolve) => setTimeout(resolve, moment));
  kill(host, way);
  const diedAt = performance.now();
  await exited;

  const seen = new Set<number>();
  const look = (): ReadonlyArray<number> => {
    for (const pid of [...marked(tag), ...readPids(pidFile)]) seen.add(pid);
    return [...seen].filter(isAlive);
  };
  let left = look();
  const alive = left.length;
  let lasted = 0;
  while (left.length > 0 && lasted < deadline) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    left = look();
    lasted = performance.now() - diedAt;
  }
  const survivors = left.map(commandOf);
  for (const pid of left) process.kill(pid, "SIGKILL");
  rmSync(directory, { recursive: true, force: true });
  return { processes: seen.size, alive, lasted, survivors, about: [...about.values()] };
};
