/** A program that is itself the user, and proves it with a private key that never leaves the process. */
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import type { CredentialFlow } from "../../core/contracts.ts";
import { InvalidEndpoint, type McpError } from "../../core/errors.ts";
import { digest } from "../../core/identity.ts";
import { algorithmsOf, assertionAuthentication, type KeyMaterial } from "./client-assertion.ts";
import { type ClientAuthentication, missing } from "./client-authentication.ts";
import type { Grant, OAuthCredential } from "./oauth-credential.ts";
import { oauthFlow } from "./oauth-flow.ts";
import { requestToken } from "./token-endpoint.ts";
import type { TokenSet } from "./token-set.ts";

export interface AgentSigningKeyOptions {
  readonly clientId: string;
  /** PKCS#8 PEM, or a private JWK. */
  readonly privateKey: KeyMaterial | Redacted.Redacted<KeyMaterial>;
  /**
   * RS256, PS256, ES256, EdDSA or their larger kin. Default: what fits the key; an RSA key
   * signs with RS256, or PS256 where the authorization server takes only that.
   */
  readonly algorithm?: string | undefined;
  /** `kid` of the assertion. Default: that of the JWK. */
  readonly keyId?: string | undefined;
  /** Audience of the assertion. Default: the issuer of the authorization server. */
  readonly audience?: string | undefined;
  /** Who the credential stands for. Default: the client id. */
  readonly user?: string | undefined;
  /** Scopes, space-separated. Default: those the server asks for. */
  readonly scope?: string | undefined;
  /** The authorization server the client is registered at. Default: the one the MCP server names first. */
  readonly issuer?: string | undefined;
}

/** The texts of a key that must not show. */
const textsOf = (key: KeyMaterial): ReadonlyArray<string> =>
  typeof key === "string"
    ? [key.replace(/-----[^-]*-----/g, ""), key.replace(/-----[^-]*-----|\s/g, "")]
    : [key.d, key.p, key.q, key.dp, key.dq, key.qi].filter((part) => part !== undefined);

/** OAuth 2.1 client credentials with a signed assertion (RFC 7523 section 2.2). */
export class AgentSigningKey implements OAuthCredential {
  readonly kind = "agent-signing-key" as const;
  readonly user: string;
  readonly clientId: string;
  readonly privateKey: Redacted.Redacted<KeyMaterial>;
  readonly scope: string | undefined;
  readonly issuer: string | undefined;
  readonly registered: boolean = true;
  readonly fingerprint: string;
  readonly #authenticate: ClientAuthentication | InvalidEndpoint;

  constructor(options: AgentSigningKeyOptions) {
    const { clientId, privateKey, algorithm, keyId, audience, scope, issuer } = options;
    this.clientId = clientId;
    this.privateKey = Redacted.isRedacted(privateKey) ? privateKey : Redacted.make(privateKey);
    this.user = options.user ?? clientId;
    this.scope = scope;
    this.issuer = issuer;
    const key = Redacted.value(this.privateKey);
    this.fingerprint = digest(JSON.stringify([clientId, key, algorithm, keyId, audience, scope, issuer]));
    const algorithms = algorithmsOf(key, algorithm);
    const kid = keyId ?? (typeof key === "object" ? key?.kid : undefined);
    this.#authenticate =
      algorithms instanceof InvalidEndpoint
        ? algorithms
        : assertionAuthentication({ clientId, key, algorithms, keyId: kid, audience });
  }

  validate(): InvalidEndpoint | undefined {
    return this.#authenticate instanceof InvalidEndpoint ? this.#authenticate : missing("clientId", this.clientId);
  }

  secrets(): ReadonlyArray<string> {
    return textsOf(Redacted.value(this.privateKey));
  }

  mint(grant: Grant): Effect.Effect<TokenSet, McpError> {
    const authenticate = this.#authenticate;
    return authenticate instanceof InvalidEndpoint
      ? Effect.fail(authenticate)
      : requestToken(grant, authenticate, { grant_type: "client_credentials" });
  }
}

/** The flow of `AgentSigningKey`. */
export const agentSigningKey: CredentialFlow = oauthFlow("agent-signing-key", "AgentSigningKey");
