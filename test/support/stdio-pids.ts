/** Looks at processes by their ids. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Pids that scripted servers appended to a file. */
export const readPids = (file: string): ReadonlyArray<number> => {
  try {
    return readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number);
  } catch {
    return [];
  }
};

/** Whether the process runs. One that is dead and only waits for its parent to notice does not. */
export const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return process.platform !== "linux";
  }
};

/** Settles when the condition holds; rejects when it does not within `deadline` ms. */
export const until = async (what: string, condition: () => boolean, deadline = 25_000): Promise<void> => {
  const end = performance.now() + deadline;
  while (!condition()) {
    if (performance.now() > end) throw new Error(`still not so after ${deadline} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
};

/** The live children of a process, by what `ps` says. */
export const childrenOf = (parent: number): ReadonlyArray<number> =>
  execFileSync("ps", ["-A", "-o", "pid=,ppid=,stat=,comm="], { encoding: "utf8" })
    .split("\n")
    .map((line) => line.trim().split(/\s+/))
    .filter(([, ppid, state, name]) => Number(ppid) === parent && !state!.startsWith("Z") && name !== "ps")
    .map(([pid]) => Number(pid));
