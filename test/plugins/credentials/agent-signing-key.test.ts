import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { decodeProtectedHeader, exportJWK, exportPKCS8, generateKeyPair, type JWK, jwtVerify } from "jose";
import { HttpEndpoint } from "../../../src/core/endpoint.ts";
import { AgentSigningKey, type AgentSigningKeyOptions } from "../../../src/plugins/credentials/agent-signing-key.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";
import type { OAuthWorld } from "../../../src/testing/servers/oauth.ts";

const pairs = new Map<string, ReturnType<typeof makePair>>();
const makePair = async (algorithm: string) => {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true });
  return { publicKey, pem: await exportPKCS8(privateKey), jwk: await exportJWK(privateKey) };
};
/** Keys are made once for the file: RSA takes its time. */
const pair = (algorithm: string) => {
  const made = pairs.get(algorithm) ?? makePair(algorithm);
  pairs.set(algorithm, made);
  return Effect.promise(() => made);
};

const assertionOf = (world: OAuthWorld): string => world.tokenRequests[0]!.form["client_assertion"]!;

const keyed = (options: Partial<AgentSigningKeyOptions>): AgentSigningKey =>
  new AgentSigningKey({ clientId: "robot", privateKey: "", ...options });

describe("AgentSigningKey", () => {
  it.effect.each<[string, "pem" | "jwk"]>(
    ["RS256", "PS256", "ES256", "ES384", "EdDSA"].flatMap((algorithm) => [
      [algorithm, "pem"],
      [algorithm, "jwk"],
    ]),
  )("signs with %s", ([algorithm, form]) =>
    Effect.gen(function* () {
      const keys = yield* pair(algorithm);
      const world = yield* openOAuth({
        serverMetadata: () => ({ token_endpoint_auth_signing_alg_values_supported: [algorithm] }),
      });
      const credential = keyed({ privateKey: keys[form], keyId: "key-1" });
      expect((yield* send(credential, world.url)).status).toBe(200);
      const assertion = assertionOf(world);
      expect(decodeProtectedHeader(assertion)).toEqual({ alg: algorithm, typ: "JWT", kid: "key-1" });
      const { payload } = yield* Effect.promise(() =>
        jwtVerify(assertion, keys.publicKey, { currentDate: new Date(0) }),
      );
      expect(payload).toEqual({ iss: "robot", sub: "robot", aud: world.issuer, iat: 0, exp: 300, jti: payload.jti });
      expect(world.tokenRequests[0]?.form).toMatchObject({
        grant_type: "client_credentials",
        client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
      });
      expect(world.tokenRequests[0]?.authorization).toBeUndefined();
    }),
  );

  it.effect("the algorithm follows the key where nobody names one", () =>
    Effect.gen(function* () {
      for (const [kind, expected] of [
        ["RS256", "RS256"],
        ["PS256", "RS256"],
        ["ES256", "ES256"],
        ["EdDSA", "EdDSA"],
      ]) {
        const keys = yield* pair(kind!);
        for (const privateKey of [keys.pem, keys.jwk]) {
          const world = yield* openOAuth();
          yield* send(keyed({ privateKey }), world.url);
          expect(decodeProtectedHeader(assertionOf(world)).alg).toBe(expected);
        }
      }
    }),
  );

  it.effect("a JWK says its own algorithm and key id, and the host overrides them", () =>
    Effect.gen(function* () {
      const { jwk } = yield* pair("RS256");
      const headerWith = (options: Partial<AgentSigningKeyOptions>) =>
        Effect.gen(function* () {
          const world = yield* openOAuth();
          yield* send(keyed({ privateKey: { ...jwk, alg: "PS256", kid: "own" }, ...options }), world.url);
          return decodeProtectedHeader(assertionOf(world));
        });
      expect(yield* headerWith({})).toMatchObject({ alg: "PS256", kid: "own" });
      expect(yield* headerWith({ algorithm: "RS512", keyId: "other" })).toMatchObject({ alg: "RS512", kid: "other" });
    }),
  );

  it.effect("every request has an assertion of its own, and the audience may be told", () =>
    Effect.gen(function* () {
      const { pem, publicKey } = yield* pair("ES256");
      const world = yield* openOAuth();
      const credential = keyed({ privateKey: Redacted.make(pem), audience: "https://as.example/token" });
      yield* send(credential, world.url);
      world.accepted.clear();
      yield* send(credential, world.url);
      const ids = yield* Effect.forEach(world.tokenRequests, ({ form }) =>
        Effect.promise(async () => {
          const options = { audience: "https://as.example/token", currentDate: new Date(0) };
          return (await jwtVerify(form["client_assertion"]!, publicKey, options)).payload.jti;
        }),
      );
      expect(new Set(ids).size).toBe(2);
    }),
  );

  const { kty: _, ...withoutType }: JWK = { kty: "EC", d: "AA" };
  it.each<[string, Partial<AgentSigningKeyOptions>, string]>([
    [
      "an RSA PEM of PKCS#1",
      { privateKey: "-----BEGIN RSA PRIVATE KEY-----\nAA\n-----END RSA PRIVATE KEY-----" },
      "openssl pkcs8",
    ],
    [
      "an EC PEM of SEC 1",
      { privateKey: "-----BEGIN EC PRIVATE KEY-----\nAA\n-----END EC PRIVATE KEY-----" },
      "openssl pkcs8",
    ],
    ["an encrypted PEM", { privateKey: "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA\n" }, "not PKCS#8"],
    ["a public PEM", { privateKey: "-----BEGIN PUBLIC KEY-----\nAA\n" }, "PUBLIC KEY"],
    ["no PEM at all", { privateKey: "hello" }, "is no PEM"],
    ["nothing", { privateKey: undefined as unknown as string }, "no private key"],
    ["a public JWK", { privateKey: { kty: "EC", crv: "P-256", x: "AA", y: "AA" } }, "no private key"],
    ["a JWK of an unknown curve", { privateKey: { kty: "EC", crv: "secp256k1", d: "AA" } }, "unknown kind"],
    ["a JWK without type", { privateKey: withoutType as JWK }, "unknown kind"],
    [
      "a JWK and another family",
      { privateKey: { kty: "EC", crv: "P-256", d: "AA" }, algorithm: "RS256" },
      "It fits: ES256",
    ],
    ["a JWK and its own wrong alg", { privateKey: { kty: "RSA", d: "AA", alg: "ES256" } }, "cannot sign with 'ES256'"],
    [
      "a symmetric algorithm",
      { privateKey: "-----BEGIN PRIVATE KEY-----\nAA\n", algorithm: "HS256" },
      "cannot sign with 'HS256'",
    ],
  ])("bad input: %s is refused at attach", (_name, options, words) => {
    const fault = new HttpEndpoint({ url: "https://files.example/mcp", credential: keyed(options) }).validate();
    expect(fault).toMatchObject({ _tag: "InvalidEndpoint", field: "credential.privateKey" });
    expect(fault?.message).toContain(words);
  });

  it.effect("bad input: a PEM that does not fit the algorithm, or is broken, is a typed error", () =>
    Effect.gen(function* () {
      const { pem } = yield* pair("ES256");
      const broken = pem.replace(/\n[A-Za-z0-9+/=]{20}/, "\n");
      for (const options of [
        { privateKey: pem, algorithm: "RS256" },
        { privateKey: pem, algorithm: "ES384" },
        { privateKey: broken },
      ]) {
        const world = yield* openOAuth();
        const error = yield* Effect.flip(send(keyed(options), world.url));
        expect(error).toMatchObject({ _tag: "InvalidEndpoint", field: "credential.privateKey" });
        expect(world.tokenRequests).toEqual([]);
      }
    }),
  );

  it.effect("bad input: a key whose algorithms the server does not take is a typed error", () =>
    Effect.gen(function* () {
      const { jwk } = yield* pair("ES256");
      const world = yield* openOAuth({
        serverMetadata: () => ({ token_endpoint_auth_signing_alg_values_supported: ["RS256", "PS256"] }),
      });
      const error = yield* Effect.flip(send(keyed({ privateKey: jwk }), world.url));
      expect(error.message).toContain("signs with ES256, and the authorization server takes RS256, PS256");
      expect(world.tokenRequests).toEqual([]);
    }),
  );
});
