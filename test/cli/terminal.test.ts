import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { makeOutput, type TextStream } from "../../src/cli/output.ts";
import { makeSpinner } from "../../src/cli/spinner.ts";
import { ConnectFailed } from "../../src/core/errors.ts";

const makeStream = (isTTY: boolean): TextStream & { written: string } => {
  const stream = {
    isTTY,
    columns: 40,
    written: "",
    write: (text: string, done?: () => void) => {
      stream.written += text;
      done?.();
    },
  };
  return stream;
};

describe("spinner", () => {
  it.effect("shows nothing in the first 300 ms", () =>
    Effect.gen(function* () {
      const stream = makeStream(true);
      const fiber = yield* Effect.forkChild(makeSpinner(stream, true).during("waiting", Effect.sleep(299)));
      yield* TestClock.adjust(299);
      yield* Fiber.join(fiber);
      expect(stream.written).toBe("");
    }),
  );

  it.effect("shows the label as it is by then and the elapsed time, in one line, and clears it at the end", () =>
    Effect.gen(function* () {
      const stream = makeStream(true);
      let label = "one";
      const fiber = yield* Effect.forkChild(makeSpinner(stream, true).during(() => label, Effect.sleep("12 seconds")));
      yield* TestClock.adjust(500);
      expect(stream.written).toContain("one 0.5 s");
      label = `two\n${"x".repeat(100)}`;
      yield* TestClock.adjust(10_500);
      expect(stream.written).toMatch(/two x+ 11 s$/);
      expect(stream.written.split("\r").every((line) => line.length <= 40 + 4)).toBe(true);
      expect(stream.written).not.toContain("\n");
      yield* TestClock.adjust(1_000);
      yield* Fiber.join(fiber);
      expect(stream.written.endsWith("\r\u001B[2K")).toBe(true);
      const { length } = stream.written;
      yield* TestClock.adjust(1_000);
      expect(stream.written).toHaveLength(length);
    }),
  );

  it.effect("clears the line when the work fails or is interrupted, and works in a finalizer", () =>
    Effect.gen(function* () {
      const stream = makeStream(true);
      const spinner = makeSpinner(stream, true);
      const late = Effect.andThen(Effect.sleep(400), Effect.fail("no"));
      const failing = yield* Effect.forkChild(Effect.exit(spinner.during("a", late)));
      yield* TestClock.adjust(400);
      expect(yield* Fiber.join(failing)).toEqual(Exit.fail("no"));
      expect(stream.written.endsWith("\r\u001B[2K")).toBe(true);
      const closing = yield* Effect.forkChild(
        Effect.scoped(Effect.addFinalizer(() => spinner.during("closing", Effect.sleep(500)))),
      );
      yield* TestClock.adjust(500);
      yield* Fiber.join(closing);
      expect(stream.written.endsWith("closing 0.4 s\r\u001B[2K")).toBe(true);
      const endless = yield* Effect.forkChild(spinner.during("b", Effect.never));
      yield* TestClock.adjust(400);
      yield* Fiber.interrupt(endless);
      expect(stream.written.endsWith("\r\u001B[2K")).toBe(true);
    }),
  );

  it.effect("writes nothing when inactive", () =>
    Effect.gen(function* () {
      const stream = makeStream(false);
      const fiber = yield* Effect.forkChild(makeSpinner(stream, false).during("waiting", Effect.sleep(5_000)));
      yield* TestClock.adjust(5_000);
      yield* Fiber.join(fiber);
      expect(stream.written).toBe("");
    }),
  );
});

const make = (options: { json?: boolean; tty?: boolean; environment?: Record<string, string> }) => {
  const stdout = makeStream(options.tty ?? false);
  const stderr = makeStream(options.tty ?? false);
  const { json = false, environment = {} } = options;
  return { stdout, stderr, output: makeOutput({ json, stdout, stderr, environment }) };
};

describe("output", () => {
  const failure = new ConnectFailed({
    server: "s",
    endpointId: "s",
    phase: "spawn",
    reason: "it is gone",
    exitCode: 7,
  });

  it.effect("text goes to stdout, all else to stderr", () =>
    Effect.gen(function* () {
      const { output, stdout, stderr } = make({});
      yield* output.text("result\n");
      yield* output.document({ ignored: true });
      yield* output.warn("careful");
      expect(yield* output.fail(failure)).toBe(3);
      expect(stdout.written).toBe("result\n");
      expect(stderr.written).toBe(`warning: careful\nerror: ${failure.message}\n`);
    }),
  );

  it.effect("with --json an error is a document with its fields", () =>
    Effect.gen(function* () {
      const { output, stdout, stderr } = make({ json: true });
      yield* output.text("ignored");
      expect(yield* output.fail(failure)).toBe(3);
      expect(JSON.parse(stdout.written)).toEqual({
        error: {
          tag: "ConnectFailed",
          message: failure.message,
          server: "s",
          endpointId: "s",
          phase: "spawn",
          reason: "it is gone",
          exitCode: 7,
        },
      });
      expect(stderr.written).toBe("");
    }),
  );

  it.each([
    [{ tty: true }, true],
    [{ tty: false }, false],
    [{ tty: true, environment: { NO_COLOR: "1" } }, false],
    [{ tty: true, environment: { TERM: "dumb" } }, false],
  ])("%j: colors are %s", (options, colored) => {
    expect(make(options).output.style.bold("x") !== "x").toBe(colored);
  });

  it("a server's words cannot move the cursor of a terminal, and go through a pipe as they are", () => {
    const text = "a\u001B[2J\u0007\u202Eb\tc\nd\r";
    expect(make({ tty: true }).output.foreign(text)).toBe("a[2Jb\tc\nd");
    expect(make({}).output.foreign(text)).toBe(text);
  });
});
