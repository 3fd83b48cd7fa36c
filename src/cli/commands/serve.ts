/** `serve`: the servers of a configuration for any number of MCP clients, each server running once. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { InvalidConfig, type McpError } from "../../core/errors.ts";
import * as Ports from "../../core/ports.ts";
import type { McpJson } from "../../plugins/endpoints/mcp-json.ts";
import { loggerObserver } from "../../plugins/observers/logger.ts";
import { createGateway, type Gateway } from "../../serve.ts";
import { fileArtifactStore } from "../../stores.ts";
import { attempt } from "../attempt.ts";
import { warnOfFaults } from "../config.ts";
import { exitCodes } from "../exit-code.ts";
import { publishRecord, tokenVariable } from "../gateway-record.ts";
import type { Command, Session } from "../session.ts";
import { openServers } from "../stored-logins.ts";
import { userPins, userTokens } from "../user-folders.ts";

export interface ServeInput {
  /** `host:port`. */
  readonly http: string;
  readonly stdio: boolean;
  /** Names in the Host header, by comma, where others than this machine connect. */
  readonly allowHost: string | undefined;
  /** Folder in which large results are kept for `get_artifact_field`. */
  readonly artifacts: string | undefined;
  /** End when no client was there for so long. */
  readonly untilIdle: Duration.Duration | undefined;
  /** Where to leave the address for `connect`. */
  readonly record: string | undefined;
}

/** A gateway with the servers attached; it ends with the scope, and the servers with it. */
const openGateway = (
  { options: { timeout, verbose }, output, spinner }: Session,
  config: McpJson,
  artifacts: string | undefined,
): Effect.Effect<Gateway, McpError, Scope.Scope> =>
  Effect.gen(function* () {
    const limits = timeout && { connectTimeout: timeout, requestTimeout: timeout, maxTotalTimeout: timeout };
    const tokens = yield* attempt("tokenStore", userTokens);
    const pins = yield* attempt("pinStore", userPins);
    const gateway = yield* Effect.acquireRelease(
      attempt("gateway", () =>
        createGateway({
          settings: { ...limits },
          serve: { artifacts: artifacts !== undefined },
          setup: (container) => {
            container.registerInstance(Ports.tokenStore.token, tokens);
            container.registerInstance(Ports.pinStore.token, pins);
            if (artifacts !== undefined)
              container.registerInstance(Ports.artifactStore.token, fileArtifactStore({ directory: artifacts }));
            if (verbose) container.registerInstance(Ports.observers.token, loggerObserver);
          },
        }),
      ),
      (gateway) => spinner.during("closing the servers", Effect.promise(gateway.close)),
    );
    for (const { handle, endpoint, pin } of config.servers)
      yield* Effect.catch(
        attempt("gateway", () => gateway.runtime.attach(handle, endpoint, { pin })),
        (error) => output.warn(error.message),
      );
    return gateway;
  });

/** `host:port`, `:port`, `[::1]:port`. */
const readAddress = (
  text: string,
): Effect.Effect<{ readonly hostname: string; readonly port: number }, InvalidConfig> => {
  const [, host, digits] = /^(\[[^\]]+\]|[^:]*):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (host === undefined || port > 65_535)
    return Effect.fail(
      new InvalidConfig({ source: "--http", field: text, reason: "is no address", fix: "Give 127.0.0.1:7777." }),
    );
  return Effect.succeed({ hostname: host.replace(/^\[|\]$/g, "") || "127.0.0.1", port });
};

/** Settles when there was no client for the time; never without one. */
const idle = (gateway: Gateway, limit: Duration.Duration | undefined): Effect.Effect<void> => {
  if (limit === undefined) return Effect.never;
  const step = Math.min(Duration.toMillis(limit), 1_000);
  const wait = (quiet: number): Effect.Effect<void> =>
    quiet >= Duration.toMillis(limit)
      ? Effect.void
      : Effect.flatMap(Effect.sleep(Duration.millis(step)), () => wait(gateway.clients() > 0 ? 0 : quiet + step));
  return wait(0);
};

/** Serves until a signal comes, the client of stdio goes, or nobody was there for `--until-idle`. */
export const serveCommand: Command<ServeInput> = (input, session) =>
  Effect.gen(function* () {
    const { output } = session;
    const config = yield* openServers(session);
    yield* warnOfFaults(config, output);
    if (input.stdio) {
      const gateway = yield* openGateway(session, config, input.artifacts);
      session.untilSignalled();
      yield* attempt("gateway", gateway.stdio);
      return exitCodes.fine;
    }
    const address = yield* readAddress(input.http);
    const token = process.env[tokenVariable];
    const gateway = yield* openGateway(session, config, input.artifacts);
    const allowedHosts = input.allowHost?.split(",").map((name) => name.trim());
    const { url } = yield* attempt("gateway", () => gateway.listen({ ...address, token, allowedHosts }));
    session.untilSignalled();
    if (input.record !== undefined) yield* publishRecord(input.record, { pid: process.pid, url, token: token ?? "" });
    yield* output.note(`${config.servers.length} servers of ${config.source} are served. Ctrl-C ends them.`);
    yield* output.text(url);
    yield* output.document({ url, servers: config.servers.map(({ handle }) => handle) });
    yield* idle(gateway, input.untilIdle);
    return exitCodes.fine;
  });
