/** Worlds over stdio: two scripted servers as child processes of the runtime under test. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { StdioEndpoint } from "../../src/mod.ts";
import { scratch } from "../support/paths.ts";
import { type LogLine, scriptedStdio, type StdioProgram } from "../support/scripted-stdio.ts";
import { isAlive, readPids } from "../support/stdio-pids.ts";
import { stdioPrograms } from "./stdio-programs.ts";
import type { FaultTransport, FaultWorld } from "./world.ts";

/** The lines of a log; one that a killed server did not finish is none. */
const linesOf = (path: string): ReadonlyArray<LogLine> => {
  let text = "";
  try {
    text = readFileSync(path, "utf8");
  } catch {
    // No server has started.
  }
  return text.split("\n").flatMap((line) => {
    try {
      return [JSON.parse(line) as LogLine];
    } catch {
      return [];
    }
  });
};

/** Processes whose command line names the folder: also those that died before they said their pid. */
const startedFor = (folder: string): ReadonlyArray<number> => {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .filter((pid) => {
        try {
          return readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(folder);
        } catch {
          return false;
        }
      })
      .map(Number);
  } catch {
    return [];
  }
};

/** What the process is, by its status and the end of its command line. */
const inWords = (pid: number): string => {
  try {
    const [state = "", parent = ""] =
      /State:.*|PPid:.*/g[Symbol.match](readFileSync(`/proc/${pid}/status`, "latin1")) ?? [];
    const words = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
    return `${state} ${parent} ${words.slice(-2).join(" ").slice(0, 200)}`.replaceAll(/\s+/g, " ");
  } catch {
    return "gone meanwhile";
  }
};

const start = async (program: StdioProgram): Promise<FaultWorld> => {
  const folder = scratch();
  const log = join(folder, "log");
  const pidFiles = ["faulty", "neighbour", "grandchildren"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const complete = JSON.parse(JSON.stringify(program), (key, value) =>
    key === "grandchild" ? { ...value, pidFile: pidFiles[2] } : value,
  ) as StdioProgram;
  const alive = (): ReadonlyArray<number> =>
    [...new Set([...pidFiles.flatMap(readPids), ...startedFor(folder)])].filter(isAlive);
  return {
    faulty: new StdioEndpoint({ name: "faulty", ...scriptedStdio({ ...complete, log, pidFile: pidFiles[0] }) }),
    neighbour: new StdioEndpoint({
      name: "neighbour",
      requestTimeout: 10_000,
      ...scriptedStdio({ log, pidFile: pidFiles[1] }),
    }),
    received: () => {
      const counts = new Map<string, number>();
      for (const line of linesOf(log)) {
        if (line.kind !== "message" || line.message["method"] !== "tools/call") continue;
        const marker = String(line.message["params"]?.arguments?.marker);
        counts.set(marker, (counts.get(marker) ?? 0) + 1);
      }
      return counts;
    },
    leaks: () => alive().map((pid) => `process ${pid}, ${inWords(pid)}`),
    stop: async () => {
      for (const pid of alive()) {
        try {
          process.kill(pid, "SIGKILL");
        } catch {
          // It ended meanwhile.
        }
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
};

export const stdioFaults: FaultTransport<StdioProgram> = { name: "stdio", programs: stdioPrograms, start };
