/** Proof of a client by a signed statement: private_key_jwt (RFC 7523 section 2.2). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type { CryptoKey, JWK } from "jose";
import { InvalidEndpoint } from "../../core/errors.ts";
import type { ClientAuthentication } from "./client-authentication.ts";

/** PKCS#8 PEM, or a private JWK. */
export type KeyMaterial = string | JWK;

/** Lifetime of one assertion, seconds; long enough for clocks that differ by a minute or two. */
const LIFETIME = 300;

const FAMILIES: Readonly<Record<string, ReadonlyArray<string>>> = {
  RSA: ["RS256", "PS256", "RS384", "RS512", "PS384", "PS512"],
  "P-256": ["ES256"],
  "P-384": ["ES384"],
  "P-521": ["ES512"],
  Ed25519: ["EdDSA"],
};

const ALGORITHMS: ReadonlyArray<string> = Object.values(FAMILIES).flat();

export const keyFault = (reason: string, fix: string): InvalidEndpoint =>
  new InvalidEndpoint({ field: "credential.privateKey", reason, fix });

const PEM_FIX = "Convert it: openssl pkcs8 -topk8 -nocrypt -in key.pem -out pkcs8.pem";

/** The algorithms a key may sign with, as far as is known before it is read; the fault where it cannot be used. */
export const algorithmsOf = (key: KeyMaterial, wanted: string | undefined): ReadonlyArray<string> | InvalidEndpoint => {
  let family = ALGORITHMS;
  let own = wanted;
  if (typeof key === "string") {
    const label = /-----BEGIN ([A-Z0-9 ]+)-----/.exec(key)?.[1];
    if (label !== "PRIVATE KEY") return keyFault(label ? `is a PEM '${label}', not PKCS#8` : "is no PEM", PEM_FIX);
  } else {
    const kind = key?.kty === "RSA" ? "RSA" : key?.crv;
    if (typeof key?.d !== "string")
      return keyFault("holds no private key", "Give the private JWK, with its member 'd'.");
    family = FAMILIES[kind ?? ""] ?? [];
    own ??= key.alg === "Ed25519" ? "EdDSA" : key.alg;
  }
  if (own === undefined)
    return family.length > 0 ? family : keyFault("is of an unknown kind", `Use: ${ALGORITHMS.join(", ")}.`);
  if (family.includes(own)) return [own];
  const fits = family.length > 0 ? family.join(", ") : ALGORITHMS.join(", ");
  return keyFault(`cannot sign with '${own}'`, `It fits: ${fits}.`);
};

export interface SigningClient {
  readonly clientId: string;
  readonly key: KeyMaterial;
  readonly algorithms: ReadonlyArray<string>;
  readonly keyId: string | undefined;
  /** Default: the issuer of the authorization server. */
  readonly audience: string | undefined;
}

const importFirst = async (key: KeyMaterial, algorithms: ReadonlyArray<string>) => {
  const { importJWK, importPKCS8 } = await import("jose");
  let last: unknown;
  for (const algorithm of algorithms) {
    try {
      const imported = typeof key === "string" ? await importPKCS8(key, algorithm) : await importJWK(key, algorithm);
      return { algorithm, key: imported as CryptoKey };
    } catch (cause) {
      last = cause;
    }
  }
  throw last;
};

/** Signs one assertion for each token request; the key is read once per list of algorithms. */
export const assertionAuthentication = (client: SigningClient): ClientAuthentication => {
  const imports = new Map<string, ReturnType<typeof importFirst>>();
  return (server) =>
    Effect.gen(function* () {
      const listed = server.token_endpoint_auth_signing_alg_values_supported;
      const usable = client.algorithms.filter((one) => !listed || listed.includes(one));
      if (usable.length === 0) {
        const own = client.algorithms.join(", ");
        return yield* keyFault(
          `signs with ${own}, and the authorization server takes ${listed?.join(", ")}`,
          "Use another key.",
        );
      }
      const now = Math.floor((yield* Clock.currentTimeMillis) / 1000);
      const id = usable.join();
      const imported = imports.get(id) ?? importFirst(client.key, usable);
      imports.set(id, imported);
      const assertion = yield* Effect.tryPromise({
        try: async () => {
          const [{ SignJWT }, { algorithm, key }] = await Promise.all([import("jose"), imported]);
          const header = { alg: algorithm, typ: "JWT", ...(client.keyId === undefined ? {} : { kid: client.keyId }) };
          return await new SignJWT({ jti: crypto.randomUUID() })
            .setProtectedHeader(header)
            .setIssuer(client.clientId)
            .setSubject(client.clientId)
            .setAudience(client.audience ?? server.issuer)
            .setIssuedAt(now)
            .setExpirationTime(now + LIFETIME)
            .sign(key);
        },
        catch: () =>
          keyFault(`cannot sign with ${usable.join(", ")}`, "Check that it is whole and fits the algorithm."),
      });
      return {
        form: {
          client_id: client.clientId,
          client_assertion_type: "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
          client_assertion: assertion,
        },
      };
    });
};
