import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { openLoopbackReceiver } from "../../../src/cli/loopback-receiver.ts";
import { fileTokenStore } from "../../../src/plugins/stores/file-tokens.ts";
import {
  AgentSecret,
  AuthorizationCode,
  BearerToken,
  HttpEndpoint,
  make,
  type McpRuntime,
  ports,
} from "../../../src/effect.ts";
import { openOAuth } from "../../support/oauth-client.ts";

const echo = (runtime: McpRuntime) => runtime.callTool({ tool: "vault__echo", arguments: { a: 1 } });

const agent = () => new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot" });

describe("credentials in the runtime", () => {
  it.effect("many callers and the runtime's own requests share one token", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const runtime = yield* make();
      yield* runtime.attach("vault", new HttpEndpoint({ url: world.url, credential: agent() }));
      yield* Effect.all(
        Array.from({ length: 20 }, () => echo(runtime)),
        { concurrency: "unbounded" },
      );
      expect(world.tokenRequests).toHaveLength(1);
      world.accepted.clear();
      yield* Effect.all(
        Array.from({ length: 20 }, () => echo(runtime)),
        { concurrency: "unbounded" },
      );
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );

  it.effect("C-040: an authorization server that is down is told as itself, and opens no circuit", () =>
    Effect.gen(function* () {
      let down = true;
      const world = yield* openOAuth({
        token: (_request, _self, exchange) => {
          if (!down) return {};
          exchange.text(503);
          return undefined;
        },
      });
      const runtime = yield* make();
      yield* runtime.attach("vault", new HttpEndpoint({ url: world.url, name: "vault", credential: agent() }));
      const error = yield* Effect.flip(echo(runtime));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", server: "vault", status: 503, retryable: true });
      down = false;
      yield* TestClock.adjust("10 seconds");
      expect((yield* echo(runtime)).isError).toBe(false);
    }),
  );

  it.effect("C-042: a refused token and a narrow one reach the caller as typed errors", () =>
    Effect.gen(function* () {
      let status = 401;
      const world = yield* openOAuth({
        guard: (exchange, _token, self) => {
          self.refuse(exchange, { error: status === 401 ? "invalid_token" : "insufficient_scope", scope: "w" }, status);
          return true;
        },
      });
      const runtime = yield* make();
      const credential = new BearerToken({ token: "stale-token" });
      yield* runtime.attach("vault", new HttpEndpoint({ url: world.url, name: "vault", credential }));
      expect(yield* Effect.flip(echo(runtime))).toMatchObject({ _tag: "Unauthorized", reason: "token-rejected" });
      status = 403;
      yield* TestClock.adjust("10 seconds");
      expect(yield* Effect.flip(echo(runtime))).toMatchObject({ _tag: "InsufficientScope", scopes: ["w"] });
    }),
  );

  it.effect("a login over the loopback receiver, kept in the file store, serves the next runtime", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        token: () => ({ refresh_token: `refresh-${crypto.randomUUID()}`, expires_in: 600 }),
      });
      const directory = yield* Effect.acquireRelease(
        Effect.promise(() => mkdtemp(join(tmpdir(), "nucleo-login-"))),
        (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
      );
      const receiver = yield* Effect.acquireRelease(
        Effect.promise(() => openLoopbackReceiver()),
        (opened) => Effect.promise(() => opened.close()),
      );
      const user = crypto.randomUUID();
      const pages: Array<number> = [];
      const openBrowser = async (url: string): Promise<void> => {
        const response = await fetch(url);
        await response.body?.cancel();
        pages.push(response.status);
      };
      const { redirectUri, receiveRedirect } = receiver;
      const run = (credential: AuthorizationCode) =>
        Effect.scoped(
          Effect.gen(function* () {
            const runtime = yield* make({
              setup: (container) => container.registerInstance(ports.tokenStore.token, fileTokenStore({ directory })),
            });
            yield* runtime.attach("vault", new HttpEndpoint({ url: world.url, credential }));
            return yield* echo(runtime);
          }),
        );
      yield* run(new AuthorizationCode({ user, redirectUri, receiveRedirect, openBrowser }));
      expect(pages).toEqual([200]);
      const kept = yield* Effect.promise(() => fileTokenStore({ directory }).list());
      expect(kept).toHaveLength(1);

      yield* run(new AuthorizationCode({ user }));
      world.accepted.clear();
      yield* TestClock.adjust("20 minutes");
      yield* run(new AuthorizationCode({ user }));
      expect(world.tokenRequests.map(({ form }) => form["grant_type"])).toEqual([
        "authorization_code",
        "refresh_token",
      ]);
      expect(world.logins).toHaveLength(1);
    }),
  );
});
