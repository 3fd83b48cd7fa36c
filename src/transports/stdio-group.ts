/**
 * The process group of a server. A member that is dead but not yet reaped does not
 * count: where nobody reaps orphans (a container without an init) it stays for ever.
 */
import { readdirSync, readFileSync } from "node:fs";

const signalGroup = (group: number, signal: NodeJS.Signals | 0): boolean => {
  try {
    process.kill(-group, signal);
    return true;
  } catch {
    // ESRCH: no such group. EPERM: macOS says so when only unreaped members are left.
    return false;
  }
};

/** Whether the process lives and belongs to the group, by what /proc says. */
const isLiveMember = (pid: string, group: number): boolean => {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name stands in parentheses and may hold anything; state, parent and group follow.
    const [state, , pgrp] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(pgrp) === group && state !== "Z" && state !== "X";
  } catch {
    return false;
  }
};

/** All process ids, where the system lists them as files. */
const processIds = (): ReadonlyArray<string> | undefined => {
  if (process.platform !== "linux") return undefined;
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return undefined;
  }
};

export interface ProcessGroup {
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Whether a member other than the leader lives; asked when the leader has ended. */
  readonly hasMembers: () => boolean;
}

/** `group`: the process id of the leader. */
export const processGroup = (group: number): ProcessGroup => {
  let known: string | undefined;
  return {
    signal: (signal) => void signalGroup(group, signal),
    hasMembers: () => {
      if (!signalGroup(group, 0)) return false;
      // One look suffices while the member found before lives.
      if (known !== undefined && isLiveMember(known, group)) return true;
      const pids = processIds();
      known = pids?.find((pid) => isLiveMember(pid, group));
      return pids === undefined || known !== undefined;
    },
  };
};
