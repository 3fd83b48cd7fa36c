/** Ties the tokens of another credential to a key, so that a stolen one is of no use. */
import * as Effect from "effect/Effect";
import type { CredentialFlow } from "../../core/contracts.ts";
import type { Credential } from "../../core/endpoint.ts";
import { InvalidEndpoint } from "../../core/errors.ts";
import { makeBinding, type ProofAlgorithm } from "./dpop-proof.ts";
import type { OAuthCredential, TokenBinding } from "./oauth-credential.ts";
import { authorizeOAuth, isOAuthCredential } from "./oauth-flow.ts";

export interface DpopBoundOptions {
  /** The credential that gets the tokens: any but `BearerToken`. */
  readonly credential: OAuthCredential;
  /** Default `"ES256"`. */
  readonly algorithm?: ProofAlgorithm | undefined;
}

/**
 * DPoP (RFC 9449) over another credential. The key is made at the first use and lives in
 * memory, and so do the tokens: they would be worthless to the next process.
 */
export class DpopBound implements Credential {
  readonly kind = "dpop" as const;
  readonly user: string;
  readonly credential: OAuthCredential;
  /** Not enumerable: it holds the key. */
  declare readonly binding: TokenBinding;

  constructor(options: DpopBoundOptions) {
    this.user = options.credential.user;
    this.credential = options.credential;
    Object.defineProperty(this, "binding", { value: makeBinding(options.algorithm ?? "ES256"), enumerable: false });
  }

  validate(): InvalidEndpoint | undefined {
    if (isOAuthCredential(this.credential)) return this.credential.validate?.();
    return new InvalidEndpoint({
      field: "credential.credential",
      reason: "gets no tokens from an authorization server",
      fix: "Wrap an AgentSecret, AgentSigningKey, AuthorizationCode or the like.",
    });
  }
}

/** The flow of `DpopBound`. */
export const dpop: CredentialFlow = {
  kind: "dpop",
  authorize: (credential, request) => {
    const { credential: inner, binding } = credential as DpopBound;
    const fault = (credential as DpopBound).validate();
    return fault ? Effect.fail(fault) : authorizeOAuth(inner, request, binding);
  },
};
