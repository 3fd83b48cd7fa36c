/**
 * Which protocol era to speak with an endpoint: what it was told to, else what was
 * learnt before, else the transport's order. Source: MCP 2026-07-28, basic/versioning.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { type Answer, lift } from "../answer.ts";
import type { EraVerdict, McpTransport, ProtocolEngine, TransportPlugin, VerdictStore } from "../contracts.ts";
import type { Era, McpEndpoint } from "../endpoint.ts";
import { ConnectFailed, ConnectionLost, HttpFailed, InvalidEndpoint, type McpError, ProtocolError } from "../errors.ts";

/** A verdict is asked for anew after this, ms: an upgraded server still answers `initialize`, so nothing else would tell. */
const VERDICT_AGE = 24 * 60 * 60 * 1000;
/** Verdicts kept in memory: hosts whose tokens or users change see ever new endpoints. */
const VERDICTS_MAX = 1000;

/** Endpoints that may be under suspicion at once: a host may have ever new ones. */
const suspicionsMax = 1_000;

/** What was learnt about endpoints, by their id. */
export interface Verdicts {
  readonly recall: (endpointId: string) => Effect.Effect<Era | undefined>;
  /** Remembers what proved right. */
  readonly keep: (endpointId: string, era: Era) => Effect.Effect<void>;
  /** Forgets what proved wrong. */
  readonly drop: (endpointId: string) => Effect.Effect<void>;
  /** Lets the next connect try this era first. No verdict, and not stored. */
  readonly suspect: (endpointId: string, era: Era) => void;
}

const quietly = <A>(verb: () => Answer<A>): Effect.Effect<A | undefined> =>
  Effect.orElseSucceed(lift("verdictStore", verb), () => undefined);

/** Keeps verdicts in memory, and in the store where the host has one. A store that fails is as good as none. */
export const makeVerdicts = (store: VerdictStore): Verdicts => {
  const known = new Map<string, EraVerdict>();
  const suspected = new Map<string, Era>();
  return {
    suspect: (id, era) => {
      if (suspected.size >= suspicionsMax) suspected.clear();
      suspected.set(id, era);
    },
    recall: (id) =>
      Effect.gen(function* () {
        const suspicion = suspected.get(id);
        if (suspicion) return suspicion;
        const verdict = known.get(id) ?? (yield* quietly(() => store.load(id)));
        const now = yield* Clock.currentTimeMillis;
        return verdict && now - verdict.at < VERDICT_AGE ? verdict.era : undefined;
      }),
    keep: (id, era) =>
      Effect.gen(function* () {
        suspected.delete(id);
        const before = known.get(id);
        const at = yield* Clock.currentTimeMillis;
        if (before?.era === era && at - before.at < VERDICT_AGE) return;
        known.delete(id);
        known.set(id, { era, at });
        const [oldest] = known.keys();
        if (known.size > VERDICTS_MAX && oldest !== undefined) known.delete(oldest);
        yield* quietly(() => store.save(id, { era, at }));
      }),
    drop: (id) => {
      suspected.delete(id);
      known.delete(id);
      return Effect.asVoid(quietly(() => store.remove(id)));
    },
  };
};

/** Modern errors that name no other era: the request was wrong, not the revision. */
const MODERN_FAULTS = [-32_020, -32_021];
const UNSUPPORTED_VERSION = -32_022;
const FIRST_MODERN = "2026";

const names = (data: unknown): ReadonlyArray<string> => {
  const supported = (data as { readonly supported?: unknown } | null | undefined)?.supported;
  return Array.isArray(supported) ? supported.filter((version) => typeof version === "string") : [];
};

/** An `UnsupportedProtocolVersionError` that lists modern versions, none of them ours, stays what it is. */
const deniesEra = (error: ProtocolError, era: Era): boolean => {
  if (era === "legacy") return true;
  if (MODERN_FAULTS.includes(error.code)) return false;
  return !(error.code === UNSUPPORTED_VERSION && names(error.data).some((version) => version >= FIRST_MODERN));
};

/** Statuses that speak of the caller or of the moment, not of what the server speaks. */
const PASSING = [401, 403, 408, 425, 429, 502, 503, 504];

/**
 * Pure. Whether a failed opening says that the server does not speak the era: it answered,
 * and the answer was no. A server that is away, silent or ill says nothing about its era.
 */
export const refusesEra = (error: McpError, era: Era): boolean => {
  if (error instanceof HttpFailed) return !PASSING.includes(error.status);
  if (!(error instanceof ConnectFailed)) return false;
  if (error.phase === "negotiate") return true;
  return error.phase === "handshake" && error.cause instanceof ProtocolError && deniesEra(error.cause, era);
};

/**
 * Pure. Whether the server ended when it was asked. It may have crashed for reasons of its
 * own, so nothing else is tried with a second process at once: that would start a server
 * that always crashes twice for each connect. But it may also be one that ends at what it
 * does not know, so the next connect asks in the other era first.
 */
export const endedAtOpening = (error: McpError): boolean =>
  error instanceof ConnectFailed && error.phase === "handshake" && error.cause instanceof ConnectionLost;

/** The engines to try, in order. More than one only under `auto`. */
export const enginesFor = (
  engines: ReadonlyArray<ProtocolEngine>,
  plugin: TransportPlugin,
  endpoint: McpEndpoint,
  wanted: Era | "auto",
  remembered: Era | undefined,
): ReadonlyArray<ProtocolEngine> | InvalidEndpoint => {
  const carried = plugin.eras?.(endpoint) ?? ["legacy", "modern"];
  const eras = carried.filter((era) => wanted === "auto" || era === wanted);
  if (eras.length === 0)
    return new InvalidEndpoint({
      field: "era",
      reason: `'${wanted}' cannot be spoken over this transport`,
      fix: `Use: ${carried.join(", ")}.`,
    });
  const order = remembered === undefined ? eras : eras.toSorted((a, b) => +(b === remembered) - +(a === remembered));
  const found = order.flatMap((era) => engines.filter((engine) => engine.era === era));
  if (found.length > 0) return found;
  return new InvalidEndpoint({
    field: "era",
    reason: `'${eras.join("' and '")}' has no protocol engine`,
    fix: `Register one, or use: ${engines.map((engine) => engine.era).join(", ") || "(none installed)"}.`,
  });
};

/** Lets a second engine take over a connection: it is started once, whoever asks. */
export const startedOnce = (transport: McpTransport): McpTransport => {
  const start = transport.start.bind(transport);
  let started: Promise<void> | undefined;
  transport.start = () => (started ??= start());
  return transport;
};

export interface Attempt<A, E, R> {
  readonly era: Era;
  readonly open: Effect.Effect<A, E, R>;
}

/**
 * Tries the first era, and the second when the server refuses the first. When it refuses
 * both, the error is that of the legacy era, which most servers speak. `patience`: how
 * long a server may be silent before that counts as its refusal of the modern era, ms.
 */
export const negotiate = <A, E extends McpError, R>(
  [first, second]: ReadonlyArray<Attempt<A, E, R>>,
  patience: number,
): Effect.Effect<A, E, R> => {
  if (!first || !second) return first!.open;
  // Many legacy servers do not answer what they do not know. `initialize` they all know.
  const tried = ({ era, open }: Attempt<A, E, R>): Effect.Effect<A, E | "silent", R> =>
    era === "modern"
      ? Effect.timeoutOrElse(open, { duration: patience, orElse: () => Effect.fail("silent" as const) })
      : open;
  return Effect.catch(tried(first), (one): Effect.Effect<A, E, R> => {
    if (one === "silent") return second.open;
    if (!refusesEra(one, first.era)) return Effect.fail(one);
    return Effect.catch(tried(second), (two) =>
      Effect.fail(two === "silent" || (second.era === "modern" && refusesEra(two, "modern")) ? one : two),
    );
  });
};
