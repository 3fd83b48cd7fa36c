/** The one flow of all OAuth credentials: what to send with a request, and what to do when it is refused. */
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import type { Authorization, AuthorizeRequest, CredentialFlow } from "../../core/contracts.ts";
import type { Credential } from "../../core/endpoint.ts";
import { InsufficientScope, InvalidEndpoint, type McpError, Unauthorized } from "../../core/errors.ts";
import { oauthChallenge, scopesOf } from "./challenge.ts";
import type { OAuthCredential, TokenBinding } from "./oauth-credential.ts";
import { type Tokens, tokensOf } from "./token-cache.ts";
import type { TokenSet } from "./token-set.ts";
import { isSecure, shown } from "./url-rules.ts";

/** What was done so far for the request an authorization was answered to. */
interface Past {
  readonly token?: TokenSet | undefined;
  readonly renewed?: boolean | undefined;
  readonly widened?: boolean | undefined;
  readonly nonced?: boolean | undefined;
}

/** Keeps each request's own past, so that no refusal is answered twice the same way. */
const pasts = new WeakMap<Authorization, Past>();

type Rejected = NonNullable<AuthorizeRequest["rejected"]>;

/** Hides the headers from logs and JSON: they hold the token. */
export const withHeaders = (headers: Readonly<Record<string, string>>): Authorization =>
  Object.defineProperty({} as Authorization, "headers", { value: headers, enumerable: false });

export const labelOf = (request: AuthorizeRequest): string =>
  request.server ??
  shown(request.url)
    .replace(/^https?:\/\//, "")
    .replace(/\/$/, "");

/** No credential goes to a URL that others on the way can read. */
export const refuseInsecure = (url: string): Effect.Effect<void, InvalidEndpoint> =>
  isSecure(url)
    ? Effect.void
    : Effect.fail(
        new InvalidEndpoint({
          field: "url",
          reason: "is neither https nor on this machine, so no credential is sent to it",
          fix: "Use https:.",
        }),
      );

/** The error of a refusal that nothing can be done about (RFC 6750 section 3.1). */
export const refusalOf = (
  rejected: Rejected,
  server: string,
  mask: (text: string) => string,
): Unauthorized | InsufficientScope => {
  const { error, error_description: described, scope } = oauthChallenge(rejected.challenge);
  if (error === "insufficient_scope") {
    return new InsufficientScope({ server, scopes: scopesOf(scope).map((one) => mask(one)) });
  }
  const said = mask(described ?? rejected.detail ?? "");
  const reason =
    rejected.status === 403 ? "forbidden" : error === "invalid_token" ? "token-rejected" : "unauthenticated";
  return new Unauthorized({ server, reason, ...(said === "" ? {} : { detail: said }) });
};

/** Answers a refusal: a nonce, a wider scope or another token, each once for one request. */
const react = (rejected: Rejected, tokens: Tokens, binding: TokenBinding | undefined, request: AuthorizeRequest) =>
  Effect.gen(function* () {
    const past = (rejected.authorization && pasts.get(rejected.authorization)) ?? {};
    const { error, scope, resource_metadata: resourceMetadata } = oauthChallenge(rejected.challenge);
    const refusal = refusalOf(rejected, labelOf(request), tokens.mask);

    if (binding && error === "use_dpop_nonce" && rejected.nonce !== undefined && !past.nonced) {
      binding.keepNonce(request.url, rejected.nonce);
      return { ...past, nonced: true };
    }
    if (error === "insufficient_scope" && past.token) {
      if (past.widened) return yield* refusal;
      return { ...past, widened: true, token: yield* tokens.widen(past.token, scopesOf(scope)) };
    }
    if (rejected.status !== 401 && (error !== "insufficient_scope" || past.token)) return yield* refusal;
    const newer = yield* tokens.newerThan(past.token);
    if (newer) return { ...past, token: newer };
    if (past.renewed) {
      yield* tokens.giveUp(past.token, refusal);
      return yield* refusal;
    }
    const token = yield* tokens.renew(past.token, { resourceMetadata, scopes: scopesOf(scope) });
    return { ...past, renewed: !token.restored, token };
  });

/** Authorizes one request with a token of the credential, tied to a key where there is a binding. */
export const authorizeOAuth = (
  credential: OAuthCredential,
  request: AuthorizeRequest,
  binding?: TokenBinding,
): Effect.Effect<Authorization, McpError> =>
  Effect.gen(function* () {
    const { url, method, rejected } = request;
    yield* refuseInsecure(url);
    const tokens = tokensOf(credential, { server: labelOf(request), url }, binding);
    const past: Past = rejected ? yield* react(rejected, tokens, binding, request) : { token: yield* tokens.ready };
    const headers: Record<string, string> = {};
    if (past.token) {
      const accessToken = Redacted.value(past.token.accessToken);
      headers["Authorization"] = `${binding ? "DPoP" : "Bearer"} ${accessToken}`;
      if (binding) headers["DPoP"] = yield* binding.proof({ method, url, accessToken });
    }
    const authorization = withHeaders(headers);
    pasts.set(authorization, past);
    return authorization;
  });

export const isOAuthCredential = (credential: Credential): credential is OAuthCredential =>
  typeof (credential as Partial<OAuthCredential>).mint === "function";

/** A flow for the credentials of one kind. */
export const oauthFlow = (kind: string, className: string): CredentialFlow => ({
  kind,
  authorize: (credential, request) =>
    isOAuthCredential(credential)
      ? authorizeOAuth(credential, request)
      : Effect.fail(
          new InvalidEndpoint({
            field: "credential",
            reason: `is a plain object of kind '${kind}'`,
            fix: `Make it with new ${className}({ … }).`,
          }),
        ),
});
