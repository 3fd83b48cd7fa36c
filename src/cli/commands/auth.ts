/** `auth login|status|logout`: logins at HTTP servers, kept for the other commands. */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { asMcpError } from "../../core/answer.ts";
import type { TokenStore } from "../../core/contracts.ts";
import { HttpEndpoint } from "../../core/endpoint.ts";
import { type InvalidConfig, type McpError, Unauthorized } from "../../core/errors.ts";
import { AuthorizationCode } from "../../plugins/credentials/authorization-code.ts";
import { isAlive } from "../../plugins/credentials/token-set.ts";
import type { McpJson } from "../../plugins/endpoints/mcp-json.ts";
import { attempt } from "../attempt.ts";
import { openBrowser } from "../browser.ts";
import { secretVariable } from "../client-secret.ts";
import { openConfig, pickServer } from "../config.ts";
import { exitCodes } from "../exit-code.ts";
import { type LoopbackReceiver, openLoopbackReceiver } from "../loopback-receiver.ts";
import type { Output } from "../output.ts";
import { type Command, openRuntime, reach } from "../session.ts";
import { grantsFor, nobody, readGrants, type StoredGrant, withCredential } from "../stored-logins.ts";
import { userTokens } from "../user-folders.ts";
import { UsageError } from "../usage-error.ts";

/** How long a person may take. */
const patience = Duration.minutes(5);
/** What discovery and handshake may take beside it. */
const rest = Duration.seconds(30);

interface HttpServer {
  readonly handle: string;
  readonly endpoint: HttpEndpoint;
}

const pickHttp = (config: McpJson, name: string): Effect.Effect<HttpServer, InvalidConfig | UsageError> =>
  Effect.flatMap(pickServer(config, name), ({ handle, endpoint }) =>
    endpoint instanceof HttpEndpoint
      ? Effect.succeed({ handle, endpoint })
      : Effect.fail(new UsageError({ message: `'${handle}' is no HTTP server, so nobody logs in to it.` })),
  );

const loadGrants: Effect.Effect<ReadonlyArray<StoredGrant>, McpError> = attempt("tokenStore", async () =>
  readGrants(await (await userTokens()).list()),
);

/** What is kept for one server, without a secret. */
interface LoginState {
  readonly server: string | undefined;
  readonly state: "none" | "logged-in" | "expired";
  readonly user?: string;
  readonly resource?: string;
  readonly scope?: string;
  /** ISO 8601; absent when the server did not say. */
  readonly expiresAt?: string | undefined;
  /** Whether it is renewed without a person. */
  readonly refreshable?: boolean;
}

const stateOf = (server: string | undefined, { user, resource, token }: StoredGrant, now: number): LoginState => {
  const refreshable = token.refreshToken !== undefined;
  return {
    server,
    state: refreshable || isAlive(token, now) ? "logged-in" : "expired",
    user,
    resource,
    scope: token.scopes.join(" "),
    expiresAt: token.expiresAt === undefined ? undefined : new Date(token.expiresAt).toISOString(),
    refreshable,
  };
};

const stateText = (login: LoginState, { style, foreign }: Output): string => {
  const who = login.server === undefined ? "(no server of the configuration)" : style.bold(foreign(login.server));
  if (login.state === "none") return `${who}: not logged in`;
  const parts = [
    `as ${login.user} at ${login.resource}`,
    login.scope === "" ? "scope not told" : `scope ${login.scope}`,
    login.expiresAt === undefined ? "expiry not told" : `token until ${login.expiresAt}`,
    login.refreshable ? "refreshable" : "not refreshable",
  ];
  const state = login.state === "expired" ? style.yellow("expired") : style.green("logged in");
  return `${who}: ${state} ${foreign(parts.join(", "))}`;
};

export interface LoginInput {
  readonly server: string;
  readonly browser: boolean;
  readonly clientId: string | undefined;
  /** Separated by blanks. */
  readonly scope: string | undefined;
  /** Of the loopback address that the browser comes back to. */
  readonly port: number | undefined;
}

const openReceiver = (port: number | undefined): Effect.Effect<LoopbackReceiver, UsageError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.mapError(
      attempt("login", () => openLoopbackReceiver({ port })),
      ({ message }) => new UsageError({ message: `Nobody can come back from the browser to this machine. ${message}` }),
    ),
    ({ close }) => Effect.promise(close),
  );

/**
 * Sends a person to the server's login page, and keeps what comes of it. It replaces what
 * is kept for the same person at the server.
 */
export const loginCommand: Command<LoginInput> = (input, session) =>
  Effect.gen(function* () {
    const { options, output } = session;
    const server = yield* pickHttp(yield* openConfig(options.config), input.server);
    const { handle } = server;
    const limit = options.timeout ?? patience;
    const receiver = yield* openReceiver(input.port);
    const credential = new AuthorizationCode({
      user: options.user ?? nobody,
      clientId: input.clientId,
      clientSecret: input.clientId === undefined ? undefined : process.env[secretVariable] || undefined,
      scope: input.scope,
      redirectUri: receiver.redirectUri,
      openBrowser: (url) =>
        Effect.gen(function* () {
          yield* output.note(`Log in to '${handle}' with a browser of this machine:\n${url}`);
          if (input.browser && !(yield* attempt("login", () => openBrowser(url))))
            yield* output.warn("No browser could be opened; open the page yourself.");
        }),
      receiveRedirect: (state) =>
        attempt("login", () => receiver.receiveRedirect(state)).pipe(
          Effect.timeoutOrElse({
            duration: limit,
            orElse: () => {
              const detail = `nobody came back from the browser within ${Duration.format(limit)}`;
              return Effect.fail(new Unauthorized({ server: handle, reason: "unauthenticated", detail }));
            },
          }),
        ),
    });

    const tokens = yield* attempt("tokenStore", userTokens);
    const saved: { key?: string; fault?: unknown } = {};
    // Whoever asks for a login gets one, whatever is kept; and has to know when it is not.
    const store: TokenStore = {
      load: () => undefined,
      save: async (key, secret) => {
        try {
          await tokens.save(key, secret);
          saved.key = key;
        } catch (cause) {
          saved.fault = cause;
          throw cause;
        }
      },
      remove: tokens.remove,
    };
    const timeout = Duration.sum(limit, rest);
    const runtime = yield* openRuntime({ ...session, options: { ...options, timeout } }, store);
    const reached = yield* reach(runtime, { handle, endpoint: withCredential(server.endpoint, credential) });
    if (reached.error) return yield* reached.error;
    if (saved.fault !== undefined) return yield* asMcpError<McpError>("tokenStore", saved.fault);

    const grants = yield* loadGrants;
    const grant = grants.find(({ key }) => key === saved.key);
    for (const { key } of grant ? grantsFor(grants, server.endpoint, grant.user) : [])
      if (key !== saved.key) yield* attempt("tokenStore", () => tokens.remove(key));
    yield* output.text(
      grant ? `Logged in to '${handle}'.` : `'${handle}' answers without a login, so there is none to keep.`,
    );
    const now = yield* Clock.currentTimeMillis;
    yield* output.document(grant ? stateOf(handle, grant, now) : { server: handle, state: "none" });
    return exitCodes.fine;
  });

/** Shows what is kept; asks no server. A single server without a usable login is exit code 4. */
export const statusCommand: Command<{ readonly server: string | undefined }> = (input, { options, output }) =>
  Effect.gen(function* () {
    const config = yield* openConfig(options.config);
    const all = config.servers.flatMap(({ handle, endpoint }) =>
      endpoint instanceof HttpEndpoint ? [{ handle, endpoint }] : [],
    );
    const servers = input.server === undefined ? all : [yield* pickHttp(config, input.server)];
    const grants = yield* loadGrants;
    const now = yield* Clock.currentTimeMillis;
    const logins = servers.flatMap((server): ReadonlyArray<LoginState> => {
      const own = grantsFor(grants, server.endpoint, options.user).map((grant) => stateOf(server.handle, grant, now));
      return own.length > 0 ? own : [{ server: server.handle, state: "none" }];
    });
    const others = grants.filter(
      (grant) =>
        input.server === undefined &&
        !servers.some(({ endpoint }) => grantsFor([grant], endpoint, undefined).length > 0),
    );
    const shown = [...logins, ...others.map((grant) => stateOf(undefined, grant, now))];
    if (shown.length > 0) yield* output.text(shown.map((login) => stateText(login, output)).join("\n"));
    else yield* output.note(`${config.source} has no HTTP servers, and no login is kept.`);
    yield* output.document({ logins: shown });
    const usable = shown.some(({ state }) => state === "logged-in");
    return input.server === undefined || usable ? exitCodes.fine : exitCodes.unauthorized;
  });

/** Forgets the logins, with `--user` that of one person. The server is not told: its tokens end by themselves. */
export const logoutCommand: Command<{ readonly server: string }> = (input, { options, output }) =>
  Effect.gen(function* () {
    const server = yield* pickHttp(yield* openConfig(options.config), input.server);
    const tokens = yield* attempt("tokenStore", userTokens);
    const grants = grantsFor(yield* loadGrants, server.endpoint, options.user);
    for (const { key } of grants) yield* attempt("tokenStore", () => tokens.remove(key));
    const resources = grants.map(({ resource }) => resource);
    yield* output.text(
      grants.length > 0
        ? `Logged out of '${server.handle}' (${output.foreign(resources.join(", "))}).`
        : `Nobody was logged in to '${server.handle}'.`,
    );
    yield* output.document({ server: server.handle, removed: resources });
    return exitCodes.fine;
  });
