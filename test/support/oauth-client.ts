/** Sends requests as the contract of `CredentialFlow` asks a transport to. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { Authorization, AuthorizeRequest, CredentialFlow } from "../../src/core/contracts.ts";
import type { Credential } from "../../src/core/endpoint.ts";
import type { McpError } from "../../src/core/errors.ts";
import { lift } from "../../src/core/answer.ts";
import { credentialFlowsBuiltins } from "../../src/plugins/credentials/builtins.ts";
import { type OAuthScript, type OAuthWorld, startOAuth } from "../../src/testing/servers/oauth.ts";

export const flowFor = (credential: Credential): CredentialFlow =>
  credentialFlowsBuiltins.find((flow) => flow.kind === credential.kind)!;

export const authorize = (credential: Credential, request: AuthorizeRequest): Effect.Effect<Authorization, McpError> =>
  lift(credential.kind, () => flowFor(credential).authorize(credential, request)) as Effect.Effect<
    Authorization,
    McpError
  >;

export interface Sent {
  readonly status: number;
  /** How often the request went out. */
  readonly attempts: number;
}

const BODY = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });

/** One POST with a credential; a refusal is answered three times at most, then its status is the result. */
export const send = (
  credential: Credential,
  url: string,
  options: { readonly body?: string } = {},
): Effect.Effect<Sent, McpError> =>
  Effect.gen(function* () {
    let rejected: AuthorizeRequest["rejected"];
    for (let attempts = 1; ; attempts++) {
      const authorization: Authorization = yield* authorize(credential, {
        url,
        method: "POST",
        server: "vault",
        rejected,
      });
      const response = yield* Effect.promise(async () => {
        const headers = { "content-type": "application/json", ...authorization.headers };
        const answer = await fetch(url, { method: "POST", headers, body: options.body ?? BODY });
        return { status: answer.status, headers: answer.headers, text: await answer.text() };
      });
      const { status } = response;
      if ((status !== 401 && status !== 403) || attempts > 3) return { status, attempts };
      rejected = {
        status,
        challenge: response.headers.get("www-authenticate") ?? undefined,
        nonce: response.headers.get("dpop-nonce") ?? undefined,
        authorization,
        detail: response.text.slice(0, 200),
      };
    }
  });

/** A world that ends with the scope. */
export const openOAuth = (script?: OAuthScript): Effect.Effect<OAuthWorld, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => startOAuth(script)),
    (world) => Effect.promise(() => world[Symbol.asyncDispose]()),
  );
