/** A workload that shows the identity its platform gave it. */
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { type Answer, lift } from "../../core/answer.ts";
import type { CredentialFlow } from "../../core/contracts.ts";
import type { McpError } from "../../core/errors.ts";
import { redacted, type Secret } from "./client-authentication.ts";
import type { Grant, OAuthCredential } from "./oauth-credential.ts";
import { oauthFlow } from "./oauth-flow.ts";
import { requestToken } from "./token-endpoint.ts";
import type { TokenSet } from "./token-set.ts";

/** What the platform's token has to be made for. */
export interface WorkloadAudience {
  readonly issuer: string;
  readonly tokenEndpoint: string;
  readonly resource: string;
}

export interface WorkloadIdentityOptions {
  /** Fetches the platform's JWT, for example from a mounted file; asked for each token request. */
  readonly token: (audience: WorkloadAudience) => Answer<Secret, McpError>;
  /** Where the authorization server wants one. Default: none is sent. */
  readonly clientId?: string | undefined;
  /** Who the credential stands for. Default: the client id, else `"workload"`. */
  readonly user?: string | undefined;
  /** Scopes, space-separated. Default: those the server asks for. */
  readonly scope?: string | undefined;
  /** The authorization server that trusts the platform. Default: the one the MCP server names first. */
  readonly issuer?: string | undefined;
}

/** Trades a platform's JWT for an access token (RFC 7523 section 2.1, MCP workload identity federation). */
export class WorkloadIdentity implements OAuthCredential {
  readonly kind = "workload-identity" as const;
  readonly user: string;
  readonly clientId: string | undefined;
  readonly scope: string | undefined;
  readonly issuer: string | undefined;
  readonly registered: boolean = true;
  /** Two callbacks cannot be compared, so each object is an identity of its own. */
  readonly fingerprint: string = crypto.randomUUID();
  readonly #token: WorkloadIdentityOptions["token"];

  constructor(options: WorkloadIdentityOptions) {
    this.user = options.user ?? options.clientId ?? "workload";
    this.clientId = options.clientId;
    this.scope = options.scope;
    this.issuer = options.issuer;
    this.#token = options.token;
  }

  secrets(): ReadonlyArray<string> {
    return [];
  }

  mint(grant: Grant): Effect.Effect<TokenSet, McpError> {
    const { authorizationServer, resource } = grant.discovered;
    const audience = {
      issuer: authorizationServer.issuer,
      tokenEndpoint: authorizationServer.token_endpoint,
      resource,
    };
    return Effect.flatMap(
      lift("workload-identity", () => this.#token(audience)),
      (token) =>
        requestToken(grant, () => Effect.succeed({}), {
          grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
          assertion: Redacted.value(redacted(token)),
          client_id: this.clientId,
        }),
    );
  }
}

/** The flow of `WorkloadIdentity`. */
export const workloadIdentity: CredentialFlow = oauthFlow("workload-identity", "WorkloadIdentity");
