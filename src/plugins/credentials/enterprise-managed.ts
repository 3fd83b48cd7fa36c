/** A person signed in at the company's identity provider, which decides which servers they may use. */
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { type Answer, lift } from "../../core/answer.ts";
import type { CredentialFlow } from "../../core/contracts.ts";
import { type InvalidEndpoint, type McpError, TokenEndpointFailed } from "../../core/errors.ts";
import {
  missing,
  redacted,
  redactedIfAny,
  type Secret,
  secretAuthentication,
  type SecretClient,
} from "./client-authentication.ts";
import { type AuthorizationServer, requireAuthorizationServer } from "./discovery.ts";
import { type NetworkReach, reachOf } from "./network-reach.ts";
import type { Grant, OAuthCredential } from "./oauth-credential.ts";
import { oauthFlow } from "./oauth-flow.ts";
import { postForm, requestToken } from "./token-endpoint.ts";
import type { TokenSet } from "./token-set.ts";
import { shown } from "./url-rules.ts";

const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

export interface EnterpriseManagedOptions {
  /** The client as the MCP server's authorization server knows it. */
  readonly clientId: string;
  readonly clientSecret?: Secret | undefined;
  readonly authMethod?: "client_secret_basic" | "client_secret_post" | undefined;
  readonly identityProvider: {
    readonly issuer: string;
    /** Default: found in the metadata of the issuer. */
    readonly tokenEndpoint?: string | undefined;
    /** The client as the identity provider knows it. */
    readonly clientId: string;
    readonly clientSecret?: Secret | undefined;
    readonly authMethod?: "client_secret_basic" | "client_secret_post" | undefined;
  };
  /** Fetches the identity assertion of the signed-in person; asked for each token request. */
  readonly subjectToken: () => Answer<Secret, McpError>;
  /** Default: `urn:ietf:params:oauth:token-type:id_token`. */
  readonly subjectTokenType?: string | undefined;
  /** Who is signed in. */
  readonly user: string;
  /** Scopes, space-separated. Default: those the server asks for. */
  readonly scope?: string | undefined;
  /** The MCP server's authorization server. Default: the one it names first. */
  readonly issuer?: string | undefined;
}

/**
 * MCP Enterprise-Managed Authorization: the identity assertion is exchanged for an
 * ID-JAG at the identity provider (RFC 8693), and that for an access token at the MCP
 * server's own authorization server (RFC 7523 section 2.1). Neither sees the other's secrets.
 */
export class EnterpriseManaged implements OAuthCredential {
  readonly kind = "enterprise-managed" as const;
  readonly user: string;
  readonly scope: string | undefined;
  readonly issuer: string | undefined;
  readonly registered: boolean = true;
  /** Two callbacks cannot be compared, so each object is an identity of its own. */
  readonly fingerprint: string = crypto.randomUUID();
  readonly #client: SecretClient;
  readonly #provider: SecretClient & { readonly issuer: string; readonly tokenEndpoint: string | undefined };
  readonly #subjectToken: EnterpriseManagedOptions["subjectToken"];
  readonly #subjectTokenType: string;

  constructor(options: EnterpriseManagedOptions) {
    const { clientId, clientSecret, authMethod, identityProvider: idp } = options;
    this.user = options.user;
    this.scope = options.scope;
    this.issuer = options.issuer;
    this.#client = { clientId, clientSecret: redactedIfAny(clientSecret), method: authMethod };
    this.#provider = {
      clientId: idp.clientId,
      clientSecret: redactedIfAny(idp.clientSecret),
      method: idp.authMethod,
      issuer: idp.issuer,
      tokenEndpoint: idp.tokenEndpoint,
    };
    this.#subjectToken = options.subjectToken;
    this.#subjectTokenType = options.subjectTokenType ?? "urn:ietf:params:oauth:token-type:id_token";
  }

  validate(): InvalidEndpoint | undefined {
    return (
      missing("user", this.user) ??
      missing("clientId", this.#client.clientId) ??
      missing("identityProvider.clientId", this.#provider.clientId) ??
      missing("identityProvider.issuer", this.#provider.issuer)
    );
  }

  secrets(): ReadonlyArray<string> {
    return [this.#client, this.#provider].flatMap(({ clientSecret: secret }) =>
      secret ? [Redacted.value(secret)] : [],
    );
  }

  mint(grant: Grant): Effect.Effect<TokenSet, McpError> {
    return Effect.flatMap(this.#identityGrant(grant), (assertion) =>
      requestToken(grant, secretAuthentication(this.#client), {
        grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
        assertion,
      }),
    );
  }

  /** The identity provider is the host's choice; where the MCP server is does not matter to it. */
  get #reach(): NetworkReach {
    return reachOf(this.#provider.issuer, this.#provider.tokenEndpoint);
  }

  #providerMetadata({ server, mask }: Grant): Effect.Effect<AuthorizationServer, McpError> {
    const { issuer, tokenEndpoint } = this.#provider;
    return tokenEndpoint === undefined
      ? requireAuthorizationServer({ server, mask, url: issuer, reach: this.#reach }, issuer)
      : Effect.succeed({ issuer, token_endpoint: tokenEndpoint });
  }

  /** The ID-JAG: a grant for the MCP server's authorization server, made by the identity provider. */
  #identityGrant(grant: Grant): Effect.Effect<string, McpError> {
    return Effect.gen({ self: this }, function* () {
      const metadata = yield* this.#providerMetadata(grant);
      const subject = yield* lift("enterprise-managed", this.#subjectToken);
      const { server, mask, discovered, scope } = grant;
      const endpoint = metadata.token_endpoint;
      const document = yield* postForm(
        { server, mask, reach: this.#reach, binding: undefined },
        endpoint,
        secretAuthentication(this.#provider),
        metadata,
        {
          grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
          requested_token_type: ID_JAG,
          audience: discovered.authorizationServer.issuer,
          resource: discovered.resource,
          scope,
          subject_token: Redacted.value(redacted(subject)),
          subject_token_type: this.#subjectTokenType,
        },
      );
      const { access_token: assertion, issued_token_type: type } = document;
      if (typeof assertion === "string" && assertion !== "" && type === ID_JAG) return assertion;
      const reason = "the identity provider's answer holds no ID-JAG";
      return yield* new TokenEndpointFailed({ server, tokenEndpoint: shown(endpoint), reason, retryable: false });
    });
  }
}

/** The flow of `EnterpriseManaged`. */
export const enterpriseManaged: CredentialFlow = oauthFlow("enterprise-managed", "EnterpriseManaged");
