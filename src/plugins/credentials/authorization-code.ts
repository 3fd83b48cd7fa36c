/** A person who logs in with a browser once, and stays logged in by refresh tokens. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import type { CredentialFlow } from "../../core/contracts.ts";
import { type InvalidEndpoint, type McpError, TokenEndpointFailed, Unauthorized } from "../../core/errors.ts";
import { digest } from "../../core/identity.ts";
import { redactedIfAny, type Secret, secretAuthentication } from "./client-authentication.ts";
import { type ClientDescription, clientFor, fault, faultOf, ownClient } from "./client-registration.ts";
import { loadGrant, saveGrant } from "./kept-grant.ts";
import { login, type LoginHost } from "./login.ts";
import type { Grant, OAuthCredential } from "./oauth-credential.ts";
import { oauthFlow } from "./oauth-flow.ts";
import { grantKey } from "./stored-grant.ts";
import { type Form, requestToken } from "./token-endpoint.ts";
import { isFresh, type RegisteredClient, type TokenSet } from "./token-set.ts";
import { sameIssuer } from "./url-rules.ts";

export interface AuthorizationCodeOptions {
  readonly openBrowser?: LoginHost["openBrowser"] | undefined;
  readonly receiveRedirect?: LoginHost["receiveRedirect"] | undefined;
  /** Where the browser comes back to. Needed for a login. */
  readonly redirectUri?: string | undefined;
  /** Who logs in. Default `"user"`; a host of several people names each of them. */
  readonly user?: string | undefined;
  /** A client registered beforehand. Comes before the other two ways. */
  readonly clientId?: string | undefined;
  readonly clientSecret?: Secret | undefined;
  readonly authMethod?: "client_secret_basic" | "client_secret_post" | undefined;
  /** The authorization server the client is registered at. Default: the one the MCP server names first. */
  readonly issuer?: string | undefined;
  /** https URL of a client id metadata document; used where the authorization server takes one. */
  readonly clientMetadataUrl?: string | undefined;
  /** Client metadata for registering on the way (RFC 7591), over the defaults. */
  readonly clientMetadata?: Readonly<Record<string, unknown>> | undefined;
  /** Scopes, space-separated. Default: those the server asks for. */
  readonly scope?: string | undefined;
}

/** Answers of a token endpoint that end a refresh token, or the client it belongs to. */
const ENDED = new Set(["invalid_grant", "invalid_client", "unauthorized_client"]);
const ended = (error: McpError): string | undefined =>
  error instanceof TokenEndpointFailed && ENDED.has(error.error ?? "") ? error.error : undefined;

const sameToken = (a: TokenSet, b: TokenSet | undefined): boolean =>
  b !== undefined && Redacted.value(a.accessToken) === Redacted.value(b.accessToken);

/**
 * OAuth 2.1 authorization code with PKCE. Without `openBrowser` and `receiveRedirect` nobody
 * is asked: a stored login is used and refreshed, and its absence is `Unauthorized`.
 */
export class AuthorizationCode implements OAuthCredential {
  readonly kind = "authorization-code" as const;
  readonly user: string;
  readonly scope: string | undefined;
  readonly issuer: string | undefined;
  readonly registered: boolean;
  readonly guess: boolean = true;
  readonly fingerprint: string;
  readonly #client: ClientDescription;
  readonly #halfHost: boolean;
  readonly #host: LoginHost | undefined;

  constructor(options: AuthorizationCodeOptions) {
    const { clientId, clientSecret, openBrowser, receiveRedirect, redirectUri = "" } = options;
    this.user = options.user ?? "user";
    this.scope = options.scope;
    this.issuer = options.issuer;
    this.registered = clientId !== undefined;
    this.#host = openBrowser && receiveRedirect && { openBrowser, receiveRedirect };
    this.#halfHost = !openBrowser !== !receiveRedirect;
    this.#client = {
      clientId,
      clientSecret: redactedIfAny(clientSecret),
      method: options.authMethod,
      metadataUrl: options.clientMetadataUrl,
      metadata: options.clientMetadata ?? {},
      redirectUri,
    };
    const identity = [clientId, this.secrets(), options.clientMetadataUrl, redirectUri, this.scope, this.issuer];
    this.fingerprint = digest(JSON.stringify(identity));
  }

  validate(): InvalidEndpoint | undefined {
    return this.#halfHost
      ? fault("openBrowser", "stands without receiveRedirect, or the other way round", "Give both, or neither.")
      : faultOf(this.#client, this.#host !== undefined);
  }

  secrets(): ReadonlyArray<string> {
    const { clientSecret } = this.#client;
    return clientSecret ? [Redacted.value(clientSecret)] : [];
  }

  mint(grant: Grant): Effect.Effect<TokenSet, McpError> {
    const wider = grant.reason === "wider";
    return Effect.gen({ self: this }, function* () {
      const kept = yield* loadGrant(grant, this.#key(grant));
      const now = yield* Clock.currentTimeMillis;
      // Another process may have refreshed in the meantime.
      if (kept && !wider && !sameToken(kept, grant.previous) && isFresh(kept, now)) return kept;
      const last = kept ?? grant.previous;
      const refreshed = wider || !last ? undefined : yield* this.#refresh(grant, last);
      if (refreshed) return refreshed;
      // A login takes a person's time: never while the last token still holds.
      if (!this.#host || grant.reason === "early") {
        const detail = "nobody is logged in, or the login has ended; log in again";
        return yield* new Unauthorized({ server: grant.server, reason: "unauthenticated", detail });
      }
      const client = yield* clientFor(grant, this.#client, refreshed === null ? undefined : last?.client);
      const { code, verifier } = yield* login(grant, client, this.#host);
      return yield* this.#request(grant, client, undefined, {
        grant_type: "authorization_code",
        code,
        code_verifier: verifier,
        redirect_uri: client.redirectUri,
        scope: undefined,
      });
    });
  }

  /** A new token by the last refresh token. `undefined`: there is none, or it has ended; `null`: its client has. */
  #refresh(grant: Grant, last: TokenSet): Effect.Effect<TokenSet | undefined | null, McpError> {
    const client = ownClient(grant, this.#client) ?? last.client;
    const { issuer } = grant.discovered.authorizationServer;
    if (!last.refreshToken || !client || !sameIssuer(client.issuer, issuer)) return Effect.succeed(undefined);
    const form = { grant_type: "refresh_token", refresh_token: Redacted.value(last.refreshToken), scope: undefined };
    return Effect.catchIf(
      this.#request(grant, client, last, form),
      (error) => ended(error) !== undefined,
      (error) =>
        Effect.map(loadGrant(grant, this.#key(grant)), (kept) => {
          if (kept && !sameToken(kept, last)) return kept;
          return ended(error) === "invalid_grant" ? undefined : null;
        }),
    );
  }

  #request(
    grant: Grant,
    client: RegisteredClient,
    last: TokenSet | undefined,
    form: Form,
  ): Effect.Effect<TokenSet, McpError> {
    return requestToken(grant, secretAuthentication(client), form).pipe(
      // A refresh token that is not rotated stays good (RFC 6749 section 6).
      Effect.map((token) => ({ ...token, refreshToken: token.refreshToken ?? last?.refreshToken, client })),
      Effect.tap((token) => saveGrant(grant, this.#key(grant), token)),
    );
  }

  #key(grant: Grant): string {
    const client = this.#client.clientId ?? this.#client.metadataUrl ?? "";
    return grantKey({ user: this.user, client, resource: grant.discovered.resource });
  }
}

/** The flow of `AuthorizationCode`. */
export const authorizationCode: CredentialFlow = oauthFlow("authorization-code", "AuthorizationCode");
