/**
 * Starts a server's process. Loaded at the first use, because the process modules
 * are of no use where nothing is spawned.
 */
import * as NodeChildProcessSpawner from "@effect/platform-node-shared/NodeChildProcessSpawner";
import * as NodeFileSystem from "@effect/platform-node-shared/NodeFileSystem";
import * as NodePath from "@effect/platform-node-shared/NodePath";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as FileSystem from "effect/FileSystem";
import * as Layer from "effect/Layer";
import * as Path from "effect/Path";
import * as Scope from "effect/Scope";
import * as ChildProcess from "effect/process/ChildProcess";
import type { ChildProcessHandle, ChildProcessSpawner } from "effect/process/ChildProcessSpawner";
import type { McpTransport, TransportContext } from "../core/contracts.ts";
import type { StdioEndpoint } from "../core/endpoint.ts";
import { ConnectFailed } from "../core/errors.ts";
import { makeChannel } from "./stdio-channel.ts";
import { childEnvironment } from "./stdio-environment.ts";
import { makeSecrets, printable, type Secrets } from "./stdio-secrets.ts";
import { explainSpawnFailure } from "./stdio-spawn-fault.ts";

const system: Layer.Layer<ChildProcessSpawner | FileSystem.FileSystem | Path.Path> = NodeChildProcessSpawner.layer.pipe(
  Layer.provideMerge(Layer.merge(NodeFileSystem.layer, NodePath.layer)),
);

/** The system's error code where there is one: the messages hold the whole command line. */
const systemReason = (error: unknown): string => {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && typeof cause.code === "string") return cause.code;
  }
  return (error instanceof Error ? error.message : String(error)).slice(0, 200);
};

/** Starts the process in a group of its own, so that whatever it starts can be ended with it. */
const spawn = (
  { command, args, cwd, env: own, name: server, endpointId }: StdioEndpoint,
  secrets: Secrets,
): Effect.Effect<ChildProcessHandle, ConnectFailed, Scope.Scope> =>
  Effect.suspend(() => {
    const windows = process.platform === "win32";
    const env = childEnvironment(own, process.env, windows);
    // The channel ends the group politely before the spawner does.
    return ChildProcess.make(command, args, { cwd, env, forceKillAfter: 1 }).pipe(
      Effect.catchCause((cause) =>
        Effect.gen(function* () {
          const files = { fs: yield* FileSystem.FileSystem, path: yield* Path.Path };
          const failure = printable(secrets.cover(systemReason(Cause.squash(cause))));
          const fault = yield* explainSpawnFailure(files, { command, cwd, env, windows, failure });
          return yield* new ConnectFailed({ server, endpointId, phase: "spawn", ...fault });
        }),
      ),
      Effect.provide(system),
    );
  });

/** Opens the channel to a new process. Releasing it ends the process and its descendants. */
export const openProcess = (
  endpoint: StdioEndpoint,
  context: TransportContext,
): Effect.Effect<McpTransport, ConnectFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const secrets = makeSecrets(endpoint.env);
      const scope = yield* Scope.make();
      const handle = yield* spawn(endpoint, secrets).pipe(
        Scope.provide(scope),
        Effect.onError(() => Scope.close(scope, Exit.void)),
      );
      return yield* makeChannel(endpoint.name, secrets, context, handle, scope);
    }),
    (channel) => Effect.promise(() => channel.close()),
  );
