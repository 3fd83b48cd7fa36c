/**
 * What the command writes. stdout holds the result alone; all else goes to stderr.
 * With `--json` the result, or the error, is one JSON document.
 */
import * as Effect from "effect/Effect";
import { exitCodeOf, tagOf } from "./exit-code.ts";

/** As much of a stream as is needed here. */
export interface TextStream {
  readonly isTTY?: boolean | undefined;
  readonly columns?: number | undefined;
  readonly write: (text: string, done?: (error?: Error | null) => void) => unknown;
}

type Paint = (text: string) => string;

export interface Style {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
}

export interface Output {
  readonly json: boolean;
  /** For text on stdout. */
  readonly style: Style;
  /** Columns of a terminal on stdout; undefined elsewhere. */
  readonly columns: number | undefined;
  /** A server's own words for stdout: harmless on a terminal, byte for byte in a pipe. */
  readonly foreign: Paint;
  /** Writes text to stdout, whatever the form of output. */
  readonly result: (text: string) => Effect.Effect<void>;
  /** Writes lines of the result. With `--json`, nothing. */
  readonly text: (lines: string) => Effect.Effect<void>;
  /** Writes the result of `--json`. Without it, nothing. */
  readonly document: (value: unknown) => Effect.Effect<void>;
  /** Tells a person something, on stderr. */
  readonly note: (line: string) => Effect.Effect<void>;
  readonly warn: (line: string) => Effect.Effect<void>;
  /** Reports what ended the command; answers its exit code. */
  readonly fail: (error: Error) => Effect.Effect<number>;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether a person sees the stream in a terminal that can move its cursor. */
export const isLively = (stream: TextStream, environment: Environment): boolean =>
  stream.isTTY === true && environment["TERM"] !== "dumb";

const styleFor = (stream: TextStream, environment: Environment): Style => {
  const colors = isLively(stream, environment) && !environment["NO_COLOR"];
  const paint =
    (on: number, off: number): Paint =>
    (text) =>
      colors ? `\u001B[${on}m${text}\u001B[${off}m` : text;
  return { bold: paint(1, 22), dim: paint(2, 22), red: paint(31, 39), green: paint(32, 39), yellow: paint(33, 39) };
};

/** Without what could move a terminal's cursor or hide text; line breaks and tabs stay. */
export const harmless = (text: string): string =>
  text.replace(/(?![\n\t])[\p{Cc}\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu, "");

const hidden = new Set(["name", "_tag", "message", "cause", "stack"]);

/** An error as JSON: its tag, its message, its fields. */
export const errorDocument = (error: Error): Readonly<Record<string, unknown>> => ({
  tag: tagOf(error),
  message: error.message,
  ...Object.fromEntries(Object.entries(error).filter(([key]) => !hidden.has(key))),
});

/** Settles when the text is handed over; a reader that has gone away is no fault of ours. */
const write = (stream: TextStream, text: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    stream.write(text, () => resume(Effect.void));
  });

export const makeOutput = (options: {
  readonly json: boolean;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly environment: Environment;
}): Output => {
  const { json, stdout, stderr, environment } = options;
  const errorStyle = styleFor(stderr, environment);
  const line = (text: string): Effect.Effect<void> => write(stderr, `${harmless(text)}\n`);
  const labelled = (label: string, text: string): Effect.Effect<void> => write(stderr, `${label} ${harmless(text)}\n`);
  const result = (text: string): Effect.Effect<void> => write(stdout, `${text.replace(/\n$/, "")}\n`);
  const document = (value: unknown): Effect.Effect<void> =>
    json ? result(JSON.stringify(value, null, 2)) : Effect.void;
  return {
    json,
    style: styleFor(stdout, environment),
    // A terminal may tell no size: 0.
    columns: (stdout.isTTY === true && stdout.columns) || undefined,
    foreign: (text) => (stdout.isTTY === true ? harmless(text) : text),
    result,
    text: (lines) => (json ? Effect.void : result(lines)),
    document,
    note: line,
    warn: (text) => labelled(errorStyle.yellow("warning:"), text),
    fail: (error) =>
      Effect.as(
        json ? document({ error: errorDocument(error) }) : labelled(errorStyle.red("error:"), error.message),
        exitCodeOf(error),
      ),
  };
};
