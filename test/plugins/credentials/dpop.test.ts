import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, type JWK, jwtVerify } from "jose";
import { HttpEndpoint } from "../../../src/core/endpoint.ts";
import { AgentSecret } from "../../../src/plugins/credentials/agent-secret.ts";
import { AuthorizationCode } from "../../../src/plugins/credentials/authorization-code.ts";
import { BearerToken } from "../../../src/plugins/credentials/bearer.ts";
import { DpopBound, type DpopBoundOptions } from "../../../src/plugins/credentials/dpop.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";
import { person } from "../../support/oauth-login.ts";
import { challengeOf, type OAuthScript, type OAuthWorld } from "../../../src/testing/servers/oauth.ts";

const bound = (options: Partial<DpopBoundOptions> = {}): DpopBound =>
  new DpopBound({
    credential: new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot" }),
    ...options,
  });

/** Verifies a proof as a server does and answers its claims and key (RFC 9449 section 4.3). */
const verify = async (proof: string) => {
  const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, {
    typ: "dpop+jwt",
    currentDate: new Date(0),
  });
  const jwk = protectedHeader.jwk as JWK;
  expect(jwk.d).toBeUndefined();
  return { payload, thumbprint: await calculateJwkThumbprint(jwk) };
};

const sha256 = async (text: string): Promise<string> => {
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return btoa(String.fromCharCode(...new Uint8Array(hash)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
};

const dpopToken: OAuthScript["token"] = () => ({ token_type: "DPoP" });

const proofsOf = (world: OAuthWorld): ReadonlyArray<string> =>
  world.resource.requests.flatMap(({ headers }) => (headers["dpop"] ? [headers["dpop"] as string] : []));

const nonceOf = async (proof: string | undefined) => (proof ? (await verify(proof)).payload["nonce"] : undefined);

const worldTaking = (values: ReadonlyArray<string>) =>
  openOAuth({ token: dpopToken, serverMetadata: () => ({ dpop_signing_alg_values_supported: values }) });

const endpointOf = (credential: DpopBound) => new HttpEndpoint({ url: "https://files.example/mcp", credential });

describe("DpopBound", () => {
  it.effect("proves its key at the token endpoint and, anew, with every request", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: dpopToken });
      const credential = bound();
      expect(yield* send(credential, `${world.url}?page=1#top`)).toEqual({ status: 200, attempts: 2 });
      yield* send(credential, world.url);

      const asked = yield* Effect.promise(() => verify(world.tokenRequests[0]!.dpop!));
      expect(asked.payload).toMatchObject({ htm: "POST", htu: `${world.issuer}/token`, iat: 0 });
      expect(asked.payload["ath"]).toBeUndefined();

      const sent = yield* Effect.promise(() => Promise.all(proofsOf(world).map(verify)));
      const ath = yield* Effect.promise(() => sha256(world.passed[0]!));
      expect(sent).toHaveLength(2);
      for (const { payload, thumbprint } of sent) {
        expect(payload).toMatchObject({ htm: "POST", htu: world.url, ath });
        expect(thumbprint).toBe(asked.thumbprint);
      }
      expect(new Set(sent.map(({ payload }) => payload.jti)).size).toBe(2);
      const schemes = world.resource.requests.flatMap(({ headers }) => headers.authorization?.split(" ")[0] ?? []);
      expect(schemes).toEqual(["DPoP", "DPoP"]);
    }),
  );

  it.effect("gives the nonces that the token endpoint and the server ask for", () =>
    Effect.gen(function* () {
      let current = "resource-nonce-1";
      const world = yield* openOAuth({
        token: async ({ dpop }, _self, exchange) => {
          if ((await nonceOf(dpop)) === "server-nonce") return { token_type: "DPoP" };
          exchange.json({ error: "use_dpop_nonce" }, 400, { "dpop-nonce": "server-nonce" });
          return undefined;
        },
        guard: (exchange, token, self) => {
          const proof = exchange.request.headers["dpop"] as string | undefined;
          const claims =
            proof &&
            (JSON.parse(atob(proof.split(".")[1]!.replace(/-/g, "+").replace(/_/g, "/"))) as { nonce?: string });
          if (token === undefined) self.refuse(exchange);
          else if (claims && claims.nonce !== current) {
            const challenge = challengeOf({ error: "use_dpop_nonce" }, "DPoP");
            exchange.text(401, "", { "www-authenticate": challenge, "dpop-nonce": current });
          } else return false;
          return true;
        },
      });
      const credential = bound();
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 3 });
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
      current = "resource-nonce-2";
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      expect(world.tokenRequests).toHaveLength(2);
    }),
  );

  it.effect("bad input: a nonce asked for for ever ends", () =>
    Effect.gen(function* () {
      let count = 0;
      const world = yield* openOAuth({
        token: dpopToken,
        guard: (exchange, token, self) => {
          const headers = {
            "www-authenticate": challengeOf({ error: "use_dpop_nonce" }, "DPoP"),
            "dpop-nonce": `nonce-${++count}`,
          };
          if (token === undefined) self.refuse(exchange);
          else exchange.text(401, "", headers);
          return true;
        },
      });
      expect(yield* Effect.flip(send(bound(), world.url))).toMatchObject({ _tag: "Unauthorized" });
      expect(world.tokenRequests).toHaveLength(1);
    }),
  );

  it.effect("a token that is not bound to the key is refused", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: () => ({ token_type: "Bearer" }) });
      const error = yield* Effect.flip(send(bound(), world.url));
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", retryable: false });
      expect(error.message).toContain("dpop");
      expect(world.passed).toEqual([]);
    }),
  );

  it.effect.each(["EdDSA", "PS256"] as const)("signs with %s when told, as the server must take it", (algorithm) =>
    Effect.gen(function* () {
      const world = yield* worldTaking([algorithm]);
      expect((yield* send(bound({ algorithm }), world.url)).status).toBe(200);
      expect(decodeProtectedHeader(world.tokenRequests[0]!.dpop!).alg).toBe(algorithm);
      const other = yield* worldTaking(["ES256"]);
      const error = yield* Effect.flip(send(bound({ algorithm }), other.url));
      expect(error).toMatchObject({ _tag: "InvalidEndpoint", field: "credential.algorithm" });
      expect(other.tokenRequests).toEqual([]);
    }),
  );

  it.effect("wraps a login as well", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ token: dpopToken });
      const credential = bound({ credential: new AuthorizationCode({ user: crypto.randomUUID(), ...person().host }) });
      expect((yield* send(credential, world.url)).status).toBe(200);
      expect(world.tokenRequests[0]?.dpop).toBeDefined();
    }),
  );

  it("stands for the user of what it wraps, and wraps no bare token", () => {
    expect(endpointOf(bound()).endpointId).toBe("https://files.example/mcp#as:robot");
    const wrong = bound({ credential: new BearerToken({ token: "x" }) as never });
    expect(endpointOf(wrong).validate()).toMatchObject({ _tag: "InvalidEndpoint", field: "credential.credential" });
    const empty = bound({ credential: new AgentSecret({ clientId: "", clientSecret: "x" }) });
    expect(endpointOf(empty).validate()).toMatchObject({ field: "credential.clientId" });
  });
});
