/** The part of a login that a person does in a browser (OAuth 2.1 section 4.1, RFC 7636, RFC 9207). */
import * as Effect from "effect/Effect";
import { type Answer, lift } from "../../core/answer.ts";
import { AuthorizationDiscoveryFailed, type McpError, Unauthorized } from "../../core/errors.ts";
import { scopesOf } from "./challenge.ts";
import type { Grant } from "./oauth-credential.ts";
import type { RegisteredClient } from "./token-set.ts";
import { shown } from "./url-rules.ts";

/** Longest wait for the person, ms. */
const LOGIN_TIMEOUT = 5 * 60_000;

/** What a host does for a login. */
export interface LoginHost {
  /** Shows the page to the person. */
  readonly openBrowser: (url: string) => Answer<void, McpError>;
  /**
   * Waits for the browser to come back to the redirect URI with this `state` and answers the
   * whole URL. Called before the browser opens.
   */
  readonly receiveRedirect: (state: string) => Answer<string | URL, McpError>;
}

const randomText = async (): Promise<string> => {
  const { base64url } = await import("jose");
  return base64url.encode(crypto.getRandomValues(new Uint8Array(32)));
};

const challengeOf = async (verifier: string): Promise<string> => {
  const { base64url } = await import("jose");
  return base64url.encode(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))));
};

const refused = (grant: Grant, detail: string): Unauthorized =>
  new Unauthorized({
    server: grant.server,
    reason: "unauthenticated",
    detail: `the login failed, ${grant.mask(detail)}`,
  });

/** Asks for a refresh token where the authorization server says it gives one for that. */
const loginScope = (grant: Grant): string | undefined => {
  const offline = grant.discovered.authorizationServer.scopes_supported?.includes("offline_access");
  return grant.scope !== undefined && offline
    ? [...new Set([...scopesOf(grant.scope), "offline_access"])].join(" ")
    : grant.scope;
};

/** Checks the answer in the order that trusts nothing of it: state, issuer, error, code. */
const codeOf = (grant: Grant, redirect: string | URL, state: string): string | Unauthorized => {
  const { authorizationServer: server } = grant.discovered;
  if (!URL.canParse(String(redirect))) return refused(grant, "the redirect is not a URL");
  const params = new URL(redirect).searchParams;
  if (params.getAll("state").join() !== state) return refused(grant, "the answer belongs to another login (state)");
  const issuers = params.getAll("iss");
  // RFC 9207 section 2.4: simple string comparison, no normalisation.
  if (issuers.length > 0 ? issuers.join() !== server.issuer : server.authorization_response_iss_parameter_supported)
    return refused(grant, `the answer is not from '${server.issuer}' (iss ${issuers.join() || "missing"})`);
  const error = params.get("error");
  if (error !== null) return refused(grant, [error, params.get("error_description")].filter(Boolean).join(": "));
  const codes = params.getAll("code");
  return codes.length === 1 && codes[0] ? codes[0] : refused(grant, "the answer holds no code");
};

/** Sends the person to the authorization server and answers what a code can be redeemed with. */
export const login = (
  grant: Grant,
  client: RegisteredClient,
  host: LoginHost,
): Effect.Effect<{ readonly code: string; readonly verifier: string }, McpError> =>
  Effect.gen(function* () {
    const { authorizationServer: server, resource } = grant.discovered;
    const endpoint = server.authorization_endpoint;
    if (endpoint === undefined || !server.code_challenge_methods_supported?.includes("S256")) {
      const reason =
        endpoint === undefined ? "has no authorization_endpoint" : "does not say that it supports PKCE with S256";
      const fields = { server: grant.server, url: shown(server.issuer), reason, retryable: false };
      return yield* new AuthorizationDiscoveryFailed(fields);
    }
    const verifier = yield* Effect.promise(randomText);
    const state = yield* Effect.promise(randomText);
    const url = new URL(endpoint);
    const scope = loginScope(grant);
    const params: Record<string, string | undefined> = {
      response_type: "code",
      client_id: client.clientId,
      redirect_uri: client.redirectUri,
      state,
      code_challenge: yield* Effect.promise(() => challengeOf(verifier)),
      code_challenge_method: "S256",
      resource,
      scope,
      // OpenID Connect Core section 11: offline access needs consent.
      prompt: scopesOf(scope).includes("offline_access") ? "consent" : undefined,
    };
    for (const [name, value] of Object.entries(params)) if (value !== undefined) url.searchParams.set(name, value);

    const receive = lift("authorization-code", () => host.receiveRedirect(state));
    const open = lift("authorization-code", () => host.openBrowser(url.href));
    const [redirect] = yield* Effect.all([receive, open], { concurrency: 2 }).pipe(
      Effect.timeoutOrElse({
        duration: LOGIN_TIMEOUT,
        orElse: () =>
          Effect.fail(refused(grant, `nobody came back from the browser within ${LOGIN_TIMEOUT / 60_000} min`)),
      }),
    );
    const code = codeOf(grant, redirect, state);
    return typeof code === "string" ? { code, verifier } : yield* code;
  });
