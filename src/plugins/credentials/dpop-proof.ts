/** Proofs of possession of a key (RFC 9449 section 4), and the nonces servers ask for. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { InvalidEndpoint } from "../../core/errors.ts";
import type { TokenBinding } from "./oauth-credential.ts";

/** Signature algorithms of proofs. */
export type ProofAlgorithm = "ES256" | "EdDSA" | "RS256" | "PS256";

const makeKeys = async (algorithm: ProofAlgorithm) => {
  const { base64url, exportJWK, generateKeyPair, SignJWT } = await import("jose");
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: false });
  return { privateKey, jwk: await exportJWK(publicKey), SignJWT, base64url };
};

/** A binding with a new key that never leaves the process. Nonces are kept for each origin. */
export const makeBinding = (algorithm: ProofAlgorithm): TokenBinding => {
  const nonces = new Map<string, string>();
  let keys: ReturnType<typeof makeKeys> | undefined;
  return {
    id: crypto.randomUUID(),
    keepNonce: (url, nonce) => {
      nonces.set(new URL(url).origin, nonce);
    },
    check: (server) => {
      const listed = server.dpop_signing_alg_values_supported;
      if (!listed || listed.includes(algorithm)) return Effect.void;
      const reason = `signs proofs with ${algorithm}, and the authorization server takes ${listed.join(", ")}`;
      const fix = "Give new DpopBound({ algorithm }) one of these.";
      return Effect.fail(new InvalidEndpoint({ field: "credential.algorithm", reason, fix }));
    },
    proof: ({ method, url, accessToken }) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.promise(async () => {
          const { privateKey, jwk, SignJWT, base64url } = await (keys ??= makeKeys(algorithm));
          const { origin, pathname } = new URL(url);
          const claims: Record<string, string> = { jti: crypto.randomUUID(), htm: method, htu: origin + pathname };
          const nonce = nonces.get(origin);
          if (nonce !== undefined) claims["nonce"] = nonce;
          if (accessToken !== undefined) {
            const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(accessToken));
            claims["ath"] = base64url.encode(new Uint8Array(hash));
          }
          return await new SignJWT(claims)
            .setProtectedHeader({ alg: algorithm, typ: "dpop+jwt", jwk })
            .setIssuedAt(Math.floor(now / 1000))
            .sign(privateKey);
        }),
      ),
  };
};
