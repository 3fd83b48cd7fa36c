/**
 * Ends the servers when the host dies without a chance to do so: killed by SIGKILL
 * or for want of memory, its terminal closed, or left by `process.exit`.
 *
 * One tiny shell for all servers of the host, in a session of its own, reads from a
 * pipe whose other end only the host holds which servers there are. The end of that
 * pipe is the end of the host: the servers then get a second to end by themselves, as
 * their stdin ended too, then their groups get SIGTERM, and a second later SIGKILL.
 * What it costs is in docs/decisions/009-stdio-and-guard.md.
 *
 * A server is announced before it is spawned, under a mark that it carries in its
 * environment: a host that dies between the spawn and its next line of code leaves a
 * process whose id the shell was never told, and then looks up by the mark (Linux).
 * The host's end of the pipe closes in such a child when it becomes the server, never
 * before, so the shell cannot look too early.
 *
 * POSIX only. A server that leaves its process group escapes. On Windows, and where
 * there is no `sh`, servers only see the end of their stdin.
 */
import { type ChildProcess, spawn } from "node:child_process";
import type { Writable } from "node:stream";

/** The environment variable that holds a server's mark. */
export const markName = "NUCLEO_MCP_SPAWN";

/** Lines: `+ mark`, then `= mark group`, then `- mark`. */
const script = `
trap '' HUP INT TERM
servers=
forget() {
  kept=
  for s in $servers; do [ "\${s%%=*}" = "$1" ] || kept="$kept $s"; done
  servers=$kept
}
groups_of() {
  if [ -n "\${1#*=}" ]; then echo "\${1#*=}"; return; fi
  for file in $(grep -ls "${markName}=\${1%%=*}" /proc/[0-9]*/environ); do
    read -r stat < "\${file%environ}stat" || continue
    set -- \${stat##*) }
    echo "$3"
  done
}
while read -r change mark group; do
  forget "$mark"
  [ "$change" = - ] || servers="$servers $mark=$group"
done
[ -n "$servers" ] || exit 0
for signal in TERM KILL; do
  sleep 1
  for s in $servers; do
    for g in $(groups_of "$s"); do kill -s $signal -- "-$g"; done
  done
done 2>/dev/null
`;

interface Guard {
  /** Settles when the pipe has the line, or will never have it. */
  readonly write: (line: string) => Promise<void>;
  /** Lets it go; settles when it is gone. */
  readonly end: () => Promise<unknown>;
}

/** The marks of all servers, with their groups once these are known. */
const servers = new Map<string, number | undefined>();
let current: Guard | undefined;

const lineOf = (mark: string, group: number | undefined): string =>
  group === undefined ? `+ ${mark}\n` : `= ${mark} ${group}\n`;

const startGuard = (): Guard | undefined => {
  let shell: ChildProcess & { readonly stdin: Writable };
  try {
    shell = spawn("sh", ["-c", script, "nucleo-mcp-guard"], {
      cwd: "/",
      detached: true,
      env: { PATH: "/usr/bin:/bin" },
      stdio: ["pipe", "ignore", "ignore"],
    }) as typeof shell;
  } catch {
    return undefined;
  }
  const waiting = new Set<() => void>();
  const gone = new Promise<boolean>((resolve) => {
    shell.on("exit", (_code, signal) => resolve(signal !== null)).on("error", () => resolve(false));
  });
  // A guard that cannot start is missed by nobody: it is a last resort.
  shell.stdin.on("error", () => {});
  // Neither the shell nor its pipe keeps a host running that has nothing else to do.
  shell.unref();
  (shell.stdin as { unref?: () => void }).unref?.();
  const guard: Guard = {
    write: (line) =>
      new Promise((resolve) => {
        const settle = (): void => void (waiting.delete(settle) && resolve());
        waiting.add(settle);
        // Bun says that it has written, and writes at the end of the turn.
        shell.stdin.write(line, () => setImmediate(settle));
      }),
    end: () => {
      shell.ref();
      shell.stdin.end();
      return gone;
    },
  };
  void gone.then((killed) => {
    for (const settle of waiting) settle();
    if (current !== guard) return;
    // One that ended by itself, for example for want of a `sh`, would do so again.
    current = killed && servers.size > 0 ? startGuard() : undefined;
  });
  for (const [mark, group] of servers) void guard.write(lineOf(mark, group));
  return guard;
};

/** What a server that is about to be spawned is to the guard. */
export interface Guarded {
  /** To be added to the environment of the server. */
  readonly env: Readonly<Record<string, string>>;
  /** To be called as soon as the group is known. */
  readonly spawned: (group: number) => void;
  /** To be called when nothing lives of the server. Settles when nothing of the guard is left that nobody needs. */
  readonly release: () => Promise<void>;
}

const unguarded: Guarded = { env: {}, spawned: () => {}, release: async () => {} };

/** Announces a server that is about to be spawned; settles when the guard will know of it whatever comes. */
export const announceSpawn = async (): Promise<Guarded> => {
  if (process.platform === "win32") return unguarded;
  const mark = crypto.randomUUID();
  current ??= startGuard();
  servers.set(mark, undefined);
  await current?.write(lineOf(mark, undefined));
  return {
    env: process.platform === "linux" ? { [markName]: mark } : {},
    spawned: (group) => {
      servers.set(mark, group);
      void current?.write(lineOf(mark, group));
    },
    release: async () => {
      if (!servers.delete(mark)) return;
      const guard = current;
      void guard?.write(`- ${mark}\n`);
      if (servers.size > 0) return;
      current = undefined;
      await guard?.end();
    },
  };
};
