/** Every default of the runtime, its unit, and how the environment overrides it. */
import * as Config from "effect/Config";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import type { Era } from "./endpoint.ts";
import { InvalidConfig } from "./errors.ts";

/** Times are milliseconds, sizes bytes. */
export interface McpSettings {
  /** The protocol era to speak where the endpoint does not say. Default `"auto"`: negotiated and remembered. */
  readonly era: Era | "auto";
  /** Slots of the gate `mcp:stdio`: calls in flight on all stdio servers. Default 32. */
  readonly stdioPoolMax: number;
  /** Slots of a stdio endpoint's own gate `mcp:<name>`. Default 10. */
  readonly stdioEndpointMax: number;
  /** Live stdio subprocesses. Default: `stdioPoolMax`. */
  readonly stdioProcessMax: number;
  /** Slots of the shared gate `mcp:http`. Default 64. */
  readonly httpPoolMax: number;
  /** Calls that may wait for admission. Default 10,000. */
  readonly admissionQueueMax: number;
  /** Longest wait for admission. Default 60 s. */
  readonly admissionTimeout: number;
  /** Connect and handshake together. Default 20 s. */
  readonly connectTimeout: number;
  /** Silence after which a request fails; progress resets it. Default 20 s, an endpoint may have its own. */
  readonly requestTimeout: number;
  /** Whole request, progress or not. Default 10 min. */
  readonly maxTotalTimeout: number;
  /** How long an endpoint fails fast after a failed connect. Default 2 min. */
  readonly breakerCooldown: number;
  /** A connection that dies sooner counts as a failed connect. Default 10 s. */
  readonly minUptime: number;
  /** An unused client is evicted after this. Default 5 min. */
  readonly idleTimeout: number;
  /** Each step of ending a subprocess: end of stdin, SIGTERM. Default 2 s. */
  readonly closeGrace: number;
  /** Running calls may finish this long at shutdown. Default 5 s. */
  readonly shutdownGrace: number;
  /** Largest single message. Default 64 MiB. */
  readonly messageMax: number;
  /** Kept tail of a subprocess's stderr. Default 8 KiB. */
  readonly stderrTailMax: number;
  /** Pages read of one list. Default 1,000. */
  readonly listPagesMax: number;
  /** Items read of one list. Default 10,000. */
  readonly listItemsMax: number;
  /** list_changed notifications within this are one refresh. Default 100 ms. */
  readonly listChangedDebounce: number;
  /** A failed listing is tried again after this. Default 5 s. */
  readonly listRetry: number;
}

/** As `McpSettings`; a time may also be an Effect duration such as `"20 seconds"`. */
export type McpSettingsInput = {
  readonly [K in keyof McpSettings]?:
    | (K extends "era" ? McpSettings["era"] : K extends TimeKey ? Duration.Input : number)
    | undefined;
};

type TimeKey =
  | "admissionTimeout"
  | "connectTimeout"
  | "requestTimeout"
  | "maxTotalTimeout"
  | "breakerCooldown"
  | "minUptime"
  | "idleTimeout"
  | "closeGrace"
  | "shutdownGrace"
  | "listChangedDebounce"
  | "listRetry";

type CountKey = Exclude<keyof McpSettings, TimeKey | "era">;

const times: Record<TimeKey, Duration.Input> = {
  admissionTimeout: "60 seconds",
  connectTimeout: "20 seconds",
  requestTimeout: "20 seconds",
  maxTotalTimeout: "10 minutes",
  breakerCooldown: "2 minutes",
  minUptime: "10 seconds",
  idleTimeout: "5 minutes",
  closeGrace: "2 seconds",
  shutdownGrace: "5 seconds",
  listChangedDebounce: "100 millis",
  listRetry: "5 seconds",
};

const counts: Omit<Record<CountKey, number>, "stdioProcessMax"> = {
  stdioPoolMax: 32,
  stdioEndpointMax: 10,
  httpPoolMax: 64,
  admissionQueueMax: 10_000,
  messageMax: 64 * 1024 * 1024,
  stderrTailMax: 8 * 1024,
  listPagesMax: 1_000,
  listItemsMax: 10_000,
};

const environmentName = (key: string): string => `NUCLEO_MCP_${key.replace(/[A-Z]/g, (c) => `_${c}`).toUpperCase()}`;

const isCount = Schema.is(Schema.Int.check(Schema.isGreaterThan(0)));

const invalid = (field: string, fix: string): InvalidConfig =>
  new InvalidConfig({ source: "settings", field, reason: "has a value that cannot be used", fix });

const time = (key: TimeKey, given: Duration.Input | undefined): Effect.Effect<number, InvalidConfig> => {
  const fix = `Give milliseconds or a duration such as "20 seconds" above zero; in the environment as ${environmentName(key)}.`;
  const read: Effect.Effect<Duration.Duration, unknown> =
    given === undefined
      ? Config.Duration(environmentName(key)).pipe(Config.withDefault(Duration.fromInputUnsafe(times[key])))
      : Effect.try({ try: () => Duration.fromInputUnsafe(given), catch: () => invalid(key, fix) });
  return Effect.flatMap(
    Effect.mapError(read, () => invalid(key, fix)),
    (duration) => {
      const ms = Duration.toMillis(duration);
      return ms > 0 ? Effect.succeed(ms) : Effect.fail(invalid(key, fix));
    },
  );
};

const eras: ReadonlyArray<McpSettings["era"]> = ["auto", "legacy", "modern"];

const eraOf = (given: McpSettings["era"] | undefined): Effect.Effect<McpSettings["era"], InvalidConfig> => {
  const name = environmentName("era");
  const fault = (): InvalidConfig => invalid("era", `Give one of ${eras.join(", ")}; in the environment as ${name}.`);
  const read: Effect.Effect<string, unknown> =
    given === undefined ? Config.String(name).pipe(Config.withDefault("auto")) : Effect.succeed(given);
  return Effect.flatMap(Effect.mapError(read, fault), (text) => {
    const era = eras.find((known) => known === text);
    return era ? Effect.succeed(era) : Effect.fail(fault());
  });
};

const number = (key: CountKey, given: number | undefined, fallback: number) => {
  const fix = `Give a whole number above zero; in the environment as ${environmentName(key)}.`;
  const read: Effect.Effect<number, unknown> =
    given === undefined ? Config.Int(environmentName(key)).pipe(Config.withDefault(fallback)) : Effect.succeed(given);
  return Effect.flatMap(
    Effect.mapError(read, () => invalid(key, fix)),
    (value) => (isCount(value) ? Effect.succeed(value) : Effect.fail(invalid(key, fix))),
  );
};

/**
 * Settings from what the host gives, then the environment (`NUCLEO_MCP_IDLE_TIMEOUT`
 * for `idleTimeout`), then the defaults. Fails with `InvalidConfig` naming the field;
 * an unknown key is an error too, so that a typing mistake does not pass in silence.
 */
export const resolveSettings = (input: McpSettingsInput = {}): Effect.Effect<McpSettings, InvalidConfig> =>
  Effect.gen(function* () {
    const known = [...Object.keys(times), ...Object.keys(counts), "stdioProcessMax", "era"];
    const unknown = Object.keys(input).find((key) => !known.includes(key));
    if (unknown !== undefined) {
      return yield* new InvalidConfig({
        source: "settings",
        field: unknown,
        reason: "is no setting",
        fix: `Settings: ${known.join(", ")}.`,
      });
    }
    const resolved: Record<string, number> = {};
    for (const key of Object.keys(times) as Array<TimeKey>) resolved[key] = yield* time(key, input[key]);
    for (const key of Object.keys(counts) as Array<keyof typeof counts>)
      resolved[key] = yield* number(key, input[key], counts[key]);
    resolved["stdioProcessMax"] = yield* number("stdioProcessMax", input.stdioProcessMax, resolved["stdioPoolMax"]!);
    return { ...resolved, era: yield* eraOf(input.era) } as unknown as McpSettings;
  });
