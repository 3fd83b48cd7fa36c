import { describe, expect, it } from "@effect/vitest";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { normalize, type Runner, runCommandLine, wantsJson } from "../../src/cli/command-line.ts";
import { exitCodeOf, serverExitCode, worst } from "../../src/cli/exit-code.ts";
import { similarNames } from "../../src/cli/suggestions.ts";
import { UsageError } from "../../src/cli/usage-error.ts";
import { CircuitOpen, ConnectFailed, InvalidConfig, ProtocolError, Unauthorized } from "../../src/core/errors.ts";

/** What the words say, without doing it. */
const parse = (...words: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const seen: Array<unknown> = [];
    const said: Array<string> = [];
    const say = (text: string) => Effect.sync(() => void said.push(text));
    const run: Runner = (_work, input, options) => Effect.sync(() => void seen.push({ input, options }));
    const speaker = { colors: false, answer: say, remind: say };
    const error = yield* Effect.flip(
      Effect.andThen(runCommandLine(normalize(words), "1.2.3", speaker, run), Effect.fail(undefined)),
    );
    return { run: seen[0] as { input: any; options: any } | undefined, said: said.join("\n"), error };
  });

describe("the words of the command line", () => {
  it.effect("takes options before and after the command", () =>
    Effect.gen(function* () {
      for (const words of [
        ["--config", "a.json", "--timeout", "2s", "--verbose", "tools", "srv"],
        ["tools", "srv", "-c", "a.json", "--timeout=2000ms", "--verbose"],
      ]) {
        const { run } = yield* parse(...words);
        expect(run?.input).toEqual({ server: "srv" });
        expect(run?.options).toMatchObject({ config: "a.json", verbose: true });
        expect(Duration.toMillis(run?.options.timeout)).toBe(2000);
      }
      expect((yield* parse("health")).run?.options).toMatchObject({ config: undefined, timeout: undefined });
    }),
  );

  it.effect("--json with an object gives arguments, alone it asks for JSON output, and both go together", () =>
    Effect.gen(function* () {
      const call = ["call", "srv", "tool"];
      const cases: ReadonlyArray<readonly [ReadonlyArray<string>, string | undefined, boolean, ReadonlyArray<string>]> =
        [
          [[...call, "--json", '{"a":1}'], '{"a":1}', false, []],
          [[...call, '--json={"a":1}'], '{"a":1}', false, []],
          [[...call, "--json", ' {"a":1}', "--json"], ' {"a":1}', true, []],
          [["--json", ...call, "--arguments", "{}"], "{}", true, []],
          [[...call, "--json", "a=1", "b={2}"], undefined, true, ["a=1", "b={2}"]],
          [[...call, "--", "--json", "{}"], undefined, false, ["--json", "{}"]],
        ];
      for (const [words, json, output, pairs] of cases) {
        const { run, error } = yield* parse(...words);
        expect(error).toBeUndefined();
        expect(run?.input).toEqual({ server: "srv", tool: "tool", json, pairs });
        expect(wantsJson(normalize(words))).toBe(output);
      }
    }),
  );

  it.effect("wrong usage is a UsageError that says what to do", () =>
    Effect.gen(function* () {
      for (const [words, message] of [
        [["tools", "--bogus"], "--bogus"],
        [["tols"], "tools"],
        [["tools", "a", "b"], '"b"'],
        [["call", "srv"], "tool"],
        [["tools", "--timeout", "5"], "500ms, 20s, 5m"],
        [["tools", "--timeout", "0s"], "500ms, 20s, 5m"],
        [["tools", "--timeout", "soon"], "500ms, 20s, 5m"],
        [["tools", "--config"], "config"],
        [[], "A command is missing"],
      ] as const) {
        const { error, run } = yield* parse(...words);
        expect(error).toBeInstanceOf(UsageError);
        expect(error?.message).toContain(message);
        expect(error?.message).toContain("--help");
        expect(run).toBeUndefined();
      }
    }),
  );

  it.effect("says where the mark of an approval comes from", () =>
    Effect.gen(function* () {
      const { error } = yield* parse("pins", "approve", "srv", "--yes");
      expect(error).toBeInstanceOf(UsageError);
      expect(error?.message).toContain("without --yes shows the changes and prints their mark");
    }),
  );

  it.effect("answers help and version", () =>
    Effect.gen(function* () {
      const help = yield* parse("call", "--help");
      expect([help.error, help.said]).toEqual([undefined, expect.stringMatching(/nucleo-mcp call[\s\S]*key=value/)]);
      const version = yield* parse("--version");
      expect([version.error, version.said]).toEqual([undefined, "1.2.3"]);
    }),
  );
});

describe("exit codes", () => {
  const failed = new ConnectFailed({ server: "s", endpointId: "s", phase: "spawn", reason: "gone" });
  const refused = new Unauthorized({ server: "s", reason: "unauthenticated" });
  const open = { server: "s", endpointId: "s", retryAt: 0, retryAfter: 0 };
  const rejected = new ProtocolError({ server: "s", code: -32603, reason: "broken" });

  it("tell what kind of thing went wrong", () => {
    expect(exitCodeOf(rejected)).toBe(1);
    expect(exitCodeOf(new InvalidConfig({ source: "f", field: "x", reason: "is wrong", fix: "Mend it." }))).toBe(2);
    expect(exitCodeOf(new UsageError({ message: "?" }))).toBe(2);
    expect(exitCodeOf(failed)).toBe(3);
    expect(exitCodeOf(refused)).toBe(4);
    expect(exitCodeOf(new Error("a defect"))).toBe(1);
  });

  it("an open circuit counts as what opened it, a server that cannot be listed never as a tool's error", () => {
    expect(exitCodeOf(new CircuitOpen(open, refused))).toBe(4);
    expect(exitCodeOf(new CircuitOpen(open))).toBe(3);
    expect(serverExitCode(rejected)).toBe(3);
    expect(worst([0, 3, 2])).toBe(3);
    expect(worst([])).toBe(0);
  });
});

describe("suggestions", () => {
  it.each([
    ["githb", ["github"]],
    ["GitHub", ["github"]],
    ["git", ["github", "gitlab"]],
    ["files", ["filesystem"]],
    ["x", []],
    ["completely-different", []],
    ["", []],
  ])("%s suggests %j", (name, expected) => {
    expect(similarNames(name, ["github", "gitlab", "filesystem", "memory"])).toEqual(expected);
  });
});
