/** What a host does until it is killed, at random but told by a seed, and the servers it does it with. */
import * as fc from "fast-check";
import { scriptedStdio, type StdioProgram } from "./scripted-stdio.ts";

/** One thing the host does with a server; `ms` is how long it bothers. */
export interface Deed {
  readonly verb: "call" | "list" | "detach" | "abandon" | "close";
  readonly server: number;
  readonly ms: number;
}

export interface Plan {
  /** When the host dies, ms after its first sign of life. */
  readonly moment: number;
  readonly lanes: ReadonlyArray<ReadonlyArray<Deed>>;
}

const deed = fc.record({
  verb: fc.constantFrom<Array<Deed["verb"]>>("call", "call", "list", "detach", "abandon", "close"),
  server: fc.noBias(fc.nat(1000)),
  ms: fc.noBias(fc.nat(1200)),
});

export const plans = (seed: number, count: number): ReadonlyArray<Plan> =>
  fc.sample(
    fc.record({
      moment: fc.noBias(fc.nat(3000)),
      lanes: fc.array(fc.array(deed, { minLength: 3, maxLength: 12 }), { minLength: 4, maxLength: 6 }),
    }),
    { seed, numRuns: count },
  );

interface Command {
  readonly command: string;
  readonly args: ReadonlyArray<string>;
}

/** A shell that stands before the server, as launchers do. */
const behind = (shell: string, { command, args }: Command, pidFile: string): Command => ({
  command: "sh",
  args: ["-c", `echo $$ >> "$0"; exec 3<&0; ${shell}`, pidFile, command, ...args],
});

/** A server that does not even speak: the sooner it is there, the nearer to its spawn the host may die. */
const mute = 'trap "" TERM HUP; echo $$ >> "$0"; sleep 600 & echo $! >> "$0"; while :; do wait; done';

/** Servers of all bad kinds, by name; every process of theirs adds its id to the file. */
export const serverCommands = (pidFile: string): Readonly<Record<string, Command>> => {
  const stubborn: StdioProgram = { pidFile, ignoreStdinEnd: true, ignoreSigterm: true };
  const endless = { holdsPipes: false, pidFile, ignoreSigterm: true };
  return {
    polite: scriptedStdio({ pidFile }),
    "ignores stdin end": scriptedStdio({ pidFile, ignoreStdinEnd: true }),
    "ignores SIGTERM": scriptedStdio(stubborn),
    "behind a shell": behind('"$@" <&3 & wait', scriptedStdio(stubborn), pidFile),
    "left by its launcher": behind('"$@" <&3 & exit 0', scriptedStdio(stubborn), pidFile),
    "with a grandchild": scriptedStdio({ ...stubborn, onStart: [{ grandchild: { ...endless, holdsPipes: true } }] }),
    "with a grandchild apart": scriptedStdio({ pidFile, onStart: [{ grandchild: endless }] }),
    "never answers": scriptedStdio({ ...stubborn, on: { initialize: [{ never: true }] } }),
    floods: scriptedStdio({
      ...stubborn,
      on: { "tools/call": [{ stderrFlood: { bytes: 3_000_000 } }, { stdoutFlood: 30_000_000 }] },
    }),
    mute: { command: "sh", args: ["-c", mute, pidFile] },
    "dies at once": { command: "sh", args: ["-c", 'echo $$ >> "$0"; sleep 600 & echo $! >> "$0"; exit 3', pidFile] },
  };
};
