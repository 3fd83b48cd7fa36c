import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { AgentSecret } from "../../../src/plugins/credentials/agent-secret.ts";
import type { HttpExchange } from "../../../src/testing/servers/http.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";
import type { OAuthScript, OAuthWorld } from "../../../src/testing/servers/oauth.ts";

const agent = (more = {}): AgentSecret =>
  new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot", ...more });

const PATH_FORM = "/.well-known/oauth-protected-resource/mcp";
const ROOT_FORM = "/.well-known/oauth-protected-resource";
const INSERTED = "/.well-known/oauth-authorization-server/tenant";
const OIDC_INSERTED = "/.well-known/openid-configuration/tenant";
const OIDC_APPENDED = "/tenant/.well-known/openid-configuration";

/** Challenges that say nothing of metadata, so that the well-known URLs are tried. */
const silent: OAuthScript["guard"] = (exchange, token, world) => {
  if (token !== undefined && world.accepted.has(token)) return false;
  exchange.text(401);
  return true;
};

const resourceDocument = (world: OAuthWorld) => ({ resource: world.url, authorization_servers: [world.issuer] });
const serverDocument = (world: OAuthWorld) => ({ issuer: world.issuer, token_endpoint: `${world.issuer}/token` });

type Answer = (exchange: HttpExchange) => void;
const absent: ReadonlyArray<[string, Answer]> = [
  ["401", (exchange) => exchange.text(401)],
  ["403", (exchange) => exchange.text(403, "<html>blocked</html>")],
  ["404", (exchange) => exchange.text(404)],
  ["405", (exchange) => exchange.text(405)],
  ["429", (exchange) => exchange.text(429)],
  ["302 to another origin", (exchange) => exchange.text(302, "", { location: "https://elsewhere.example/doc" })],
  ["302 for ever", (exchange) => exchange.text(302, "", { location: exchange.request.path })],
  ["200 with HTML", (exchange) => exchange.text(200, "<html>hello</html>")],
  ["200 with a list", (exchange) => exchange.json([1])],
  ["200 with other JSON", (exchange) => exchange.json({ hello: "world" })],
];

const wellKnownOf = (order: ReadonlyArray<string>) =>
  [...new Set(order.filter((line) => line.includes("/.well-known/")))].map((line) => line.replace("GET ", ""));

const failureOf = (credential: AgentSecret, world: OAuthWorld) => Effect.flip(send(credential, world.url));

describe("discovery of the protected resource", () => {
  it.effect.each(absent)("C-032: a path form that answers %s moves on to the root", ([, answer]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        guard: silent,
        wellKnown: (exchange, self) => {
          if (exchange.request.path === PATH_FORM) answer(exchange);
          else if (exchange.request.path === ROOT_FORM) exchange.json(resourceDocument(self));
          else return false;
          return true;
        },
      });
      expect(yield* send(agent(), world.url)).toEqual({ status: 200, attempts: 2 });
      expect(wellKnownOf(world.order)).toEqual([
        `resource ${PATH_FORM}`,
        `resource ${ROOT_FORM}`,
        "issuer /.well-known/oauth-authorization-server",
      ]);
    }),
  );

  it.effect("C-032: the URL of the challenge comes first, and alone when it answers", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        guard: (exchange, token, self) => {
          if (token !== undefined && self.accepted.has(token)) return false;
          self.refuse(exchange, { resource_metadata: `${self.resource.origin}/custom/.well-known/here.json` });
          return true;
        },
        wellKnown: (exchange, self) => {
          if (!exchange.request.path.startsWith("/custom")) return false;
          exchange.json(resourceDocument(self));
          return true;
        },
      });
      yield* send(agent(), world.url);
      expect(wellKnownOf(world.order)[0]).toBe("resource /custom/.well-known/here.json");
      expect(wellKnownOf(world.order)).toHaveLength(2);
    }),
  );

  it.effect.each([500, 503])("C-032: a path form that answers %d is a clear error", (status) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        guard: silent,
        wellKnown: (exchange) => {
          exchange.text(status, "down");
          return true;
        },
      });
      const error = yield* failureOf(agent(), world);
      expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", server: "vault", retryable: true });
      expect(error.message).toContain(`${PATH_FORM} answers HTTP ${status}`);
      expect(wellKnownOf(world.order)).toEqual([`resource ${PATH_FORM}`]);
    }),
  );

  it.effect("C-032: a path form that never answers is a clear error after ten seconds", () =>
    Effect.gen(function* () {
      let asked!: () => void;
      const arrived = new Promise<void>((resolve) => (asked = resolve));
      const world = yield* openOAuth({
        guard: silent,
        wellKnown: () => {
          asked();
          return true;
        },
      });
      const fiber = yield* Effect.forkChild(failureOf(agent(), world));
      yield* Effect.promise(() => arrived);
      yield* TestClock.adjust("10 seconds");
      const error = yield* Fiber.join(fiber);
      expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", retryable: true });
      expect(error.message).toContain("did not answer within 10 s");
    }),
  );

  it.effect("C-034: a server without metadata is its own resource, and its origin the issuer", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        guard: silent,
        wellKnown: (exchange, self) => {
          const { origin } = self.resource;
          if (exchange.request.path !== "/.well-known/oauth-authorization-server") exchange.text(404);
          else exchange.json({ issuer: origin, token_endpoint: `${self.authorization.origin}/token` });
          return true;
        },
      });
      yield* send(agent(), `${world.url}?key=of-the-query`);
      expect(world.tokenRequests[0]?.form["resource"]).toBe(world.url);
      expect(wellKnownOf(world.order)).toEqual([
        `resource ${PATH_FORM}?key=of-the-query`,
        `resource ${ROOT_FORM}`,
        "resource /.well-known/oauth-authorization-server",
      ]);
    }),
  );

  it.effect.each<[string, (world: OAuthWorld) => string]>([
    ["an origin without slash", (world) => world.resource.origin],
    ["an origin with slash", (world) => `${world.resource.origin}/`],
    ["the server's URL", (world) => world.url],
    ["the server's URL with slash", (world) => `${world.url}/`],
    ["another spelling", (world) => world.url.replace("http:", "HTTP:")],
  ])("C-034: %s is sent as published, letter by letter", ([, published]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        resourceMetadata: (self) => ({ resource: published(self) }),
        token: ({ form }, self, exchange) => {
          if (form["resource"] === published(self)) return {};
          exchange.json({ error: "invalid_target" }, 400);
          return undefined;
        },
      });
      expect(yield* send(agent(), world.url)).toEqual({ status: 200, attempts: 2 });
    }),
  );

  it.effect.each(["https://evil.example/mcp", "http://127.0.0.1:1/mcp", "nonsense"])(
    "C-034: metadata of the resource %s is refused, and no secret leaves",
    (resource) =>
      Effect.gen(function* () {
        const world = yield* openOAuth({ resourceMetadata: () => ({ resource }) });
        const error = yield* failureOf(agent(), world);
        expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", retryable: false });
        expect(error.message).toContain(resource);
        expect(world.tokenRequests).toEqual([]);
      }),
  );

  it.effect("C-034: a sibling path on the same origin is refused", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ resourceMetadata: (self) => ({ resource: `${self.url}2` }) });
      expect(yield* failureOf(agent(), world)).toMatchObject({ _tag: "AuthorizationDiscoveryFailed" });
    }),
  );

  it.effect("C-034: two resources on one origin have a token each, two URLs of one resource share it", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        guard: silent,
        wellKnown: (exchange, self) => {
          const path = exchange.request.path.replace(ROOT_FORM, "");
          if (!exchange.request.path.startsWith(ROOT_FORM)) return false;
          const resource = self.resource.origin + (path.startsWith("/shared") ? "/shared" : path);
          exchange.json({ resource, authorization_servers: [self.issuer] });
          return true;
        },
      });
      const credential = agent();
      for (const path of ["/a", "/b", "/shared/c", "/shared/d", "/a", "/shared/c"])
        expect((yield* send(credential, world.resource.origin + path)).status).toBe(200);
      const origin = world.resource.origin;
      expect(world.tokenRequests.map(({ form }) => form["resource"])).toEqual([
        `${origin}/a`,
        `${origin}/b`,
        `${origin}/shared`,
      ]);
      expect(new Set(world.passed).size).toBe(3);
    }),
  );
});

const tenantWith = (answers: Record<string, Answer | "document">): OAuthScript => ({
  tenant: "/tenant",
  wellKnown: (exchange, world) => {
    const answer = answers[exchange.request.path];
    if (answer === "document") exchange.json(serverDocument(world));
    else answer?.(exchange);
    return answer !== undefined;
  },
});

const gone: Answer = (exchange) => exchange.text(404);

describe("discovery of the authorization server", () => {
  it.effect.each(absent)("C-032: a document that answers %s moves on to the next form", ([, answer]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth(
        tenantWith({ [INSERTED]: answer, [OIDC_INSERTED]: answer, [OIDC_APPENDED]: "document" }),
      );
      expect((yield* send(agent(), world.url)).status).toBe(200);
      expect(wellKnownOf(world.order).slice(1)).toEqual([
        `issuer ${INSERTED}`,
        `issuer ${OIDC_INSERTED}`,
        `issuer ${OIDC_APPENDED}`,
      ]);
    }),
  );

  it.effect("C-032: 5xx and silence are clear errors, and nothing is asked of the resource's host instead", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth(tenantWith({ [INSERTED]: (exchange) => exchange.text(502) }));
      const error = yield* failureOf(agent(), world);
      expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", retryable: true });
      expect(error.message).toContain(`${world.authorization.origin}${INSERTED} answers HTTP 502`);
      expect(wellKnownOf(world.order)).toEqual([`resource ${PATH_FORM}`, `issuer ${INSERTED}`]);
    }),
  );

  it.effect("C-032: an issuer without any document is a clear error", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth(tenantWith({ [INSERTED]: gone }));
      const error = yield* failureOf(agent(), world);
      expect(error.message).toContain(`${world.issuer} publishes no usable metadata`);
      expect(world.tokenRequests).toEqual([]);
    }),
  );

  it.effect.each<[string, string, string, boolean]>([
    ["host and host with slash", "", "/", true],
    ["host with slash and host", "/", "", true],
    ["tenant and tenant", "/tenant", "/tenant", true],
    ["tenant and tenant with slash", "/tenant", "/tenant/", false],
    ["tenant with slash and tenant", "/tenant/", "/tenant", false],
    ["tenant and another one", "/tenant", "/other", false],
    ["tenant and none", "/tenant", "", false],
  ])("C-035: advertised and returned issuer, %s: accepted is %s %s %s", ([, advertised, returned, accepted]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        advertised: (origin) => origin + advertised,
        wellKnown: (exchange, self) => {
          const { origin } = self.authorization;
          if (!exchange.request.path.includes("oauth-authorization-server")) return false;
          exchange.json({ issuer: origin + returned, token_endpoint: `${origin}/token` });
          return true;
        },
      });
      const result = yield* Effect.result(send(agent(), world.url));
      if (accepted) return expect(result).toMatchObject({ success: { status: 200 } });
      const { origin } = world.authorization;
      expect(result).toMatchObject({ failure: { _tag: "AuthorizationDiscoveryFailed" } });
      const { message } = (result as unknown as { failure: Error }).failure;
      expect(message).toContain(`'${origin}${advertised}'`);
      expect(message).toContain(`'${origin}${returned}'`);
      expect(world.tokenRequests).toEqual([]);
    }),
  );

  it.effect("C-035: a document without issuer is not used", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ serverMetadata: () => ({ issuer: undefined }) });
      const error = yield* failureOf(agent(), world);
      expect(error.message).toContain("names none");
      expect(world.tokenRequests).toEqual([]);
    }),
  );

  it.effect.each(["token_endpoint", "authorization_endpoint", "registration_endpoint"])(
    "bad input: metadata with a %s over plain http elsewhere is refused",
    (name) =>
      Effect.gen(function* () {
        const world = yield* openOAuth({ serverMetadata: () => ({ [name]: "http://as.example/x" }) });
        const error = yield* failureOf(agent(), world);
        expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", retryable: false });
        expect(error.message).toContain(name);
        expect(world.tokenRequests).toEqual([]);
      }),
  );

  it.effect("a credential of one issuer goes to that one of several, and never to another", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        resourceMetadata: (self) => ({ authorization_servers: ["https://other.example", self.issuer] }),
      });
      expect((yield* send(agent({ issuer: world.issuer }), world.url)).status).toBe(200);
      const elsewhere = agent({ issuer: "https://mine.example" });
      const error = yield* failureOf(elsewhere, world);
      expect(error.message).toContain("the credential belongs to 'https://mine.example'");
      expect(world.tokenRequests).toHaveLength(1);
    }),
  );

  it.effect("a secret does not follow a server that moves to another issuer", () =>
    Effect.gen(function* () {
      const other = yield* openOAuth();
      let moved = false;
      const world = yield* openOAuth({
        resourceMetadata: () => (moved ? { authorization_servers: [other.issuer] } : {}),
      });
      const credential = agent();
      yield* send(credential, world.url);
      moved = true;
      world.accepted.clear();
      const error = yield* failureOf(credential, world);
      expect(error.message).toContain(`instead of '${world.issuer}'`);
      expect(other.tokenRequests).toEqual([]);
    }),
  );

  it.effect("bad input: a token endpoint that redirects gets no secret twice", () =>
    Effect.gen(function* () {
      const elsewhere = yield* openOAuth();
      const world = yield* openOAuth({
        token: (_request, _self, exchange) => {
          exchange.text(307, "", { location: `${elsewhere.issuer}/token` });
          return undefined;
        },
      });
      const error = yield* failureOf(agent(), world);
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", status: 307, retryable: false });
      expect(elsewhere.tokenRequests).toEqual([]);
      expect(world.tokenRequests).toHaveLength(1);
    }),
  );

  it.effect("bad input: a document without end is cut", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        wellKnown: (exchange) => {
          exchange.text(200, `{"resource": "${"x".repeat(300 * 1024)}"}`);
          return true;
        },
      });
      const error = yield* failureOf(agent(), world);
      expect(error).toMatchObject({ _tag: "AuthorizationDiscoveryFailed", retryable: false });
      expect(error.message).toContain("more than 262144 bytes");
    }),
  );
});
