import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { HttpEndpoint } from "../../../src/core/endpoint.ts";
import {
  EnterpriseManaged,
  type EnterpriseManagedOptions,
} from "../../../src/plugins/credentials/enterprise-managed.ts";
import { WorkloadIdentity } from "../../../src/plugins/credentials/workload-identity.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";
import type { OAuthScript, OAuthWorld } from "../../../src/testing/servers/oauth.ts";

const JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

describe("WorkloadIdentity", () => {
  it.effect("trades the platform's token, made for this server, for an access token", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const audiences: Array<unknown> = [];
      const credential = new WorkloadIdentity({
        clientId: "billing-job",
        scope: "read",
        token: async (audience) => {
          audiences.push(audience);
          return "platform-jwt";
        },
      });
      expect(credential.user).toBe("billing-job");
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
      expect(world.tokenRequests).toEqual([
        {
          form: {
            grant_type: JWT_BEARER,
            assertion: "platform-jwt",
            client_id: "billing-job",
            resource: world.url,
            scope: "read",
          },
          authorization: undefined,
          dpop: undefined,
        },
      ]);
      expect(audiences).toEqual([
        { issuer: world.issuer, tokenEndpoint: `${world.issuer}/token`, resource: world.url },
      ]);
    }),
  );

  it.effect("a refusal is a typed error, and no other grant is tried", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        token: (_request, _self, exchange) => {
          exchange.json({ error: "invalid_grant", error_description: "unknown workload" }, 400);
          return undefined;
        },
      });
      const credential = new WorkloadIdentity({ token: () => "platform-jwt" });
      const error = yield* Effect.flip(send(credential, world.url));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", error: "invalid_grant", retryable: false });
      yield* Effect.flip(send(credential, world.url));
      expect(world.tokenRequests.map(({ form }) => form["grant_type"])).toEqual([JWT_BEARER]);
    }),
  );

  it.effect("a platform that gives no token is an error of the credential", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const credential = new WorkloadIdentity({ token: () => Promise.reject(new Error("no such file")) });
      const error = yield* Effect.flip(send(credential, world.url));
      expect(error).toMatchObject({ _tag: "PluginFailed", plugin: "workload-identity" });
      expect(world.tokenRequests).toEqual([]);
    }),
  );
});

const provider = (answer: Record<string, unknown> = {}): OAuthScript => ({
  token: () => ({ access_token: "the-id-jag", issued_token_type: ID_JAG, token_type: "N_A", ...answer }),
});

const employee = (idp: OAuthWorld, more: Partial<EnterpriseManagedOptions> = {}): EnterpriseManaged =>
  new EnterpriseManaged({
    user: "ada@corp.example",
    clientId: "known-to-the-server",
    clientSecret: "secret-for-the-server",
    identityProvider: {
      issuer: idp.issuer,
      clientId: "known-to-the-company",
      clientSecret: "secret-for-the-company",
    },
    subjectToken: () => "id-token-of-ada",
    ...more,
  });

describe("EnterpriseManaged", () => {
  it.effect("exchanges the identity for a grant at the company, and the grant for a token at the server", () =>
    Effect.gen(function* () {
      const idp = yield* openOAuth(provider());
      const world = yield* openOAuth({ resourceMetadata: () => ({ scopes_supported: ["read"] }) });
      const credential = employee(idp);
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      expect(idp.tokenRequests).toEqual([
        {
          form: {
            grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
            requested_token_type: ID_JAG,
            subject_token: "id-token-of-ada",
            subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
            audience: world.issuer,
            resource: world.url,
            scope: "read",
          },
          authorization: `Basic ${btoa("known-to-the-company:secret-for-the-company")}`,
          dpop: undefined,
        },
      ]);
      expect(world.tokenRequests).toEqual([
        {
          form: { grant_type: JWT_BEARER, assertion: "the-id-jag", resource: world.url, scope: "read" },
          authorization: `Basic ${btoa("known-to-the-server:secret-for-the-server")}`,
          dpop: undefined,
        },
      ]);
      world.accepted.clear();
      yield* send(credential, world.url);
      expect(idp.tokenRequests).toHaveLength(2);
    }),
  );

  it.effect("a public client at a known token endpoint needs no metadata of the company", () =>
    Effect.gen(function* () {
      const idp = yield* openOAuth(provider());
      const world = yield* openOAuth();
      const identityProvider = { issuer: idp.issuer, tokenEndpoint: `${idp.issuer}/token`, clientId: "public" };
      expect((yield* send(employee(idp, { identityProvider }), world.url)).status).toBe(200);
      expect(idp.order).toEqual(["POST issuer /token"]);
      expect(idp.tokenRequests[0]?.form["client_id"]).toBe("public");
    }),
  );

  it.effect.each<[string, OAuthScript, Record<string, unknown>]>([
    [
      "another kind of token",
      provider({ issued_token_type: "urn:ietf:params:oauth:token-type:access_token" }),
      { _tag: "TokenEndpointFailed" },
    ],
    ["no token", provider({ access_token: "" }), { _tag: "TokenEndpointFailed" }],
    [
      "a refusal of its policy",
      { token: (_request, _self, exchange) => (exchange.json({ error: "invalid_target" }, 400), undefined) },
      { _tag: "TokenEndpointFailed", error: "invalid_target" },
    ],
    ["no metadata", { wellKnown: (exchange) => (exchange.text(404), true) }, { _tag: "AuthorizationDiscoveryFailed" }],
    [
      "metadata of another issuer",
      { serverMetadata: () => ({ issuer: "https://evil.example" }) },
      { _tag: "AuthorizationDiscoveryFailed" },
    ],
  ])("a company that answers %s is a typed error, and the server is not asked", ([, script, expected]) =>
    Effect.gen(function* () {
      const idp = yield* openOAuth(script);
      const world = yield* openOAuth();
      expect(yield* Effect.flip(send(employee(idp), world.url))).toMatchObject(expected);
      expect(world.tokenRequests).toEqual([]);
    }),
  );

  it("says at attach what is missing", () => {
    const credential = new EnterpriseManaged({
      user: "",
      clientId: "a",
      identityProvider: { issuer: "https://idp.example", clientId: "b" },
      subjectToken: () => "x",
    });
    const endpoint = new HttpEndpoint({ url: "https://files.example/mcp", credential });
    expect(endpoint.validate()).toMatchObject({ _tag: "InvalidEndpoint", field: "credential.user" });
  });
});
