/** One run of the command: from the words to the exit code, whatever happens. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Logger from "effect/Logger";
import * as References from "effect/References";
import { Cancelled } from "../core/errors.ts";
import { normalize, runCommandLine, type Speaker, wantsJson } from "./command-line.ts";
import { exitCodes } from "./exit-code.ts";
import { harmless, isLively, makeOutput, type TextStream } from "./output.ts";
import { makeSpinner } from "./spinner.ts";

export interface RunOptions {
  readonly words: ReadonlyArray<string>;
  readonly version: string;
  readonly stdout: TextStream;
  readonly stderr: TextStream;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** Log lines go to stderr; stdout is for results. */
const stderrLogger = (stderr: TextStream): Logger.Logger<unknown, void> =>
  Logger.make(({ date, logLevel, message }) => {
    const text = (Array.isArray(message) ? message : [message]).map(String).join(" ");
    stderr.write(`${date.toISOString().slice(11, 23)} ${logLevel.toUpperCase()} ${harmless(text)}\n`);
  });

/** Answers the exit code; interrupting it cancels the work, and ends when every server has ended. */
export const run = (options: RunOptions): Effect.Effect<number> =>
  Effect.suspend(() => {
    const { stdout, stderr, environment } = options;
    const words = normalize(options.words);
    const output = makeOutput({ json: wantsJson(words), stdout, stderr, environment });
    const lively = isLively(stderr, environment);
    let code: number = exitCodes.fine;
    let stands = false;
    const speaker: Speaker = {
      colors: output.style.bold("") !== "",
      answer: (text) => output.result(text),
      remind: (text) => (output.json ? Effect.void : output.note(`${text}\n`)),
    };

    const parsed = runCommandLine(words, options.version, speaker, (work, input, given) => {
      const spinner = makeSpinner(stderr, lively && !given.verbose);
      return work(input, { options: given, output, spinner, untilSignalled: () => void (stands = true) }).pipe(
        Effect.scoped,
        Effect.catch((error) => output.fail(error)),
        Effect.map((answer) => {
          code = answer;
        }),
        Effect.provideService(References.MinimumLogLevel, given.verbose ? "Debug" : "Error"),
      );
    });
    // What is interrupted is the work, not the report of how it ended.
    return Effect.uninterruptibleMask((restore) =>
      Effect.matchCauseEffect(restore(parsed), {
        onSuccess: () => Effect.succeed(code),
        onFailure: (cause) => {
          const error = Cause.squash(cause);
          if (Cause.hasInterruptsOnly(cause) && stands) return Effect.succeed(code);
          if (Cause.hasInterruptsOnly(cause)) return output.fail(new Cancelled({ reason: "interrupted by a signal" }));
          return output.fail(error instanceof Error ? error : new Error(String(error)));
        },
      }),
    ).pipe(Effect.provide(Logger.layer([stderrLogger(stderr)])));
  });
