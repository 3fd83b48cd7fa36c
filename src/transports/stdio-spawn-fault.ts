/**
 * Why a process could not be started. The system says `ENOENT` for a missing
 * command, working directory and interpreter alike; this looks which one it is.
 */
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem";
import * as NodePath from "@effect/platform-node-shared/NodePath";
import * as Effect from "effect/Effect";
import * as FileSystem from "effect/FileSystem";
import * as Layer from "effect/Layer";
import * as Path from "effect/Path";

export interface SpawnFault {
  readonly reason: string;
  readonly fix: string;
}

export interface SpawnAttempt {
  readonly command: string;
  readonly cwd: string | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly windows: boolean;
  /** What the system said. */
  readonly failure: string;
}

interface Files {
  readonly fs: FileSystem.FileSystem;
  readonly path: Path.Path;
}

const statOf = ({ fs }: Files, path: string) =>
  fs.stat(path).pipe(Effect.catch(() => Effect.succeed<FileSystem.File.Info | undefined>(undefined)));

const directoryFault = (files: Files, cwd: string): Effect.Effect<SpawnFault | undefined> =>
  Effect.gen(function* () {
    const full = files.path.resolve(cwd);
    const info = yield* statOf(files, full);
    const fix = "Give an existing directory as 'cwd', or leave it out.";
    if (info?.type === "Directory") return undefined;
    if (info) return { reason: `its working directory '${full}' is a file`, fix };
    if (cwd.startsWith("~"))
      return {
        reason: `its working directory '${cwd}' starts with '~', which only a shell expands`,
        fix: "Give the absolute path as 'cwd'.",
      };
    return { reason: `its working directory '${full}' does not exist`, fix };
  });

/** Where the system looks for the command: as a path, or on the child's own PATH. */
const candidates = ({ path }: Files, { command, cwd, env, windows }: SpawnAttempt): ReadonlyArray<string> => {
  const base = path.resolve(cwd ?? ".");
  if (command.includes("/") || (windows && command.includes("\\"))) return [path.resolve(base, command)];
  const search = Object.entries(env).find(([name]) => (windows ? name.toUpperCase() : name) === "PATH")?.[1] ?? "";
  const directories = search.split(windows ? ";" : ":").filter((directory) => directory !== "");
  const endings = windows ? ["", ".exe", ".cmd", ".bat"] : [""];
  return directories.flatMap((directory) => endings.map((ending) => path.resolve(base, directory, command + ending)));
};

const notFound = ({ command }: SpawnAttempt): SpawnFault => {
  const words = command.trim().split(/\s+/);
  if (words.length > 1)
    return {
      reason: `its command '${command}' was not found`,
      fix: `No shell splits it: give command: ${JSON.stringify(words[0])} and args: ${JSON.stringify(words.slice(1))}.`,
    };
  if (command.startsWith("~"))
    return {
      reason: `its command '${command}' starts with '~', which only a shell expands`,
      fix: "Give the absolute path as 'command'.",
    };
  return command.includes("/")
    ? { reason: `its command '${command}' does not exist`, fix: "Correct the path in 'command'." }
    : {
        reason: `its command '${command}' was not found on PATH`,
        fix: "Install it, or give its full path as 'command'.",
      };
};

/** The interpreter that a script's first line names, where it names one. */
const interpreterOf = ({ fs }: Files, file: string): Effect.Effect<string | undefined> =>
  Effect.scoped(
    Effect.gen(function* () {
      const handle = yield* fs.open(file, { flag: "r" });
      const bytes = new Uint8Array(256);
      const read = yield* handle.read(bytes);
      return /^#![ \t]*([^\s]+)/.exec(new TextDecoder().decode(bytes.subarray(0, Number(read))))?.[1];
    }),
  ).pipe(Effect.catch(() => Effect.succeed(undefined)));

const commandFault = (files: Files, attempt: SpawnAttempt): Effect.Effect<SpawnFault | undefined> =>
  Effect.gen(function* () {
    let found: { readonly path: string; readonly info: FileSystem.File.Info } | undefined;
    for (const path of candidates(files, attempt)) {
      const info = yield* statOf(files, path);
      if (!info) continue;
      found ??= { path, info };
      // As the system does: a directory or a file without the right to run does not end the search.
      if (info.type === "File" && (attempt.windows || (info.mode & 0o111) !== 0)) {
        found = { path, info };
        break;
      }
    }
    if (!found) return notFound(attempt);
    const { path, info } = found;
    if (info.type === "Directory")
      return { reason: `its command '${path}' is a directory`, fix: "Name the program itself as 'command'." };
    if (attempt.windows)
      return /\.(cmd|bat)$/i.test(path)
        ? {
            reason: `its command '${path}' is a batch file, which only cmd runs`,
            fix: `Give command: "cmd" and args: ["/c", ${JSON.stringify(attempt.command)}, …].`,
          }
        : undefined;
    if ((info.mode & 0o111) === 0)
      return {
        reason: `its command '${path}' is not executable`,
        fix: "Make it executable (chmod +x), or name its interpreter as 'command' and the file in 'args'.",
      };
    const interpreter = yield* interpreterOf(files, path);
    if (interpreter !== undefined && !(yield* statOf(files, files.path.resolve(attempt.cwd ?? ".", interpreter))))
      return {
        reason: `its command '${path}' is a script for '${interpreter}', which does not exist`,
        fix: "Install that interpreter, or correct the first line of the script.",
      };
    return undefined;
  });

/** Looks for the cause: first the working directory, then the command, then what the system said. */
export const explainSpawnFailure = (attempt: SpawnAttempt): Effect.Effect<SpawnFault> =>
  Effect.gen(function* () {
    const files: Files = { fs: yield* FileSystem.FileSystem, path: yield* Path.Path };
    const directory = attempt.cwd === undefined ? undefined : yield* directoryFault(files, attempt.cwd);
    return (
      directory ??
      (yield* commandFault(files, attempt)) ?? {
        reason: `its process could not be started: ${attempt.failure}`,
        fix: "Check 'command', 'args', 'env' and 'cwd', and whether the system has room for another process.",
      }
    );
  }).pipe(Effect.provide(Layer.merge(NodeFileSystem.layer, NodePath.layer)));
