import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import type { TokenStore } from "../../../src/core/contracts.ts";
import { HttpEndpoint } from "../../../src/core/endpoint.ts";
import { tokenStore } from "../../../src/core/ports.ts";
import {
  AuthorizationCode,
  type AuthorizationCodeOptions,
} from "../../../src/plugins/credentials/authorization-code.ts";
import { parseGrantKey, readGrant } from "../../../src/plugins/credentials/stored-grant.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";
import { person } from "../../support/oauth-login.ts";
import type { OAuthScript, OAuthWorld } from "../../../src/testing/servers/oauth.ts";

const sha256 = async (text: string): Promise<string> => {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(hash)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
};

/** Each test is a user of its own, so that no test meets the tokens of another one. */
const login = (options: Partial<AuthorizationCodeOptions> = {}): AuthorizationCode =>
  new AuthorizationCode({ user: crypto.randomUUID(), ...person().host, ...options });

const rotating: OAuthScript["token"] = ({ form }, world) => ({
  expires_in: 600,
  refresh_token: `refresh-${world.tokenRequests.length}-of-${form["grant_type"]}`,
});

const memory = (): TokenStore & { readonly kept: Map<string, string> } => {
  const kept = new Map<string, string>();
  return {
    kept,
    load: (key) => kept.get(key),
    save: async (key, secret) => void kept.set(key, secret),
    remove: (key) => void kept.delete(key),
  };
};

const grants = (world: OAuthWorld) => world.tokenRequests.map(({ form }) => form["grant_type"]);

const pageWith = (supported: ReadonlyArray<string> | undefined) =>
  Effect.gen(function* () {
    const world = yield* openOAuth({ serverMetadata: () => ({ scopes_supported: supported }) });
    yield* send(login({ scope: "files" }), world.url);
    return world.logins[0]!;
  });

describe("login", () => {
  it.effect("registers, shows the page, checks what comes back and redeems the code", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ resourceMetadata: () => ({ scopes_supported: ["files"] }) });
      const user = person();
      const credential = login(user.host);
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });

      expect(world.registrations).toEqual([
        {
          client_name: "nucleo-mcp",
          redirect_uris: [user.host.redirectUri],
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
          token_endpoint_auth_method: "none",
          application_type: "native",
          scope: "files",
        },
      ]);
      expect(user.opened).toHaveLength(1);
      const asked = Object.fromEntries(user.opened[0]!.searchParams);
      expect(asked).toMatchObject({
        response_type: "code",
        client_id: "registered-1",
        redirect_uri: user.host.redirectUri,
        resource: world.url,
        scope: "files",
        code_challenge_method: "S256",
      });
      const { form } = world.tokenRequests[0]!;
      expect(form).toEqual({
        grant_type: "authorization_code",
        code: form["code"],
        code_verifier: form["code_verifier"],
        redirect_uri: user.host.redirectUri,
        resource: world.url,
        client_id: "registered-1",
      });
      expect(yield* Effect.promise(() => sha256(form["code_verifier"]!))).toBe(asked["code_challenge"]);
      expect(form["code_verifier"]!.length).toBeGreaterThanOrEqual(43);
      expect(asked["state"]!.length).toBeGreaterThanOrEqual(22);
    }),
  );

  it.effect.each<[string, Partial<AuthorizationCodeOptions>, Record<string, unknown>, string, number]>([
    ["registered beforehand", { clientId: "known" }, { client_id_metadata_document_supported: true }, "known", 0],
    [
      "a document the server takes",
      {},
      { client_id_metadata_document_supported: true },
      "https://app.example/client.json",
      0,
    ],
    ["a document the server does not take", {}, {}, "registered-1", 1],
  ])("is a client %s", ([, options, serverMetadata, clientId, registrations]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ serverMetadata: () => serverMetadata });
      const credential = login({ clientMetadataUrl: "https://app.example/client.json", ...options });
      expect((yield* send(credential, world.url)).status).toBe(200);
      expect(world.logins[0]?.get("client_id")).toBe(clientId);
      expect(world.registrations).toHaveLength(registrations);
    }),
  );

  it.effect("a server that registers nobody is a typed error that says what to give", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ serverMetadata: () => ({ registration_endpoint: undefined }) });
      const error = yield* Effect.flip(send(login(), world.url));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", retryable: false });
      expect(error.message).toContain("clientId");
    }),
  );

  it.effect.each<[string, string | undefined, ReadonlyArray<string> | undefined, string]>([
    ["as registered", "client_secret_post", undefined, "post"],
    ["as listed", undefined, ["client_secret_post"], "post"],
    ["by default", undefined, undefined, "basic"],
    ["not at all", undefined, ["none"], "none"],
  ])("a registered client with a secret authenticates %s", ([, registered, listed, expected]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        registration: () => ({ client_secret: "given-on-the-way", token_endpoint_auth_method: registered }),
        serverMetadata: () => ({ token_endpoint_auth_methods_supported: listed }),
      });
      yield* send(login(), world.url);
      const { form, authorization } = world.tokenRequests[0]!;
      const used = authorization ? "basic" : form["client_secret"] ? "post" : "none";
      expect(used).toBe(expected);
    }),
  );

  it.effect("asks for offline access where the server offers it, and for nothing where it does not", () =>
    Effect.gen(function* () {
      const with_ = yield* pageWith(["files", "offline_access"]);
      expect([with_.get("scope"), with_.get("prompt")]).toEqual(["files offline_access", "consent"]);
      const without = yield* pageWith(["files"]);
      expect([without.get("scope"), without.get("prompt")]).toEqual(["files", null]);
    }),
  );

  it.effect.each<[string, OAuthScript, ((redirect: URL) => URL | string) | undefined, string]>([
    ["another state", {}, (url) => (url.searchParams.set("state", "forged"), url), "state"],
    ["no state", {}, (url) => (url.searchParams.delete("state"), url), "state"],
    ["a second state", {}, (url) => (url.searchParams.append("state", "forged"), url), "state"],
    ["no code", {}, (url) => (url.searchParams.delete("code"), url), "no code"],
    ["two codes", {}, (url) => (url.searchParams.append("code", "x"), url), "no code"],
    ["no URL", {}, () => "hello", "not a URL"],
    [
      "a refusal",
      { redirect: () => ({ code: undefined, error: "access_denied", error_description: "no, thanks" }) },
      undefined,
      "access_denied: no, thanks",
    ],
    ["another issuer", { redirect: () => ({ iss: "https://evil.example" }) }, undefined, "iss"],
    ["the issuer with a slash", { redirect: (_asked, world) => ({ iss: `${world.issuer}/` }) }, undefined, "iss"],
    [
      "no issuer though promised",
      { serverMetadata: () => ({ authorization_response_iss_parameter_supported: true }) },
      undefined,
      "iss missing",
    ],
    [
      "a refusal of another issuer, which is not shown",
      { redirect: () => ({ iss: "https://evil.example", error: "call_this_number" }) },
      undefined,
      "is not from",
    ],
  ])("an answer with %s is refused before any code is redeemed", ([, script, change, words]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth(script);
      const error = yield* Effect.flip(send(login(person(change).host), world.url));
      expect(error).toMatchObject({ _tag: "Unauthorized", reason: "unauthenticated" });
      expect(error.message).toContain(words);
      expect(error.message).not.toContain("call_this_number");
      expect(world.tokenRequests).toEqual([]);
    }),
  );

  it.effect("the right issuer passes, promised or not (RFC 9207)", () =>
    Effect.gen(function* () {
      for (const promised of [true, undefined]) {
        const world = yield* openOAuth({
          redirect: (_asked, self) => ({ iss: self.issuer }),
          serverMetadata: () => ({ authorization_response_iss_parameter_supported: promised }),
        });
        expect((yield* send(login(), world.url)).status).toBe(200);
      }
    }),
  );

  it.effect.each([undefined, ["plain"]])("a server that does not promise PKCE with S256 is refused (%j)", (methods) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ serverMetadata: () => ({ code_challenge_methods_supported: methods }) });
      const error = yield* Effect.flip(send(login({ clientId: "known" }), world.url));
      expect(error.message).toContain("PKCE");
      expect(world.logins).toEqual([]);
    }),
  );

  it.effect("a server without any metadata is spoken to at the endpoints of MCP 2025-03-26", () =>
    Effect.gen(function* () {
      const seen: Array<string> = [];
      const world: OAuthWorld = yield* openOAuth({
        wellKnown: (exchange) => (exchange.text(404), true),
        guard: (exchange, token, self) => {
          const { pathname, searchParams } = new URL(exchange.request.path, self.resource.origin);
          seen.push(pathname);
          if (token !== undefined && self.accepted.has(token)) return false;
          if (pathname === "/register") exchange.json({ client_id: "old-style" }, 201);
          else if (pathname === "/token") exchange.json({ access_token: self.mint(), token_type: "Bearer" });
          else if (pathname === "/authorize") {
            const back = `${searchParams.get("redirect_uri")}?code=c&state=${searchParams.get("state")}`;
            exchange.text(302, "", { location: back });
          } else exchange.text(401);
          return true;
        },
      });
      expect((yield* send(login(), world.url)).status).toBe(200);
      expect(seen).toEqual(["/mcp", "/register", "/authorize", "/token", "/mcp"]);
    }),
  );

  it.effect("many calls open one page", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const user = person();
      const credential = login(user.host);
      yield* Effect.all(
        Array.from({ length: 10 }, () => send(credential, world.url)),
        { concurrency: "unbounded" },
      );
      expect(user.opened).toHaveLength(1);
    }),
  );

  it.effect("a person who never comes back is not waited for longer than five minutes", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const user = person(() => undefined);
      const fiber = yield* Effect.forkChild(Effect.flip(send(login(user.host), world.url)));
      yield* Effect.promise(async () => {
        while (user.opened.length === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      });
      yield* TestClock.adjust("5 minutes");
      const error = yield* Fiber.join(fiber);
      expect(error).toMatchObject({ _tag: "Unauthorized" });
      expect(error.message).toContain("within 5 min");
    }),
  );

  it.effect("another authorization server gets another registration and nothing of the first one", () =>
    Effect.gen(function* () {
      const other = yield* openOAuth({ registration: () => ({ client_id: "of-the-second" }) });
      let moved = false;
      const world = yield* openOAuth({
        token: rotating,
        resourceMetadata: () => (moved ? { authorization_servers: [other.issuer] } : {}),
        guard: (exchange, token, self) => {
          if (token !== undefined && (moved ? other : self).accepted.has(token)) return false;
          self.refuse(exchange, token === undefined ? {} : { error: "invalid_token" });
          return true;
        },
      });
      const credential = login();
      yield* send(credential, world.url);
      moved = true;
      expect((yield* send(credential, world.url)).status).toBe(200);
      expect(other.registrations).toHaveLength(1);
      expect(other.tokenRequests.map(({ form }) => [form["grant_type"], form["client_id"]])).toEqual([
        ["authorization_code", "of-the-second"],
      ]);
    }),
  );

  it.each<[string, Partial<AuthorizationCodeOptions>]>([
    ["openBrowser", { receiveRedirect: undefined }],
    ["openBrowser", { openBrowser: undefined }],
    ["redirectUri", { redirectUri: undefined }],
    ["redirectUri", { redirectUri: "http://app.example/callback" }],
    ["clientMetadataUrl", { clientMetadataUrl: "http://app.example/client.json" }],
    ["clientMetadataUrl", { clientMetadataUrl: "https://app.example/" }],
  ])("says at attach what is wrong with %s", (field, options) => {
    const fault = new HttpEndpoint({ url: "https://files.example/mcp", credential: login(options) }).validate();
    expect(fault).toMatchObject({ _tag: "InvalidEndpoint", field: `credential.${field}` });
  });
});

const endingWith = (code: string) => {
  let broken = false;
  return {
    end: () => {
      broken = true;
    },
    script: {
      token: (request, world, exchange) => {
        if (!broken || request.form["grant_type"] !== "refresh_token") return rotating(request, world, exchange);
        exchange.json({ error: code }, 400);
        return undefined;
      },
    } satisfies OAuthScript,
  };
};

describe("staying logged in", () => {
  it.effect("refreshes before the end and rotates the refresh token, without a page", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: rotating });
      const user = person();
      const credential = login(user.host);
      yield* send(credential, world.url);
      for (let round = 0; round < 2; round++) {
        yield* TestClock.adjust("545 seconds");
        expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
      }
      expect(grants(world)).toEqual(["authorization_code", "refresh_token", "refresh_token"]);
      expect(world.tokenRequests.map(({ form }) => form["refresh_token"])).toEqual([
        undefined,
        "refresh-1-of-authorization_code",
        "refresh-2-of-refresh_token",
      ]);
      expect(world.tokenRequests[1]?.form).toMatchObject({ resource: world.url, client_id: "registered-1" });
      expect(user.opened).toHaveLength(1);
    }),
  );

  it.effect("a refresh token that is not rotated is used again", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        token: ({ form }) => ({ expires_in: 600, ...(form["code"] ? { refresh_token: "for-ever" } : {}) }),
      });
      const credential = login();
      yield* send(credential, world.url);
      for (let round = 0; round < 2; round++) {
        world.accepted.clear();
        yield* send(credential, world.url);
      }
      expect(world.tokenRequests.map(({ form }) => form["refresh_token"])).toEqual([undefined, "for-ever", "for-ever"]);
    }),
  );

  it.effect("C-037: twenty calls that meet a refused token refresh once", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: rotating });
      const credential = login();
      yield* send(credential, world.url);
      world.accepted.clear();
      const calls = Array.from({ length: 20 }, () => send(credential, world.url));
      const results = yield* Effect.all(calls, { concurrency: "unbounded" });
      expect(results.every(({ status }) => status === 200)).toBe(true);
      expect(grants(world)).toEqual(["authorization_code", "refresh_token"]);
    }),
  );

  it.effect.each([
    ["invalid_grant", 1],
    ["invalid_client", 2],
  ] as const)(
    "a refresh token that ended with %s leads to a login, once the token has expired",
    ([code, registrations]) =>
      Effect.gen(function* () {
        const { end, script } = endingWith(code);
        const world = yield* openOAuth(script);
        const user = person();
        const credential = login(user.host);
        yield* send(credential, world.url);
        end();
        yield* TestClock.adjust("560 seconds");
        expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
        expect(user.opened).toHaveLength(1);
        yield* TestClock.adjust("40 seconds");
        expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
        expect(user.opened).toHaveLength(2);
        expect(world.registrations).toHaveLength(registrations);
      }),
  );

  it.effect("C-040: without a browser an ended login is a typed error at once", () =>
    Effect.gen(function* () {
      const { end, script } = endingWith("invalid_grant");
      const world = yield* openOAuth(script);
      const store = memory();
      const user = crypto.randomUUID();
      const withStore = Effect.provideService(tokenStore.service, store);
      yield* send(login({ user }), world.url).pipe(withStore);
      end();
      world.accepted.clear();
      const headless = new AuthorizationCode({ user });
      const error = yield* Effect.flip(send(headless, world.url)).pipe(withStore);
      expect(error).toMatchObject({ _tag: "Unauthorized", reason: "unauthenticated" });
      expect(error.message).toContain("log in again");
      expect(world.logins).toHaveLength(1);
    }),
  );

  it.effect("a wider scope needs the person again, and asks for the union", () =>
    Effect.gen(function* () {
      let narrow = true;
      const world = yield* openOAuth({
        token: rotating,
        guard: (exchange, token, self) => {
          if (token === undefined) self.refuse(exchange, { scope: "read" });
          else if (narrow) {
            narrow = false;
            self.refuse(exchange, { error: "insufficient_scope", scope: "write" }, 403);
          } else return false;
          return true;
        },
      });
      expect(yield* send(login(), world.url)).toEqual({ status: 200, attempts: 3 });
      expect(grants(world)).toEqual(["authorization_code", "authorization_code"]);
      expect(world.logins.map((asked) => asked.get("scope"))).toEqual(["read", "read write"]);
    }),
  );
});

/** Another process: the same login, with nothing in memory. A new client name makes it another identity. */
const laterProcess = (user: string, options: Partial<AuthorizationCodeOptions> = {}) =>
  login({ user, scope: crypto.randomUUID(), ...options });

describe("the token store", () => {
  it.effect("a login outlives the process, and its tokens are refreshed and kept", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: rotating });
      const store = memory();
      const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.provideService(effect, tokenStore.service, store);
      const user = crypto.randomUUID();
      yield* run(send(laterProcess(user), world.url));
      const [key] = [...store.kept.keys()];
      expect(parseGrantKey(key!)).toEqual({ user, client: "", resource: world.url });
      expect(readGrant(store.kept.get(key!)!)).toMatchObject({ issuer: world.issuer, token: { expiresAt: 600_000 } });

      const second = person();
      expect(yield* run(send(laterProcess(user, second.host), world.url))).toEqual({ status: 200, attempts: 2 });
      expect(grants(world)).toEqual(["authorization_code"]);

      world.accepted.clear();
      expect(yield* run(send(laterProcess(user, second.host), world.url))).toEqual({ status: 200, attempts: 3 });
      expect(grants(world)).toEqual(["authorization_code", "refresh_token"]);
      expect(world.tokenRequests[1]?.form["client_id"]).toBe("registered-1");

      yield* TestClock.adjust("1 hour");
      expect((yield* run(send(laterProcess(user, second.host), world.url))).status).toBe(200);
      expect(world.tokenRequests[2]?.form["refresh_token"]).toBe("refresh-2-of-refresh_token");
      expect(second.opened).toEqual([]);
      expect(store.kept.size).toBe(1);
    }),
  );

  it.effect("a token another process refreshed is used instead of a second refresh", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: rotating });
      const store = memory();
      const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.provideService(effect, tokenStore.service, store);
      const user = crypto.randomUUID();
      const [one, two] = [laterProcess(user), laterProcess(user)];
      yield* run(send(one, world.url));
      yield* run(send(two, world.url));
      yield* TestClock.adjust("560 seconds");
      yield* run(send(one, world.url));
      yield* run(send(two, world.url));
      expect(grants(world)).toEqual(["authorization_code", "refresh_token"]);
    }),
  );

  it.effect("acceptance 3: 5xx of the token endpoint loses nothing that is stored", () =>
    Effect.gen(function* () {
      let down = false;
      const world = yield* openOAuth({
        token: (request, self, exchange) => {
          if (!down) return rotating!(request, self, exchange);
          exchange.text(500);
          return undefined;
        },
      });
      const store = memory();
      const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.provideService(effect, tokenStore.service, store);
      const user = crypto.randomUUID();
      const credential = laterProcess(user);
      yield* run(send(credential, world.url));
      const before = new Map(store.kept);
      down = true;
      yield* TestClock.adjust("1 hour");
      const error = yield* Effect.flip(run(send(credential, world.url)));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", status: 500, retryable: true });
      expect(store.kept).toEqual(before);
      down = false;
      yield* TestClock.adjust("1 minute");
      expect(yield* run(send(credential, world.url))).toEqual({ status: 200, attempts: 1 });
      expect(world.logins).toHaveLength(1);
    }),
  );

  it.effect("what is kept of another issuer, or is no login at all, is not used", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: rotating });
      const store = memory();
      const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.provideService(effect, tokenStore.service, store);
      const user = crypto.randomUUID();
      yield* run(send(laterProcess(user), world.url));
      const [[key, secret]] = [...store.kept] as [[string, string]];
      const elsewhere = { ...(JSON.parse(secret) as object), issuer: "https://other.example" };
      for (const other of [JSON.stringify(elsewhere), "{}", "hello", '{"version":2}']) {
        store.kept.set(key, other);
        const user2 = person();
        yield* run(send(laterProcess(user, user2.host), world.url));
        expect(user2.opened).toHaveLength(1);
      }
      expect(grants(world)).not.toContain("refresh_token");
    }),
  );

  it.effect("a store that fails costs nothing but the keeping", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: rotating });
      const broken: TokenStore = {
        load: () => Promise.reject(new Error("locked")),
        save: () => {
          throw new Error("locked");
        },
        remove: () => {},
      };
      const result = yield* send(login(), world.url).pipe(Effect.provideService(tokenStore.service, broken));
      expect(result.status).toBe(200);
    }),
  );
});
