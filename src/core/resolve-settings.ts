/** Settings from the host, the environment and the defaults. Loaded when a runtime is built, not before. */
import * as Config from "effect/Config";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Schema from "effect/Schema";
import { InvalidConfig } from "./errors.ts";
import type { CountKey, McpSettings, McpSettingsInput, TimeKey } from "./settings.ts";

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
  artifactsMax: 10_000,
  artifactBytesMax: 256 * 1024 * 1024,
};

const environmentName = (key: string): string => `NUCLEO_MCP_${key.replace(/[A-Z]/g, (c) => `_${c}`).toUpperCase()}`;

const isCount = Schema.is(Schema.Int.check(Schema.isGreaterThan(0)));

const invalid = (field: string, fix: string): InvalidConfig =>
  new InvalidConfig({ source: "settings", field, reason: "has a value that cannot be used", fix });

/** The environment holds text: a bare number is milliseconds there too. */
const fromText = (text: string | undefined): Duration.Input | undefined =>
  text !== undefined && /^\d+(\.\d+)?$/.test(text.trim()) ? Number(text) : (text as Duration.Input | undefined);

const time = (key: TimeKey, given: Duration.Input | undefined): Effect.Effect<number, InvalidConfig> => {
  const fix = `Give milliseconds or a duration such as "20 seconds" above zero; in the environment as ${environmentName(key)}.`;
  const text: Effect.Effect<Duration.Input, unknown> =
    given === undefined
      ? Effect.map(
          Config.String(environmentName(key)).pipe(Config.withDefault(undefined)),
          (set) => fromText(set) ?? times[key],
        )
      : Effect.succeed(given);
  const read = Effect.flatMap(text, (input) => Effect.try(() => Duration.fromInputUnsafe(input)));
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
