/**
 * The live tokens of this process: one per identity and resource, minted once for
 * all who want it. Flows are values that all runtimes of a process share, and so
 * is this; the identity keeps their tokens apart.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import {
  AuthorizationDiscoveryFailed,
  InsufficientScope,
  type McpError,
  TokenEndpointFailed,
} from "../../core/errors.ts";
import { discover, type Discovered } from "./discovery.ts";
import { type Mask, maskOf } from "./masking.ts";
import { reachOf } from "./network-reach.ts";
import type { Grant, OAuthCredential, TokenBinding } from "./oauth-credential.ts";
import { type Flight, fly, makeFlight, pause } from "./single-flight.ts";

import { isAlive, isFresh, type TokenSet } from "./token-set.ts";
import { sameIssuer, shown } from "./url-rules.ts";

/** Most scopes one token is asked for, and most times a token is widened. */
const SCOPES_MAX = 100;
const WIDENINGS_MAX = 10;
/** Most identities and resources remembered; the longest unused one goes first. */
const ENTRIES_MAX = 1_000;

/** The token of one identity for one resource. */
interface Slot {
  current: TokenSet | undefined;
  /** The server refused the current token. */
  refused: boolean;
  /** Scopes asked for so far. */
  scopes: ReadonlyArray<string>;
  widenings: number;
  readonly minting: Flight<TokenSet>;
  readonly widening: Flight<TokenSet>;
}

/** What is known of one server for one identity. */
interface Place {
  discovered: Discovered | undefined;
  slot: Slot | undefined;
  readonly arrival: Flight<TokenSet>;
}

const slots = new Map<string, Slot>();
const places = new Map<string, Place>();

const remember = <A>(map: Map<string, A>, key: string, make: () => A): A => {
  const entry = map.get(key) ?? make();
  map.delete(key);
  map.set(key, entry);
  const [oldest] = map.keys();
  if (map.size > ENTRIES_MAX && oldest !== undefined) map.delete(oldest);
  return entry;
};

const union = (...lists: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => [...new Set(lists.flat())];

const inUse = (slot: Slot | undefined): TokenSet | undefined => (slot?.refused ? undefined : slot?.current);

const mayPass = (error: McpError): boolean => error instanceof TokenEndpointFailed && error.retryable;

/** All tokens of one credential at one server. */
export interface Tokens {
  readonly mask: Mask;
  /** The token to send now; none before the server asked for one. */
  readonly ready: Effect.Effect<TokenSet | undefined, McpError>;
  /** The token in use, for a request that another token was refused for. */
  readonly newerThan: (sent: TokenSet | undefined) => Effect.Effect<TokenSet | undefined>;
  /** Another token than the refused one; finds the authorization server anew, for it may have moved. */
  readonly renew: (sent: TokenSet | undefined, challenge: ServerSays) => Effect.Effect<TokenSet, McpError>;
  /** A token with these scopes beside all it had. */
  readonly widen: (sent: TokenSet, needed: ReadonlyArray<string>) => Effect.Effect<TokenSet, McpError>;
  /** A token minted for this very request was refused: nobody tries again for a while. */
  readonly giveUp: (sent: TokenSet | undefined, error: McpError) => Effect.Effect<void>;
}

export interface ServerSays {
  readonly resourceMetadata: string | undefined;
  readonly scopes: ReadonlyArray<string>;
}

export const tokensOf = (
  credential: OAuthCredential,
  at: { readonly server: string; readonly url: string },
  binding: TokenBinding | undefined,
): Tokens => {
  const identity = [credential.kind, credential.user, credential.fingerprint, binding?.id];
  const place = remember<Place>(places, JSON.stringify([...identity, shown(at.url)]), () => ({
    discovered: undefined,
    slot: undefined,
    arrival: makeFlight(),
  }));
  const slotFor = ({ resource, authorizationServer: { issuer } }: Discovered): Slot =>
    remember<Slot>(slots, JSON.stringify([...identity, issuer, resource]), () => ({
      current: undefined,
      refused: false,
      scopes: [],
      widenings: 0,
      minting: makeFlight(),
      widening: makeFlight(),
    }));

  const mask: Mask = (text) => {
    const { accessToken, refreshToken } = place.slot?.current ?? {};
    const held = [accessToken, refreshToken].flatMap((secret) => (secret ? [Redacted.value(secret)] : []));
    return maskOf([...credential.secrets(), ...held])(text);
  };

  /** What the host itself gave says where its tokens may come from. */
  const reach = reachOf(at.url, credential.issuer);

  const mint = (slot: Slot, discovered: Discovered, scopes: ReadonlyArray<string>, reason: Grant["reason"]) =>
    Effect.map(
      Effect.suspend(() =>
        credential.mint({
          server: at.server,
          mask,
          discovered,
          reach,
          scope: scopes.length > 0 ? scopes.join(" ") : undefined,
          previous: slot.current,
          reason,
          binding,
        }),
      ),
      (token) => {
        slot.current = token;
        slot.refused = false;
        slot.scopes = scopes;
        return token;
      },
    );

  const newerThan: Tokens["newerThan"] = (sent) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      const token = inUse(place.slot);
      return token && token !== sent && isFresh(token, now) ? token : undefined;
    });

  const ready: Tokens["ready"] = Effect.gen(function* () {
    const { slot, discovered, arrival } = place;
    const token = inUse(slot);
    if (!token && arrival.running) return yield* Deferred.await(arrival.running);
    if (!slot?.current || !discovered) return undefined;
    const now = yield* Clock.currentTimeMillis;
    if (token && isFresh(token, now)) return token;
    const alive = token && isAlive(token, now) ? token : undefined;
    const next = fly(slot.minting, mint(slot, discovered, slot.scopes, alive ? "early" : "needed"));
    return yield* alive ? Effect.orElseSucceed(next, () => alive) : next;
  });

  const arrive = (says: ServerSays) =>
    Effect.gen(function* () {
      const known = place.discovered?.authorizationServer.issuer;
      const discovered = yield* discover({
        ...at,
        mask,
        reach,
        challenged: says.resourceMetadata,
        issuer: credential.issuer,
        guess: credential.guess,
      });
      const { issuer } = discovered.authorizationServer;
      if (credential.registered && known !== undefined && !sameIssuer(known, issuer)) {
        const reason = mask(`is now the authorization server instead of '${known}', which the credential belongs to`);
        return yield* new AuthorizationDiscoveryFailed({ ...at, url: shown(issuer), reason, retryable: false });
      }
      const slot = slotFor(discovered);
      place.discovered = discovered;
      place.slot = slot;
      const shared = yield* newerThan(undefined);
      if (shared) return shared;
      const asked = credential.scope?.split(/\s+/).filter(Boolean) ?? union(slot.scopes, says.scopes);
      const scopes = asked.length > 0 ? union(slot.scopes, asked) : (discovered.scopes ?? []);
      return yield* fly(slot.minting, mint(slot, discovered, scopes.slice(0, SCOPES_MAX), "needed"));
    });

  const refuse = (sent: TokenSet | undefined): void => {
    if (sent && place.slot?.current === sent) place.slot.refused = true;
  };

  return {
    mask,
    ready,
    newerThan,
    renew: (sent, says) =>
      Effect.suspend(() => {
        refuse(sent);
        return fly(place.arrival, arrive(says));
      }),
    widen: (sent, needed) =>
      Effect.gen(function* () {
        const { slot, discovered } = place;
        const narrow = (cause?: unknown) =>
          new InsufficientScope({ server: at.server, scopes: needed.map((scope) => mask(scope)) }, cause);
        if (!slot || !discovered) return yield* narrow();
        if (slot.widening.running) yield* Effect.ignore(Deferred.await(slot.widening.running));
        const newer = yield* newerThan(sent);
        if (needed.every((scope) => slot.scopes.includes(scope))) return newer ?? (yield* narrow());
        const scopes = union(slot.scopes, slot.current?.scopes ?? [], needed);
        if (slot.widenings >= WIDENINGS_MAX || scopes.length > SCOPES_MAX) return yield* narrow();
        const wider = Effect.tap(mint(slot, discovered, scopes, "wider"), () => Effect.sync(() => slot.widenings++));
        return yield* Effect.mapError(fly(slot.widening, wider), (error) => (mayPass(error) ? error : narrow(error)));
      }),
    giveUp: (sent, error) =>
      Effect.suspend(() => {
        const { slot, arrival } = place;
        refuse(sent);
        if (!slot || slot.current !== sent) return Effect.void;
        return Effect.andThen(pause(arrival, error), pause(slot.minting, error));
      }),
  };
};
