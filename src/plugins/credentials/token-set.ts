/** Pure data: what a token endpoint gave, and until when it is good. */
import * as Redacted from "effect/Redacted";

export interface TokenSet {
  readonly accessToken: Redacted.Redacted<string>;
  /** From this moment on the token has expired, epoch ms; `undefined`: good until it is refused. */
  readonly expiresAt: number | undefined;
  /** From this moment on a new one is fetched first, epoch ms; `undefined`: never. */
  readonly renewAt: number | undefined;
  /** Scopes the server says it granted; empty when it says nothing. */
  readonly scopes: ReadonlyArray<string>;
  readonly refreshToken: Redacted.Redacted<string> | undefined;
  /** From a store: the server may have ended it long ago, so its refusal is no surprise. */
  readonly restored?: boolean | undefined;
  /** The client the refresh token belongs to, where it was registered on the way. */
  readonly client?: RegisteredClient | undefined;
}

/** A client known to one authorization server. */
export interface RegisteredClient {
  readonly issuer: string;
  readonly clientId: string;
  readonly clientSecret: Redacted.Redacted<string> | undefined;
  readonly method: string | undefined;
  readonly redirectUri: string;
}

/** Longer lifetimes are taken for nonsense: ten years in seconds. */
const LIFETIME_MAX = 315_360_000;

/** A lifetime in seconds, as number or numeric string; anything else is unknown (RFC 6749 section 5.1). */
export const lifetimeOf = (value: unknown): number | undefined => {
  const seconds = typeof value === "number" || (typeof value === "string" && value.trim() !== "") ? Number(value) : NaN;
  return seconds > 0 && seconds <= LIFETIME_MAX ? seconds * 1000 : undefined;
};

/** Renewal starts this long before the end: a minute, and never more than a tenth of the lifetime. */
export const renewalSkew = (lifetime: number): number => Math.min(60_000, lifetime / 10);

/** Whether the token may be sent without fetching a new one first. */
export const isFresh = (token: TokenSet, now: number): boolean => token.renewAt === undefined || now < token.renewAt;

/** Whether the token may be sent when no new one can be had. */
export const isAlive = (token: TokenSet, now: number): boolean =>
  token.expiresAt === undefined || now < token.expiresAt;
