/**
 * Ends the servers when the host dies without a chance to do so: killed by SIGKILL
 * or for want of memory, its terminal closed, or left by `process.exit`.
 *
 * One tiny shell for all servers of the host, in a session of its own, reads group
 * ids from a pipe whose other end only the host holds. The end of that pipe is the
 * end of the host: the servers then get a second to end by themselves, as their
 * stdin ended too, then SIGTERM, and a second later SIGKILL. It costs 1.6 MB (0.3 MB
 * of its own) and one process start while any server runs; with the last one it goes.
 *
 * POSIX only. A server that leaves its process group escapes. On Windows, and where
 * there is no `sh`, servers only see the end of their stdin.
 */
import { spawn } from "node:child_process";

const script = `
trap '' HUP INT TERM
groups=
while read -r change group; do
  case $change in
    +) groups="$groups $group" ;;
    -) kept=; for g in $groups; do [ "$g" = "$group" ] || kept="$kept $g"; done; groups=$kept ;;
  esac
done
[ -n "$groups" ] || exit 0
for signal in TERM KILL; do
  sleep 1
  for g in $groups; do kill -s $signal -- "-$g" 2>/dev/null; done
done
`;

interface Guard {
  readonly groups: Set<number>;
  readonly write: (line: string) => void;
  /** Lets it go; settles when it is gone. */
  readonly end: () => Promise<void>;
}

const startGuard = (): Guard | undefined => {
  try {
    const shell = spawn("sh", ["-c", script, "nucleo-mcp-guard"], {
      cwd: "/",
      detached: true,
      env: { PATH: "/usr/bin:/bin" },
      stdio: ["pipe", "ignore", "ignore"],
    });
    const gone = new Promise<void>((resolve) => shell.once("exit", () => resolve()).once("error", () => resolve()));
    // A guard that cannot start or was killed is missed by nobody: it is a last resort.
    shell.stdin.on("error", () => {});
    // Neither the shell nor its pipe keeps a host running that has nothing else to do.
    shell.unref();
    (shell.stdin as { unref?: () => void }).unref?.();
    return {
      groups: new Set(),
      write: (line) => void shell.stdin.write(line),
      end: () => {
        shell.ref();
        shell.stdin.end();
        return gone;
      },
    };
  } catch {
    return undefined;
  }
};

let current: Guard | undefined;

/** Guards a process group until the answered function is called. That settles when nothing of the guard is left that nobody needs. */
export const guardGroup = (group: number): (() => Promise<void>) => {
  const guard = process.platform === "win32" ? undefined : (current ??= startGuard());
  guard?.groups.add(group);
  guard?.write(`+ ${group}\n`);
  return async () => {
    if (!guard?.groups.delete(group)) return;
    guard.write(`- ${group}\n`);
    if (guard.groups.size > 0) return;
    if (current === guard) current = undefined;
    await guard.end();
  };
};
