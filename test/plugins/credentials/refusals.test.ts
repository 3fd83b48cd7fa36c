import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { AgentSecret } from "../../../src/plugins/credentials/agent-secret.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";
import type { OAuthScript } from "../../../src/testing/servers/oauth.ts";

const agent = (scope?: string): AgentSecret =>
  new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot", scope });

/** Grants the scopes asked for, and lets a request pass whose body asks for granted ones. */
const scoped = (
  grant: (asked: string) => string | undefined = (asked) => asked,
): OAuthScript & { granted: Map<string, string> } => {
  const granted = new Map<string, string>();
  return {
    granted,
    token: ({ form }, world) => {
      const access_token = world.mint();
      const scope = grant(form["scope"] ?? "");
      granted.set(access_token, scope ?? "");
      return { access_token, scope };
    },
    guard: (exchange, token, world) => {
      if (token === undefined || !world.accepted.has(token)) {
        world.refuse(exchange, { scope: "basic" });
        return true;
      }
      const needed = (exchange.request.rpc?.params?.needs ?? "basic") as string;
      const has = granted.get(token)?.split(" ") ?? [];
      if (needed.split(" ").every((scope) => has.includes(scope))) return false;
      world.refuse(exchange, { error: "insufficient_scope", scope: needed }, 403);
      return true;
    },
  };
};

const needing = (scope: string) => ({
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping", params: { needs: scope } }),
});

const firstScope = (script: OAuthScript, scope?: string) =>
  Effect.gen(function* () {
    const world = yield* openOAuth(script);
    yield* send(agent(scope), world.url);
    return world.tokenRequests[0]?.form["scope"];
  });

describe("scopes", () => {
  it.effect("a challenge names the first scopes, the resource metadata stands in, and the host goes before both", () =>
    Effect.gen(function* () {
      const supported = { resourceMetadata: () => ({ scopes_supported: ["one", "two"] }) };
      expect(yield* firstScope({ ...scoped(), ...supported })).toBe("basic");
      expect(yield* firstScope(supported)).toBe("one two");
      expect(yield* firstScope({})).toBeUndefined();
      expect(yield* firstScope({ ...scoped(() => "basic mine"), ...supported }, "mine")).toBe("mine");
    }),
  );

  it.effect("a wider scope is asked for as the union with all before, and kept", () =>
    Effect.gen(function* () {
      const script = scoped();
      const world = yield* openOAuth(script);
      const credential = agent();
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      expect(yield* send(credential, world.url, needing("write"))).toEqual({ status: 200, attempts: 2 });
      expect(yield* send(credential, world.url, needing("admin"))).toEqual({ status: 200, attempts: 2 });
      expect(yield* send(credential, world.url, needing("write admin basic"))).toEqual({ status: 200, attempts: 1 });
      world.accepted.clear();
      expect(yield* send(credential, world.url, needing("write"))).toEqual({ status: 200, attempts: 2 });
      expect(world.tokenRequests.map(({ form }) => form["scope"])).toEqual([
        "basic",
        "basic write",
        "basic write admin",
        "basic write admin",
      ]);
    }),
  );

  it.effect("a first call may be refused for a token, then for a scope", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth(scoped());
      expect(yield* send(agent(), world.url, needing("write"))).toEqual({ status: 200, attempts: 3 });
    }),
  );

  it.effect("scopes the server granted by itself are kept in the union", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ ...scoped((asked) => (asked === "basic" ? "basic default" : asked)) });
      const credential = agent("basic");
      yield* send(credential, world.url);
      yield* send(credential, world.url, needing("write"));
      expect(world.tokenRequests.at(-1)?.form["scope"]).toBe("basic default write");
    }),
  );

  it.effect("C-042: a scope that is never granted is InsufficientScope with its names, after one try", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth(scoped(() => "basic"));
      const credential = agent();
      yield* send(credential, world.url);
      const error = yield* Effect.flip(send(credential, world.url, needing("write")));
      expect(error).toMatchObject({ _tag: "InsufficientScope", server: "vault", scopes: ["write"] });
      expect(world.tokenRequests).toHaveLength(2);
      expect(yield* Effect.flip(send(credential, world.url, needing("write")))).toMatchObject({
        _tag: "InsufficientScope",
      });
      expect(world.tokenRequests).toHaveLength(2);
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
    }),
  );

  it.effect("a scope the token endpoint refuses costs neither the old token nor a second request at once", () =>
    Effect.gen(function* () {
      const script = scoped();
      const world = yield* openOAuth({
        ...script,
        token: (request, self, exchange) => {
          if (!request.form["scope"]?.includes("write")) return script.token!(request, self, exchange);
          exchange.json({ error: "invalid_scope" }, 400);
          return undefined;
        },
      });
      const credential = agent();
      yield* send(credential, world.url);
      const error = yield* Effect.flip(send(credential, world.url, needing("write")));
      expect(error).toMatchObject({ _tag: "InsufficientScope", scopes: ["write"], cause: { error: "invalid_scope" } });
      yield* Effect.flip(send(credential, world.url, needing("write")));
      expect(world.tokenRequests).toHaveLength(2);
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
    }),
  );

  it.effect("a server that names a new scope each time is not followed for ever", () =>
    Effect.gen(function* () {
      let count = 0;
      const script = scoped();
      const world = yield* openOAuth({
        ...script,
        guard: (exchange, token, self) => {
          if (token === undefined) return script.guard!(exchange, token, self);
          self.refuse(exchange, { error: "insufficient_scope", scope: `scope-${++count}` }, 403);
          return true;
        },
      });
      const credential = agent();
      for (let call = 0; call < 20; call++) {
        expect(yield* Effect.flip(send(credential, world.url))).toMatchObject({ _tag: "InsufficientScope" });
      }
      expect(world.tokenRequests.length).toBeLessThan(15);
    }),
  );

  it.effect("calls that need the same wider scope together widen once", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth(scoped());
      const credential = agent();
      yield* send(credential, world.url);
      const calls = Array.from({ length: 10 }, () => send(credential, world.url, needing("write")));
      const results = yield* Effect.all(calls, { concurrency: "unbounded" });
      expect(results.every(({ status }) => status === 200)).toBe(true);
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );
});

/** The error when every token is refused like this, and what the next call says. */
const refusedWith = (answer: OAuthScript["guard"]) =>
  Effect.gen(function* () {
    const world = yield* openOAuth({
      guard: (exchange, token, self) => (token ? answer!(exchange, token, self) : (self.refuse(exchange), true)),
    });
    const credential = agent();
    const error = yield* Effect.flip(send(credential, world.url));
    return { error, world, credential };
  });

describe("refusals", () => {
  it.effect.each<[string, OAuthScript["guard"], Record<string, unknown>, string]>([
    [
      "403 with insufficient_scope",
      (exchange, _token, world) => (world.refuse(exchange, { error: "insufficient_scope", scope: "a b" }, 403), true),
      { _tag: "InsufficientScope", scopes: ["a", "b"] },
      "wants a wider scope: a b",
    ],
    [
      "403 without challenge",
      (exchange) => (exchange.text(403), true),
      { _tag: "Unauthorized", reason: "forbidden" },
      "forbids",
    ],
    [
      "403 from a firewall",
      (exchange) => (exchange.text(403, "<html>Request blocked by WAF</html>"), true),
      { _tag: "Unauthorized", reason: "forbidden" },
      "Request blocked by WAF",
    ],
    [
      "401 with invalid_token",
      (exchange, _token, world) => (
        world.refuse(exchange, { error: "invalid_token", error_description: "of another audience" }),
        true
      ),
      { _tag: "Unauthorized", reason: "token-rejected" },
      "of another audience",
    ],
    [
      "401 without challenge",
      (exchange) => (exchange.text(401), true),
      { _tag: "Unauthorized", reason: "unauthenticated" },
      "wants",
    ],
  ])("C-042: %s is an error of its own", ([, answer, expected, words]) =>
    Effect.gen(function* () {
      const { error } = yield* refusedWith(answer);
      expect(error).toMatchObject({ server: "vault", ...expected });
      expect(error.message).toContain(words);
    }),
  );

  it.effect("C-042: a 403 leaves the token as it is", () =>
    Effect.gen(function* () {
      const { world, credential } = yield* refusedWith((exchange) => (exchange.text(403), true));
      yield* Effect.flip(send(credential, world.url));
      yield* Effect.flip(send(credential, world.url));
      expect(world.tokenRequests).toHaveLength(1);
    }),
  );

  it.effect("bad input: 401 for ever ends after one new token, and for the next ones within the pause at once", () =>
    Effect.gen(function* () {
      const { world, credential, error } = yield* refusedWith(
        (exchange, _token, self) => (self.refuse(exchange, { error: "invalid_token" }), true),
      );
      expect(world.tokenRequests).toHaveLength(1);
      expect(yield* Effect.flip(send(credential, world.url))).toBe(error);
      expect(world.tokenRequests).toHaveLength(1);
      yield* TestClock.adjust("1 second");
      expect(yield* Effect.flip(send(credential, world.url))).toMatchObject({
        _tag: "Unauthorized",
        reason: "token-rejected",
      });
      expect(world.tokenRequests).toHaveLength(3);
    }),
  );

  it.effect("a server that asks for nothing gets no token", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ guard: () => false });
      expect(yield* send(agent(), world.url)).toEqual({ status: 200, attempts: 1 });
      expect(world.passed).toEqual(["(none)"]);
      expect(world.tokenRequests).toEqual([]);
    }),
  );

  it.effect.each(["http://files.example/mcp", "http://10.0.0.1/mcp"])("no credential goes to %s", (url) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(send(agent(), url));
      expect(error).toMatchObject({ _tag: "InvalidEndpoint", field: "url" });
    }),
  );

  it.effect("a plain object is no credential", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(send({ kind: "agent-secret", user: "x" }, "https://files.example"));
      expect(error.message).toContain("new AgentSecret");
    }),
  );
});
