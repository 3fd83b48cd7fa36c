/** A login in the host's token store. A store that fails costs a login, never a call. */
import * as Effect from "effect/Effect";
import { lift } from "../../core/answer.ts";
import type { TokenStore } from "../../core/contracts.ts";
import type { McpError } from "../../core/errors.ts";
import { tokenStore } from "../../core/ports.ts";
import type { Grant } from "./oauth-credential.ts";
import { readGrant, writeGrant } from "./stored-grant.ts";
import type { TokenSet } from "./token-set.ts";
import { sameIssuer } from "./url-rules.ts";

/** Only what kind of failure it is: the words of a store may hold what it was to keep. */
const kindOf = ({ cause, name }: McpError): string => {
  const { code, name: thrown } = (cause ?? {}) as { readonly code?: unknown; readonly name?: unknown };
  return String(code ?? thrown ?? name);
};

/** Tokens tied to a key that dies with the process are neither stored nor looked for. */
const withStore = <A>(
  grant: Grant,
  use: (store: TokenStore) => Effect.Effect<A, McpError>,
): Effect.Effect<A | undefined> =>
  grant.binding
    ? Effect.succeed(undefined)
    : Effect.flatMap(tokenStore.service, use).pipe(
        Effect.tapError((error) =>
          Effect.logWarning(`The token store failed (${kindOf(error)}); the login is kept in memory only.`),
        ),
        Effect.orElseSucceed(() => undefined),
      );

/** What is kept for the discovered authorization server. */
export const loadGrant = (grant: Grant, key: string): Effect.Effect<TokenSet | undefined> =>
  Effect.map(
    withStore(grant, (store) => lift("tokenStore", () => store.load(key))),
    (secret) => {
      const kept = secret === undefined ? undefined : readGrant(secret);
      return kept && sameIssuer(kept.issuer, grant.discovered.authorizationServer.issuer) ? kept.token : undefined;
    },
  );

export const saveGrant = (grant: Grant, key: string, token: TokenSet): Effect.Effect<void> =>
  withStore(grant, (store) =>
    lift("tokenStore", () => store.save(key, writeGrant(token, grant.discovered.authorizationServer.issuer))),
  );
