/** A program that is itself the user, and proves it with a client secret. */
import type * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import type { CredentialFlow } from "../../core/contracts.ts";
import type { InvalidEndpoint, McpError } from "../../core/errors.ts";
import { digest } from "../../core/identity.ts";
import { missing, redacted, type Secret, secretAuthentication } from "./client-authentication.ts";
import type { Grant, OAuthCredential } from "./oauth-credential.ts";
import { oauthFlow } from "./oauth-flow.ts";
import { requestToken } from "./token-endpoint.ts";
import type { TokenSet } from "./token-set.ts";

export interface AgentSecretOptions {
  readonly clientId: string;
  readonly clientSecret: Secret;
  /** Who the credential stands for. Default: the client id. */
  readonly user?: string | undefined;
  /** Scopes, space-separated. Default: those the server asks for. */
  readonly scope?: string | undefined;
  /**
   * The authorization server the client is registered at. The secret goes to no
   * other one; without it, to the one the MCP server names first.
   */
  readonly issuer?: string | undefined;
  /** Default: what the authorization server lists, `client_secret_basic` where it lists nothing. */
  readonly authMethod?: "client_secret_basic" | "client_secret_post" | undefined;
}

/** OAuth 2.1 client credentials with a client id and a secret (RFC 6749 section 4.4). */
export class AgentSecret implements OAuthCredential {
  readonly kind = "agent-secret" as const;
  readonly user: string;
  readonly clientId: string;
  readonly clientSecret: Redacted.Redacted<string>;
  readonly scope: string | undefined;
  readonly issuer: string | undefined;
  readonly authMethod: AgentSecretOptions["authMethod"];
  readonly registered: boolean = true;
  readonly fingerprint: string;

  constructor(options: AgentSecretOptions) {
    this.clientId = options.clientId;
    this.clientSecret = redacted(options.clientSecret);
    this.user = options.user ?? options.clientId;
    this.scope = options.scope;
    this.issuer = options.issuer;
    this.authMethod = options.authMethod;
    const { clientId, scope, issuer, authMethod } = this;
    this.fingerprint = digest(JSON.stringify([clientId, Redacted.value(this.clientSecret), scope, issuer, authMethod]));
  }

  validate(): InvalidEndpoint | undefined {
    return missing("clientId", this.clientId) ?? missing("clientSecret", Redacted.value(this.clientSecret));
  }

  secrets(): ReadonlyArray<string> {
    return [Redacted.value(this.clientSecret)];
  }

  mint(grant: Grant): Effect.Effect<TokenSet, McpError> {
    const { clientId, clientSecret, authMethod: method } = this;
    const authenticate = secretAuthentication({ clientId, clientSecret, method });
    return requestToken(grant, authenticate, { grant_type: "client_credentials" });
  }
}

/** The flow of `AgentSecret`. */
export const agentSecret: CredentialFlow = oauthFlow("agent-secret", "AgentSecret");
