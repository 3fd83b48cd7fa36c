import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { SignJWT } from "jose";
import * as TestClock from "effect/testing/TestClock";
import { AgentSecret } from "../../../src/plugins/credentials/agent-secret.ts";
import { authorize, openOAuth, send } from "../../support/oauth-client.ts";
import type { OAuthWorld } from "../../../src/testing/servers/oauth.ts";

const agent = (): AgentSecret => new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot" });

const many = <A, E>(count: number, one: Effect.Effect<A, E>) =>
  Effect.all(
    Array.from({ length: count }, () => one),
    { concurrency: "unbounded" },
  );

/** Holds token answers back until as many requests stand before the servers as the test wants. */
const gate = () => {
  let open!: () => void;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
};

const until = (condition: () => boolean) =>
  Effect.promise(async () => {
    const deadline = Date.now() + 5_000;
    while (!condition()) {
      if (Date.now() > deadline) throw new Error("the condition did not come true in 5 s");
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  });

const arrivals = (world: OAuthWorld): number => world.order.filter((line) => line === "POST resource /mcp").length;

describe("one token for all", () => {
  it.effect("C-037: twenty cold callers make one token request", () =>
    Effect.gen(function* () {
      const hold = gate();
      const world = yield* openOAuth({ token: () => hold.opened.then(() => ({})) });
      const credential = agent();
      const fiber = yield* Effect.forkChild(many(20, send(credential, world.url)));
      yield* until(() => arrivals(world) === 20 && world.tokenRequests.length === 1);
      hold.open();
      const results = yield* Fiber.join(fiber);
      expect(results.every(({ status }) => status === 200)).toBe(true);
      expect(world.tokenRequests).toHaveLength(1);
      expect(new Set(world.passed).size).toBe(1);
    }),
  );

  it.effect("acceptance 3: a hundred calls that meet one expired token make one token request", () =>
    Effect.gen(function* () {
      const hold = gate();
      const world = yield* openOAuth({
        token: (_request, self) => (self.tokenRequests.length === 1 ? {} : hold.opened.then(() => ({}))),
      });
      const credential = agent();
      yield* send(credential, world.url);
      world.accepted.clear();
      const before = arrivals(world);
      const fiber = yield* Effect.forkChild(many(100, send(credential, world.url)));
      yield* until(() => arrivals(world) === before + 100);
      hold.open();
      const results = yield* Fiber.join(fiber);
      expect(results.filter(({ status, attempts }) => status === 200 && attempts === 2)).toHaveLength(100);
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );

  it.effect("C-037: a straggler's refusal of the old token fetches no other one", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const credential = agent();
      yield* send(credential, world.url);
      const request = { url: world.url, method: "POST" };
      const old = yield* authorize(credential, request);
      const straggler = yield* authorize(credential, request);
      const rejected = { status: 401, challenge: 'Bearer error="invalid_token"' };
      const second = yield* authorize(credential, { ...request, rejected: { ...rejected, authorization: old } });
      const before = world.order.length;
      const third = yield* authorize(credential, { ...request, rejected: { ...rejected, authorization: straggler } });
      expect(second.headers["Authorization"]).not.toBe(old.headers["Authorization"]);
      expect(third.headers).toEqual(second.headers);
      expect(world.order).toHaveLength(before);
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );

  it.effect("C-037: a failed request fails all who wait, once, and the next one after a pause", () =>
    Effect.gen(function* () {
      const hold = gate();
      let broken = true;
      const world = yield* openOAuth({
        token: async (_request, _self, exchange) => {
          if (!broken) return {};
          await hold.opened;
          exchange.text(503, "down");
          return undefined;
        },
      });
      const credential = agent();
      const fiber = yield* Effect.forkChild(many(20, Effect.flip(send(credential, world.url))));
      yield* until(() => arrivals(world) === 20 && world.tokenRequests.length === 1);
      hold.open();
      const errors = yield* Fiber.join(fiber);
      expect(new Set(errors).size).toBe(1);
      expect(errors[0]).toMatchObject({ _tag: "TokenEndpointFailed", status: 503, retryable: true });
      expect(yield* Effect.flip(send(credential, world.url))).toBe(errors[0]);
      expect(world.tokenRequests).toHaveLength(1);
      broken = false;
      yield* TestClock.adjust("1 second");
      expect((yield* send(credential, world.url)).status).toBe(200);
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );

  it.effect("a caller that gives up does not fail the others", () =>
    Effect.gen(function* () {
      const hold = gate();
      const world = yield* openOAuth({ token: () => hold.opened.then(() => ({})) });
      const credential = agent();
      const first = yield* Effect.forkChild(send(credential, world.url));
      yield* until(() => world.tokenRequests.length === 1);
      const second = yield* Effect.forkChild(send(credential, world.url));
      yield* Fiber.interrupt(first);
      hold.open();
      expect((yield* Fiber.join(second)).status).toBe(200);
      expect(world.tokenRequests).toHaveLength(1);
    }),
  );

  it.effect("credentials that differ in anything share nothing, and equal ones share the token", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const options = { clientId: "robot", clientSecret: "s3cr3t-of-the-robot" };
      const others = [{}, { clientSecret: "another-secret" }, { user: "else" }, { scope: "read" }, {}];
      for (const other of others) yield* send(new AgentSecret({ ...options, ...other }), world.url);
      expect(world.tokenRequests).toHaveLength(4);
    }),
  );
});

/** How many token requests a call makes at each of these moments, in seconds after the first. */
const requestsAt = (answer: Record<string, unknown>, moments: ReadonlyArray<number>) =>
  Effect.gen(function* () {
    const world = yield* openOAuth({ token: () => answer });
    const credential = agent();
    yield* send(credential, world.url);
    const counts: Array<number> = [];
    let now = 0;
    for (const moment of moments) {
      yield* TestClock.adjust(`${moment - now} seconds`);
      now = moment;
      yield* send(credential, world.url);
      counts.push(world.tokenRequests.length);
    }
    return counts;
  });

const jwt = (claims: Record<string, number>) =>
  Effect.promise(() => new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(new Uint8Array(32)));

describe("lifetime", () => {
  it.effect.each<[string, unknown, ReadonlyArray<number>, ReadonlyArray<number>]>([
    ["an hour: renewed a minute before the end", 3600, [3539, 3540], [1, 2]],
    ["an hour as text", "3600", [3539, 3540], [1, 2]],
    ["thirty seconds: renewed three seconds before", 30, [1, 26, 27, 28, 53, 54], [1, 1, 2, 2, 2, 3]],
    ["one second", 1, [0, 1], [1, 2]],
    ["none", undefined, [1e6], [1]],
    ["null", null, [1e6], [1]],
    ["zero", 0, [1e6], [1]],
    ["negative", -60, [1e6], [1]],
    ["31,000 years", 1e12, [1e6], [1]],
    ["words", "soon", [1e6], [1]],
    ["blank", "", [1e6], [1]],
    ["a list", [60], [1e6], [1]],
  ])("C-038: expires_in %s", ([, expiresIn, moments, counts]) =>
    Effect.gen(function* () {
      expect(yield* requestsAt({ expires_in: expiresIn }, moments)).toEqual(counts);
    }),
  );

  it.effect.each<[string, Record<string, number>]>([
    ["by its own clock", { iat: 1_000_000, exp: 1_000_300 }],
    ["with a clock 90 s ahead", { iat: 90, exp: 390 }],
    ["by our clock", { exp: 300 }],
  ])("C-038: without expires_in the exp of a JWT is a hint, %s", ([, claims]) =>
    Effect.gen(function* () {
      const access_token = yield* jwt(claims);
      const world = yield* openOAuth({
        token: (_request, self) => {
          self.accepted.add(access_token);
          return { access_token };
        },
      });
      const credential = agent();
      yield* send(credential, world.url);
      yield* TestClock.adjust("269 seconds");
      yield* send(credential, world.url);
      expect(world.tokenRequests).toHaveLength(1);
      yield* TestClock.adjust("2 seconds");
      yield* send(credential, world.url);
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );

  it.effect("C-038: a JWT that expired on arrival, or none at all, is used until it is refused", () =>
    Effect.gen(function* () {
      const expired = yield* jwt({ exp: -5 });
      for (const access_token of [expired, "a.b.c", "opaque"]) {
        const world = yield* openOAuth({
          token: (_request, self) => {
            self.accepted.add(access_token);
            return { access_token };
          },
        });
        const credential = agent();
        for (let call = 0; call < 3; call++) yield* send(credential, world.url);
        expect(world.tokenRequests).toHaveLength(1);
      }
    }),
  );

  it.effect("C-038: a token that the server refuses before its time is renewed once", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: () => ({ expires_in: 3600 }) });
      const credential = agent();
      yield* send(credential, world.url);
      world.accepted.clear();
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );
});

const failing = (status: () => number | undefined, body: Record<string, unknown> = {}) =>
  openOAuth({
    token: (_request, _self, exchange) => {
      const code = status();
      if (code === undefined) return { expires_in: 600 };
      exchange.json(body, code, { "retry-after": "7" });
      return undefined;
    },
  });

describe("a token endpoint that fails", () => {
  it.effect("acceptance 3: while it answers 5xx the old token is used to its end, and then the error is typed", () =>
    Effect.gen(function* () {
      let status: number | undefined;
      const world = yield* failing(() => status);
      const credential = agent();
      yield* send(credential, world.url);
      status = 503;
      yield* TestClock.adjust("560 seconds");
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
      expect(world.tokenRequests).toHaveLength(2);
      yield* TestClock.adjust("40 seconds");
      const error = yield* Effect.flip(send(credential, world.url));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", status: 503, retryable: true, retryAfter: 7_000 });
      status = undefined;
      yield* TestClock.adjust("7 seconds");
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
    }),
  );

  it.effect("C-040: expiry leads to a new client credentials request, and never to a login", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: () => ({ expires_in: 600, refresh_token: "never-to-be-used" }) });
      const credential = agent();
      yield* send(credential, world.url);
      yield* TestClock.adjust("600 seconds");
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
      expect(world.tokenRequests.map(({ form }) => form["grant_type"])).toEqual([
        "client_credentials",
        "client_credentials",
      ]);
      expect(world.logins).toEqual([]);
    }),
  );

  it.effect.each<[number, string, boolean]>([
    [401, "invalid_client", false],
    [400, "unauthorized_client", false],
    [400, "invalid_scope", false],
    [503, "temporarily_unavailable", true],
    [400, "temporarily_unavailable", true],
    [429, "rate_limited", true],
  ])("C-040: HTTP %s is a typed error at once", ([status, code, retryable]) =>
    Effect.gen(function* () {
      let now: number | undefined;
      const world = yield* failing(() => now, { error: code, error_description: "says why" });
      const credential = agent();
      yield* send(credential, world.url);
      now = status;
      yield* TestClock.adjust("600 seconds");
      const error = yield* Effect.flip(send(credential, world.url));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", server: "vault", error: code, status, retryable });
      expect(error.message).toContain("says why");
      expect(error.message).toContain(`${world.issuer}/token`);
      expect(world.tokenRequests).toHaveLength(2);
      expect(world.logins).toEqual([]);
    }),
  );

  it.effect("C-040: one that cannot be reached is told from a server that cannot", () =>
    Effect.gen(function* () {
      const gone = yield* Effect.scoped(Effect.map(openOAuth(), (world) => world.issuer));
      const world = yield* openOAuth({ serverMetadata: () => ({ token_endpoint: `${gone}/token` }) });
      const error = yield* Effect.flip(send(agent(), world.url));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", retryable: true });
      expect(error.message).toContain("could not be reached");
    }),
  );

  it.effect.each<[string, Record<string, unknown> | string]>([
    ["no JSON", "<html>token</html>"],
    ["a list", "[]"],
    ["no access_token", { access_token: undefined, token_type: "Bearer" }],
    ["an empty access_token", { access_token: "" }],
    ["a number as access_token", { access_token: 7 }],
    ["a token with a line break", { access_token: "abc\r\nX-Evil: 1" }],
    ["a token of another type", { token_type: "mac" }],
    ["a token type that no text can be made of", { token_type: { toString: null } }],
    ["an error with HTTP 200", { error: "invalid_request" }],
  ])("bad input: an answer with %s is a typed error", ([, answer]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        token: (_request, self, exchange) => {
          const document =
            typeof answer === "string" ? answer : JSON.stringify({ access_token: self.mint(), ...answer });
          exchange.text(200, document);
          return undefined;
        },
      });
      const error = yield* Effect.flip(send(agent(), world.url));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", retryable: false });
      expect(world.passed).toEqual([]);
    }),
  );
});
