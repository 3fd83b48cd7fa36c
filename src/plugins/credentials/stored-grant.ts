/** Pure: the form in which a login outlives the process. */
import * as Redacted from "effect/Redacted";
import { jsonObject, numberOf, objectOf, textOf, textsOf } from "./json-fields.ts";
import type { RegisteredClient, TokenSet } from "./token-set.ts";

/** Whose login at which resource; no secret. */
export interface GrantKey {
  readonly user: string;
  /** Client id or metadata document; empty for a client registered on the way. */
  readonly client: string;
  readonly resource: string;
}

export const grantKey = ({ user, client, resource }: GrantKey): string =>
  JSON.stringify(["authorization-code", user, client, resource]);

/** The parts of a key, or `undefined` for a key of something else. */
export const parseGrantKey = (key: string): GrantKey | undefined => {
  try {
    const [kind, user, client, resource] = JSON.parse(key) as ReadonlyArray<string | undefined>;
    if (kind !== "authorization-code" || user === undefined || client === undefined || resource === undefined)
      return undefined;
    return { user, client, resource };
  } catch {
    return undefined;
  }
};

const reveal = (secret: Redacted.Redacted<string> | undefined): string | undefined => secret && Redacted.value(secret);
const hide = (secret: string | undefined): Redacted.Redacted<string> | undefined =>
  secret === undefined ? undefined : Redacted.make(secret);

/** A secret: it holds the tokens. */
export const writeGrant = (token: TokenSet, issuer: string): string =>
  JSON.stringify({
    ...token,
    restored: undefined,
    version: 1,
    issuer,
    accessToken: reveal(token.accessToken),
    refreshToken: reveal(token.refreshToken),
    client: token.client && { ...token.client, clientSecret: reveal(token.client.clientSecret) },
  });

const readClient = (value: unknown): RegisteredClient | undefined => {
  const stored = objectOf(value);
  const [issuer, clientId] = [textOf(stored?.["issuer"]), textOf(stored?.["clientId"])];
  if (!stored || issuer === undefined || clientId === undefined) return undefined;
  return {
    issuer,
    clientId,
    clientSecret: hide(textOf(stored["clientSecret"])),
    method: textOf(stored["method"]),
    redirectUri: textOf(stored["redirectUri"]) ?? "",
  };
};

/** A stored login and its issuer; `undefined` for what cannot be read. */
export const readGrant = (secret: string): { readonly issuer: string; readonly token: TokenSet } | undefined => {
  const stored = jsonObject(secret);
  const [issuer, accessToken] = [textOf(stored?.["issuer"]), textOf(stored?.["accessToken"])];
  if (stored?.["version"] !== 1 || issuer === undefined || accessToken === undefined) return undefined;
  return {
    issuer,
    token: {
      accessToken: Redacted.make(accessToken),
      expiresAt: numberOf(stored["expiresAt"]),
      renewAt: numberOf(stored["renewAt"]),
      scopes: textsOf(stored["scopes"]) ?? [],
      refreshToken: hide(textOf(stored["refreshToken"])),
      client: readClient(stored["client"]),
      restored: true,
    },
  };
};
