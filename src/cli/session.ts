/** What every command works with: options, output, and a runtime that ends with its scope. */
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Scope from "effect/Scope";
import type { McpConnector } from "../core/connector.ts";
import type { TokenStore } from "../core/contracts.ts";
import type { McpError } from "../core/errors.ts";
import type { Provider } from "../core/provider.ts";
import type { McpRuntime } from "../core/runtime.ts";
import { make } from "../effect.ts";
import * as Ports from "../core/ports.ts";
import type { LoadedEndpoint } from "../plugins/endpoints/mcp-json.ts";
import { loggerObserver } from "../plugins/observers/logger.ts";
import { attempt } from "./attempt.ts";
import type { Output } from "./output.ts";
import type { Spinner } from "./spinner.ts";
import { adviseLogin } from "./stored-logins.ts";
import { userPins, userTokens } from "./user-folders.ts";

/** Options that every command takes. */
export interface CommandOptions {
  readonly config: string | undefined;
  readonly timeout: Duration.Duration | undefined;
  readonly verbose: boolean;
  /** Whose kept login to use. */
  readonly user: string | undefined;
}

export interface Session {
  readonly options: CommandOptions;
  readonly output: Output;
  readonly spinner: Spinner;
  /** From now on the command runs until a signal comes: being ended by one is no failure. */
  readonly untilSignalled: () => void;
}

/** A command: reports its result and answers the exit code. */
export type Command<Input> = (input: Input, session: Session) => Effect.Effect<number, McpError, Scope.Scope>;

/**
 * A runtime whose end is shown when it takes long: a server may need its grace period.
 * Logins and approvals are the user's own, unless another store of logins is given.
 */
export const openRuntime = (
  { options: { timeout, verbose }, spinner }: Session,
  logins?: TokenStore,
): Effect.Effect<McpRuntime, McpError, Scope.Scope> =>
  Effect.gen(function* () {
    const store = logins ?? (yield* attempt("tokenStore", userTokens));
    const pins = yield* attempt("pinStore", userPins);
    const scope = yield* Effect.acquireRelease(Scope.make(), (scope, exit) =>
      spinner.during("closing the servers", Scope.close(scope, exit)),
    );
    const limits = timeout && { connectTimeout: timeout, requestTimeout: timeout, maxTotalTimeout: timeout };
    return yield* make({
      settings: { ...limits },
      setup: (container) => {
        container.registerInstance(Ports.tokenStore.token, store);
        container.registerInstance(Ports.pinStore.token, pins);
        if (verbose) container.registerInstance(Ports.observers.token, loggerObserver);
      },
    }).pipe(Scope.provide(scope));
  });

/** One server as far as it could be reached. */
export interface Reached {
  readonly handle: string;
  readonly connector: McpConnector | undefined;
  readonly tools: ReadonlyArray<Provider>;
  /** Why it could not be attached, connected or listed. */
  readonly error: McpError | undefined;
}

/** Attaches a server and lists its tools; what goes wrong with it is its own. */
export const reach = (runtime: McpRuntime, server: LoadedEndpoint): Effect.Effect<Reached> =>
  Effect.gen(function* () {
    const { handle, endpoint, pin } = server;
    const connector = yield* runtime.attach(handle, endpoint, { pin });
    const tools = yield* connector.providers();
    const { error } = connector.status;
    return { handle, connector, tools, error: error && adviseLogin(server, error) };
  }).pipe(
    Effect.catch((error) =>
      Effect.succeed<Reached>({
        handle: server.handle,
        connector: undefined,
        tools: [],
        error: adviseLogin(server, error),
      }),
    ),
  );

/** Reaches servers side by side, in their order. */
export const reachAll = (
  runtime: McpRuntime,
  servers: ReadonlyArray<LoadedEndpoint>,
  spinner: Spinner,
): Effect.Effect<ReadonlyArray<Reached>> => {
  const pending = new Set(servers.map(({ handle }) => handle));
  const one = (server: LoadedEndpoint): Effect.Effect<Reached> =>
    Effect.tap(reach(runtime, server), () => Effect.sync(() => pending.delete(server.handle)));
  return spinner.during(
    () => `waiting for ${[...pending].join(", ")}`,
    Effect.forEach(servers, one, { concurrency: "unbounded" }),
  );
};
