/** Flags of the command line that are more than a name, and those that every command takes. */
import * as Duration from "effect/Duration";
import * as Option from "effect/Option";
import * as Flag from "effect/cli/Flag";
import { secretVariable } from "./client-secret.ts";
import type { LoginInput } from "./commands/auth.ts";
import { configPlaces } from "./config.ts";
import type { CommandOptions } from "./session.ts";

/** Flags by the names under which a command gets their values. */
type FlagsOf<Input> = { readonly [K in keyof Input]: Flag.Flag<Input[K]> };

const units: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

const readDuration = (text: string): Duration.Duration => {
  const [, amount, unit = ""] = /^(\d+(?:\.\d+)?) ?(ms|s|m|h)$/.exec(text) ?? [];
  const millis = Number(amount) * (units[unit] ?? Number.NaN);
  if (!(millis > 0)) throw new Error("no duration");
  return Duration.millis(millis);
};

export const optional = <A>(flag: Flag.Flag<A>): Flag.Flag<A | undefined> =>
  Flag.map(Flag.optional(flag), Option.getOrUndefined);

export const duration = (name: string, description: string): Flag.Flag<Duration.Duration | undefined> =>
  Flag.String(name).pipe(
    Flag.withMetavar("duration"),
    Flag.withDescription(description),
    Flag.mapTryCatch(readDuration, () => "a number with a unit: 500ms, 20s, 5m or 1h"),
    optional,
  );

/** Flags that every command takes. */
export const sharedFlags: FlagsOf<CommandOptions & { readonly json: boolean }> = {
  config: Flag.String("config").pipe(
    Flag.withAlias("c"),
    Flag.withMetavar("file"),
    Flag.withDescription(`The mcp.json to use. Default: the first of ${configPlaces.join(", ")}`),
    optional,
  ),
  json: Flag.Boolean("json").pipe(
    Flag.withDefault(false),
    Flag.withDescription("Write one JSON document to stdout, errors too"),
  ),
  timeout: duration("timeout", "Longest wait for a connection and for each answer, for example 500ms, 20s or 5m"),
  user: Flag.String("user").pipe(
    Flag.withMetavar("name"),
    Flag.withDescription("Whose login at HTTP servers, where several are kept"),
    optional,
  ),
  verbose: Flag.Boolean("verbose").pipe(Flag.withDefault(false), Flag.withDescription("Tell on stderr what happens")),
};

/** Flags of `auth login`. */
export const loginFlags: FlagsOf<Omit<LoginInput, "server">> = {
  browser: Flag.Boolean("browser").pipe(
    Flag.withDefault(true),
    Flag.withDescription("Open a browser; with --no-browser the page's address is only shown"),
  ),
  clientId: Flag.String("client-id").pipe(
    Flag.withMetavar("id"),
    Flag.withDescription(`A client registered beforehand; its secret, if it has one, in ${secretVariable}`),
    optional,
  ),
  scope: Flag.String("scope").pipe(
    Flag.withMetavar("scopes"),
    Flag.withDescription("What to ask for, separated by blanks. Default: what the server asks for"),
    optional,
  ),
  port: Flag.Int("port").pipe(
    Flag.withMetavar("number"),
    Flag.withDescription("Where the browser comes back to, http://127.0.0.1:<number>/callback. Default: a free one"),
    optional,
  ),
};
