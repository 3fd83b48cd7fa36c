/**
 * Starts a server's process. Loaded at the first use, because the process modules
 * are of no use where nothing is spawned.
 *
 * The pipes are Node's own streams: Effect's process handle offers them as its streams
 * only, which costs a call about 18 µs, a third of a whole round trip.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { McpTransport, TransportContext } from "../core/contracts.ts";
import type { StdioEndpoint } from "../core/endpoint.ts";
import { ConnectFailed } from "../core/errors.ts";
import { makeChannel } from "./stdio-channel.ts";
import { childEnvironment } from "./stdio-environment.ts";
import { announceSpawn, type Guarded } from "./stdio-guard.ts";
import { makeSecrets, printable, type Secrets } from "./stdio-secrets.ts";
import type { SpawnAttempt, SpawnFault } from "./stdio-spawn-fault.ts";

/** A running process with its three pipes. */
export type ServerProcess = ChildProcessByStdio<Writable, Readable, Readable>;

/** The system's error code where there is one: the messages hold the whole command line. */
const systemReason = (error: unknown): string => {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
};

/** What holds a NUL character; Node's own message for it would show the value. */
const nulIn = (
  command: string,
  args: ReadonlyArray<string>,
  env: Readonly<Record<string, string>>,
): string | undefined => {
  if (command.includes("\0")) return "the command";
  const index = args.findIndex((arg) => arg.includes("\0"));
  if (index >= 0) return `argument ${index + 1}`;
  return Object.entries(env).find((entry) => entry.join("").includes("\0")) && "the environment";
};

const explain = (attempt: SpawnAttempt): Effect.Effect<SpawnFault> =>
  Effect.flatMap(
    Effect.promise(() => import("./stdio-spawn-fault.ts")),
    ({ explainSpawnFailure }) => explainSpawnFailure(attempt),
  );

/** Starts the process in a group of its own, so that whatever it starts can be ended with it. */
const start = (
  { command, args, cwd, env: own, name: server, endpointId }: StdioEndpoint,
  secrets: Secrets,
  guarded: Guarded,
): Effect.Effect<ServerProcess, ConnectFailed> =>
  Effect.suspend(() => {
    const windows = process.platform === "win32";
    const env = childEnvironment(own, process.env, windows);
    const nul = nulIn(command, args, env);
    if (nul !== undefined) {
      const fault = { reason: `${nul} holds a NUL character`, fix: "Remove it: the system ends a text there." };
      return Effect.fail(new ConnectFailed({ server, endpointId, phase: "spawn", ...fault }));
    }
    const spawned = Effect.callback<ServerProcess, unknown>((resume) => {
      const child = spawn(command, args, {
        cwd,
        env: { ...env, ...guarded.env },
        detached: !windows,
        windowsHide: true,
        stdio: ["pipe", "pipe", "pipe"],
      });
      if (child.pid !== undefined) guarded.spawned(child.pid);
      // Listened to for good: later faults, for example of a signal, must not end the host.
      child.on("error", (error) => resume(Effect.fail(error)));
      child.once("spawn", () => resume(Effect.succeed(child)));
      return Effect.sync(() => child.kill("SIGKILL"));
    });
    return Effect.catchCause(spawned, (cause) =>
      Effect.gen(function* () {
        const failure = printable(secrets.cover(systemReason(cause.reasons.map(causeOf)[0])));
        const fault = yield* explain({ command, cwd, env, windows, failure });
        return yield* new ConnectFailed({ server, endpointId, phase: "spawn", ...fault });
      }),
    );
  });

const causeOf = (reason: { readonly _tag: string }): unknown =>
  "error" in reason ? reason.error : "defect" in reason ? reason.defect : reason;

/** Opens the channel to a new process. Releasing it ends the process and its descendants. */
export const openProcess = (
  endpoint: StdioEndpoint,
  context: TransportContext,
): Effect.Effect<McpTransport, ConnectFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.suspend(() => {
      const secrets = makeSecrets(endpoint.env);
      return Effect.flatMap(
        Effect.promise(() => announceSpawn()),
        (guarded) =>
          start(endpoint, secrets, guarded).pipe(
            Effect.map((child) => makeChannel(endpoint.name, secrets, context, child, guarded.release)),
            Effect.onError(() => Effect.promise(guarded.release)),
          ),
      );
    }),
    (channel) => Effect.promise(() => channel.close()),
  );
