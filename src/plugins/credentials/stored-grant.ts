/** Pure: the form in which a login outlives the process. */
import * as Option from "effect/Option";
import * as Redacted from "effect/Redacted";
import * as Schema from "effect/Schema";
import type { TokenSet } from "./token-set.ts";

const text = Schema.optional(Schema.String);
const time = Schema.optional(Schema.Number);

const Stored = Schema.Struct({
  version: Schema.Literal(1),
  issuer: Schema.String,
  accessToken: Schema.String,
  expiresAt: time,
  renewAt: time,
  scopes: Schema.Array(Schema.String),
  refreshToken: text,
  client: Schema.optional(
    Schema.Struct({
      issuer: Schema.String,
      clientId: Schema.String,
      clientSecret: text,
      method: text,
      redirectUri: Schema.String,
    }),
  ),
});

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

/** A stored login and its issuer; `undefined` for what cannot be read. */
export const readGrant = (secret: string): { readonly issuer: string; readonly token: TokenSet } | undefined => {
  const decoded = Option.getOrUndefined(Schema.decodeUnknownOption(Schema.fromJsonString(Stored))(secret));
  if (!decoded) return undefined;
  const { issuer, accessToken, expiresAt, renewAt, scopes, refreshToken, client } = decoded;
  const registered = client && { ...client, method: client.method, clientSecret: hide(client.clientSecret) };
  return {
    issuer,
    token: {
      accessToken: Redacted.make(accessToken),
      expiresAt,
      renewAt,
      scopes,
      refreshToken: hide(refreshToken),
      client: registered,
      restored: true,
    },
  };
};
