/** Requests to a token endpoint: client authentication, answer and error parsing (RFC 6749 sections 3.2 and 5). */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { type McpError, TokenEndpointFailed } from "../../core/errors.ts";
import { scopesOf } from "./challenge.ts";
import type { ClientAuthentication } from "./client-authentication.ts";
import type { AuthorizationServer } from "./discovery.ts";
import { jsonObject, type JsonObject } from "./json-fields.ts";
import { type Mask, maskOf } from "./masking.ts";
import type { Grant } from "./oauth-credential.ts";
import { exchange, type HttpAnswer } from "./oauth-http.ts";
import { lifetimeOf, renewalSkew, type TokenSet } from "./token-set.ts";
import { shown } from "./url-rules.ts";

type FieldsOfFailure = ConstructorParameters<typeof TokenEndpointFailed>[0];

export type Form = Readonly<Record<string, string | undefined>>;

/** Form fields whose values are secrets; a server may echo them in what it says of an error. */
const SECRET_FIELDS = [
  "client_secret",
  "client_assertion",
  "assertion",
  "subject_token",
  "refresh_token",
  "code",
  "code_verifier",
];

const RETRYABLE = new Set(["temporarily_unavailable", "server_error", "slow_down"]);

/** Retry-After in ms: seconds, or a date (RFC 9110 section 10.2.3). */
const retryAfterOf = (headers: Headers, now: number): number | undefined => {
  const value = headers.get("retry-after");
  if (value === null) return undefined;
  const ms = /^\d+$/.test(value.trim()) ? Number(value) * 1000 : Date.parse(value) - now;
  return Number.isFinite(ms) && ms >= 0 ? ms : undefined;
};

/** Label, mask, reach and proofs of a request; a part of the grant. */
export type Asking = Pick<Grant, "server" | "mask" | "reach" | "binding">;

/** Posts and answers the JSON object. Redirects are never followed: the body holds secrets. */
export const post = (
  { server, mask, reach, binding }: Asking,
  endpoint: string,
  message: { readonly headers: Readonly<Record<string, string>>; readonly body: string },
): Effect.Effect<JsonObject, McpError> =>
  Effect.gen(function* () {
    const fail = (fields: Omit<FieldsOfFailure, "server" | "tokenEndpoint">) =>
      new TokenEndpointFailed({ server, tokenEndpoint: shown(endpoint), ...fields, reason: mask(fields.reason) });
    const once = Effect.gen(function* () {
      const headers: Record<string, string> = { ...message.headers, Accept: "application/json" };
      if (binding) headers["DPoP"] = yield* binding.proof({ method: "POST", url: endpoint });
      const init = { method: "POST", headers, body: message.body };
      const answer = yield* exchange(endpoint, reach, init).pipe(Effect.mapError(fail));
      const nonce = answer.headers.get("dpop-nonce");
      if (nonce !== null) binding?.keepNonce(endpoint, nonce);
      return { answer, document: jsonObject(answer.text), nonce };
    });

    let { answer, document, nonce } = yield* once;
    // RFC 9449 section 8: the same request again, with the nonce asked for.
    if (binding && nonce !== null && document?.["error"] === "use_dpop_nonce") ({ answer, document } = yield* once);

    const ok = answer.status >= 200 && answer.status < 300;
    if (ok && document && document["error"] === undefined) return document;
    return yield* fail(refusal(answer, document, mask, yield* Clock.currentTimeMillis));
  });

/** Posts a form as an authenticated client. */
export const postForm = (
  asking: Asking,
  endpoint: string,
  authenticate: ClientAuthentication,
  authorizationServer: AuthorizationServer,
  form: Form,
): Effect.Effect<JsonObject, McpError> =>
  Effect.gen(function* () {
    const client = yield* authenticate(authorizationServer);
    const entries = Object.entries({ ...form, ...client.form }).filter(
      (entry): entry is [string, string] => !!entry[1],
    );
    const sent = entries.flatMap(([name, value]) => (SECRET_FIELDS.includes(name) ? [value] : []));
    const maskSent = maskOf([...sent, ...Object.values(client.headers ?? {})]);
    const headers = { ...client.headers, "Content-Type": "application/x-www-form-urlencoded" };
    const body = new URLSearchParams(entries).toString();
    return yield* post({ ...asking, mask: (text) => asking.mask(maskSent(text)) }, endpoint, { headers, body });
  });

/** What a refusal says, in fields of the error. */
const refusal = ({ status, headers, text }: HttpAnswer, document: JsonObject | undefined, mask: Mask, now: number) => {
  const code = typeof document?.["error"] === "string" ? mask(document["error"]).slice(0, 60) : undefined;
  const described = document?.["error_description"];
  const retryAfter = retryAfterOf(headers, now);
  const redirected = status >= 300 && status < 400 ? "it redirects, which is not followed" : undefined;
  const plain = document ? "it gives no reason" : `its answer is not JSON: ${text.slice(0, 120) || "(empty)"}`;
  return {
    ...(code === undefined ? {} : { error: code }),
    status,
    reason:
      redirected ?? (typeof described === "string" && described !== "" ? described : code === undefined ? plain : code),
    retryable: status >= 500 || status === 429 || RETRYABLE.has(code ?? ""),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  };
};

/** Lifetime a JWT states of itself, ms: a hint, and without the issuer's clock where it says when it was issued. */
const lifetimeOfJwt = async (token: string, now: number): Promise<number | undefined> => {
  if (token.split(".").length !== 3) return undefined;
  try {
    const { decodeJwt } = await import("jose/jwt/decode");
    const { exp, iat } = decodeJwt(token);
    return exp === undefined ? undefined : lifetimeOf(exp - (iat ?? now / 1000));
  } catch {
    return undefined;
  }
};

/** Asks for an access token for the discovered resource and reads the answer. */
export const requestToken = (
  grant: Grant,
  authenticate: ClientAuthentication,
  form: Form,
): Effect.Effect<TokenSet, McpError> =>
  Effect.gen(function* () {
    const { authorizationServer, resource } = grant.discovered;
    const endpoint = authorizationServer.token_endpoint;
    yield* grant.binding?.check(authorizationServer) ?? Effect.void;
    const asked = yield* Clock.currentTimeMillis;
    const document = yield* postForm(grant, endpoint, authenticate, authorizationServer, {
      resource,
      scope: grant.scope,
      ...form,
    });
    const unusable = (reason: string) =>
      new TokenEndpointFailed({ server: grant.server, tokenEndpoint: shown(endpoint), reason, retryable: false });

    const token = document["access_token"];
    // What a header cannot carry would fail later, in an error that shows it (RFC 6750 section 2.1).
    if (typeof token !== "string" || !/^[\x21-\x7e]+$/.test(token))
      return yield* unusable("its answer holds no usable access_token");
    const type = document["token_type"] ?? "Bearer";
    const wanted = grant.binding ? "dpop" : "bearer";
    if (typeof type !== "string" || type.toLowerCase() !== wanted)
      return yield* unusable(`its token is not of the type ${wanted}`);

    const stated = lifetimeOf(document["expires_in"]);
    const lifetime = stated ?? (yield* Effect.promise(() => lifetimeOfJwt(token, asked)));
    const refreshToken = document["refresh_token"];
    return {
      accessToken: Redacted.make(token),
      expiresAt: stated === undefined ? undefined : asked + stated,
      renewAt: lifetime === undefined ? undefined : asked + lifetime - renewalSkew(lifetime),
      scopes: scopesOf(typeof document["scope"] === "string" ? document["scope"] : undefined),
      refreshToken: typeof refreshToken === "string" && refreshToken !== "" ? Redacted.make(refreshToken) : undefined,
    };
  });
