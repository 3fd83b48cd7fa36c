import { chmodSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type { StdioEndpointOptions } from "../../src/core/endpoint.ts";
import { ConnectFailed } from "../../src/core/errors.ts";
import { nodeBinary } from "../support/node-binary.ts";
import { scriptedStdio } from "../support/scripted-stdio.ts";
import { openStdio } from "../support/stdio-client.ts";

const directory = mkdtempSync(join(tmpdir(), "nucleo-mcp-spawn-"));
const file = (name: string, content: string, mode = 0o755): string => {
  const path = join(directory, name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
};
const plain = file("plain.txt", "text", 0o644);
const badInterpreter = file("script.sh", "#!/no/such/interpreter -x\n");
const server = scriptedStdio({});

/** What is wrong with the endpoint; `reason` and `fix` name what is at fault. */
const cases: ReadonlyArray<{
  readonly name: string;
  readonly endpoint: Partial<StdioEndpointOptions> & { readonly command: string };
  readonly reason: string;
  readonly fix: string;
}> = [
  {
    name: "a working directory that is missing",
    endpoint: { ...server, cwd: join(directory, "missing") },
    reason: `its working directory '${join(directory, "missing")}' does not exist`,
    fix: "existing directory",
  },
  {
    name: "a working directory that is a file",
    endpoint: { ...server, cwd: plain },
    reason: `its working directory '${plain}' is a file`,
    fix: "existing directory",
  },
  {
    name: "a working directory with ~",
    endpoint: { ...server, cwd: "~/project" },
    reason: "its working directory '~/project' starts with '~', which only a shell expands",
    fix: "absolute path",
  },
  {
    name: "a command that is not on PATH",
    endpoint: { command: "no-such-command-at-all" },
    reason: "its command 'no-such-command-at-all' was not found on PATH",
    fix: "Install it",
  },
  {
    name: "a path that does not exist",
    endpoint: { command: "./no/such/server" },
    reason: "its command './no/such/server' does not exist",
    fix: "Correct the path",
  },
  {
    name: "a command with ~",
    endpoint: { command: "~/bin/server" },
    reason: "its command '~/bin/server' starts with '~', which only a shell expands",
    fix: "absolute path",
  },
  {
    name: "a command that is not executable",
    endpoint: { command: plain },
    reason: `its command '${plain}' is not executable`,
    fix: "chmod +x",
  },
  {
    name: "a command that is a directory",
    endpoint: { command: directory },
    reason: `its command '${directory}' is a directory`,
    fix: "Name the program itself",
  },
  {
    name: "a script with a missing interpreter",
    endpoint: { command: badInterpreter },
    reason: `its command '${badInterpreter}' is a script for '/no/such/interpreter', which does not exist`,
    fix: "Install that interpreter",
  },
  {
    name: "a command that holds its arguments",
    endpoint: { command: "npx -y some-server" },
    reason: "its command 'npx -y some-server' was not found",
    fix: 'give command: "npx" and args: ["-y","some-server"]',
  },
];

describe("C-087: a server that cannot be started", () => {
  for (const { name, endpoint, reason, fix } of cases) {
    it.live(name, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(Effect.scoped(openStdio({ name: "broken", ...endpoint })));
        expect(error).toBeInstanceOf(ConnectFailed);
        expect(error).toMatchObject({ server: "broken", phase: "spawn", reason });
        expect((error as ConnectFailed).fix).toContain(fix);
        expect(error.message).toContain(reason);
      }),
    );
  }

  it("each with a reason of its own", () => {
    expect(new Set(cases.map(({ reason }) => reason)).size).toBe(cases.length);
  });

  it.live("a NUL in an argument or a variable is refused without showing the value", () =>
    Effect.gen(function* () {
      for (const bad of [{ args: ["a\0b"] }, { env: { TOKEN: "geheim\0" } }]) {
        const error = yield* Effect.flip(Effect.scoped(openStdio({ ...server, ...bad })));
        expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "spawn" });
        expect(error.message).toContain("NUL");
        expect(error.message).not.toContain("geheim");
      }
    }),
  );

  it.live("more arguments than the system takes", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        Effect.scoped(openStdio({ command: nodeBinary, args: ["x".repeat(3_000_000)] })),
      );
      expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "spawn" });
      expect(error.message.length).toBeLessThan(1000);
    }),
  );
});

describe("a server in an odd place", () => {
  const place = join(directory, "path with blanks & 'quotes'");
  mkdirSync(place);
  symlinkSync(nodeBinary, join(place, "my node"));

  it.live("a command and a working directory with blanks and quotes work", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const program = scriptedStdio({ on: { "tools/call": [{ about: true }] } });
        const client = yield* openStdio({ ...program, command: join(place, "my node"), cwd: place });
        expect(JSON.parse(yield* Effect.promise(() => client.call("about"))).cwd).toBe(place);
      }),
    ),
  );

  it.live("a command is looked up on the endpoint's own PATH", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* openStdio({ ...server, command: "my node", env: { PATH: place } });
        expect(yield* Effect.promise(() => client.call("echo", { n: 1 }))).toBe('{"n":1}');
      }),
    ),
  );

  it.live("a relative command is looked up from the working directory", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* openStdio({ ...server, command: "./my node", cwd: place });
        expect(yield* Effect.promise(() => client.call("echo", { n: 1 }))).toBe('{"n":1}');
      }),
    ),
  );
});
