/** URLs that come from servers lead into no network but the public one and the endpoint's own. */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { AgentSecret } from "../../../src/plugins/credentials/agent-secret.ts";
import { AuthorizationCode } from "../../../src/plugins/credentials/authorization-code.ts";
import { EnterpriseManaged } from "../../../src/plugins/credentials/enterprise-managed.ts";
import { startScriptedHttp } from "../../../src/testing/servers/http.ts";
import type { OAuthScript } from "../../../src/testing/servers/oauth.ts";
import { authorize, openOAuth, send } from "../../support/oauth-client.ts";

const agent = (more = {}): AgentSecret =>
  new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot", ...more });

/** Refuses the first request to a server that is somewhere else, and names metadata on this machine. */
const challenged = (credential: AgentSecret, url: string, resourceMetadata: string) =>
  authorize(credential, {
    url,
    method: "POST",
    server: "vault",
    rejected: {
      status: 401,
      challenge: `Bearer resource_metadata="${resourceMetadata}"`,
      authorization: undefined,
    },
  });

const inward = [
  ["https://169.254.169.254/latest", "link-local"],
  ["https://10.0.0.1:8443/as", "private network"],
  ["https://192.168.1.1", "private network"],
  ["https://[fd00::1]/as", "private network"],
  ["https://[::ffff:10.0.0.1]/as", "private network"],
  ["https://0xa9fea9fe/as", "link-local"],
  ["https://0.0.0.0:9/as", "reserved"],
  ["http://10.0.0.1/as", "neither https nor on this machine"],
] as const;

const hostOf = (url: string) => new URL(url).host;

describe("a server that is not on this machine", () => {
  it.effect.each(["https://mcp.example/mcp", "https://1.1.1.1/mcp", "https://10.0.0.1/mcp", "https://[fe80::1]/mcp"])(
    "%s cannot have this machine asked",
    (url) =>
      Effect.gen(function* () {
        const world = yield* openOAuth();
        for (const host of [world.resource.origin, world.resource.origin.replace("127.0.0.1", "localhost")]) {
          const target = `${host}/.well-known/oauth-protected-resource/mcp`;
          // Another identity: a failure is remembered for a while.
          const error = yield* Effect.flip(challenged(agent({ clientId: host }), url, target));
          expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", server: "vault", retryable: false });
          expect(error.message).toContain(hostOf(host));
          expect(error.message).toMatch(/on this machine, where the server itself is not.*told its issuer/);
        }
        expect(world.order).toEqual([]);
      }),
  );

  it.effect("an issuer that the host gave may be asked wherever it is", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        wellKnown: (exchange, self) => {
          if (exchange.request.path !== "/.well-known/oauth-protected-resource/mcp") return false;
          exchange.json({ resource: "https://mcp.example/mcp", authorization_servers: [self.issuer] });
          return true;
        },
      });
      const url = "https://mcp.example/mcp";
      const given = yield* challenged(agent({ issuer: world.issuer }), url, world.resourceMetadataUrl);
      expect(given.headers["Authorization"]).toMatch(/^Bearer access-/);
    }),
  );
});

describe("a server on this machine", () => {
  const scripts: ReadonlyArray<readonly [string, (target: string) => OAuthScript]> = [
    [
      "resource_metadata",
      (target) => ({
        guard: (exchange, _token, world) => {
          world.refuse(exchange, { resource_metadata: target });
          return true;
        },
      }),
    ],
    ["authorization_servers", (target) => ({ resourceMetadata: () => ({ authorization_servers: [target] }) })],
    ["token_endpoint", (target) => ({ serverMetadata: () => ({ token_endpoint: target }) })],
    ["authorization_endpoint", (target) => ({ serverMetadata: () => ({ authorization_endpoint: target }) })],
    ["registration_endpoint", (target) => ({ serverMetadata: () => ({ registration_endpoint: target }) })],
  ];
  for (const [where, script] of scripts)
    it.effect.each(inward)(`leads by its ${where} to no other network: %s`, ([target, why]) =>
      Effect.gen(function* () {
        const world = yield* openOAuth(script(target));
        const error = yield* Effect.flip(send(agent(), world.url));
        expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", server: "vault", retryable: false });
        expect(error.message).toContain(why);
        expect(error.message).toContain(hostOf(target));
        expect(world.tokenRequests).toEqual([]);
      }),
    );

  it.effect("a page to log in on is opened nowhere else", () =>
    Effect.gen(function* () {
      const opened: Array<string> = [];
      const world = yield* openOAuth({
        serverMetadata: () => ({ authorization_endpoint: "https://192.168.0.1/reboot" }),
      });
      const login = new AuthorizationCode({
        redirectUri: "http://127.0.0.1:1/callback",
        openBrowser: (url) => void opened.push(url),
        receiveRedirect: () => new Promise(() => {}),
      });
      const error = yield* Effect.flip(send(login as never, world.url));
      expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed" });
      expect(error.message).toContain("authorization_endpoint, https://192.168.0.1/reboot");
      expect(opened).toEqual([]);
    }),
  );

  it.effect("a redirect of a metadata document to another origin is not followed, not even on this machine", () =>
    Effect.gen(function* () {
      const victim = yield* Effect.acquireRelease(
        Effect.promise(() => startScriptedHttp((exchange) => exchange.json({ secret: true }))),
        (server) => Effect.promise(() => server[Symbol.asyncDispose]()),
      );
      const world = yield* openOAuth({
        wellKnown: (exchange) => {
          exchange.text(302, "", { location: `${victim.origin}/admin` });
          return true;
        },
      });
      expect(yield* Effect.flip(send(agent(), world.url))).toMatchObject({ _tag: "AuthorizationDiscoveryFailed" });
      expect(victim.requests).toEqual([]);
    }),
  );
});

describe("an identity provider", () => {
  it.effect("the host's own choice may be anywhere, and leads nowhere but there", () =>
    Effect.gen(function* () {
      const provider = yield* openOAuth({ serverMetadata: () => ({ token_endpoint: "https://10.0.0.1/token" }) });
      const world = yield* openOAuth();
      const credential = new EnterpriseManaged({
        clientId: "robot",
        identityProvider: { issuer: provider.issuer, clientId: "robot" },
        subjectToken: () => "subject",
        user: "ann",
      });
      const error = yield* Effect.flip(send(credential as never, world.url));
      expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed" });
      expect(error.message).toContain("10.0.0.1");
      expect(provider.order).toEqual(["GET issuer /.well-known/oauth-authorization-server"]);
    }),
  );
});
