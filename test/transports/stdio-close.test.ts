import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { nodeBinary } from "../support/node-binary.ts";
import { readLog, scriptedStdio, type StdioProgram } from "../support/scripted-stdio.ts";
import { openStdio, openTransport } from "../support/stdio-client.ts";
import { isAlive, readPids } from "../support/stdio-pids.ts";

const directory = mkdtempSync(join(tmpdir(), "nucleo-mcp-close-"));
let files = 0;
const newFile = (): string => join(directory, `${++files}`);

const launcher = fileURLToPath(new URL("../support/stdio-launcher.ts", import.meta.url));
interface CommandLine {
  readonly command: string;
  readonly args: ReadonlyArray<string>;
}
const direct = scriptedStdio;
const launched = (program: StdioProgram): CommandLine => {
  const { command, args } = scriptedStdio(program);
  return { command: nodeBinary, args: [...args.slice(0, 2), launcher, command, ...args] };
};
const stubborn: StdioProgram = { ignoreStdinEnd: true, ignoreSigterm: true };

describe("closing a stdio server", () => {
  it.live("a polite server ends by the end of its stdin, at once", () => {
    const log = newFile();
    return Effect.gen(function* () {
      const elapsed = yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* openStdio(direct({ log }), { closeGrace: 5000 });
          yield* Effect.promise(() => client.handshake());
          // Not awaited: what was sent before the close still arrives.
          void client.transport.send({ jsonrpc: "2.0", method: "notifications/last" });
          const startedAt = performance.now();
          yield* Effect.promise(() => client.transport.close());
          expect(client.closes()).toBe(1);
          expect(client.transport.end?.()).toMatchObject({ exitCode: 0 });
          return performance.now() - startedAt;
        }),
      );
      expect(elapsed).toBeLessThan(2500);
      expect(readLog(log).slice(-2)).toMatchObject([
        { kind: "message", message: { method: "notifications/last" } },
        { kind: "stdin-end" },
      ]);
    });
  });

  it.live("a server that goes on reading nothing gets SIGTERM after the grace, then SIGKILL", () => {
    const log = newFile();
    const pidFile = newFile();
    return Effect.gen(function* () {
      const startedAt = performance.now();
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* openStdio(direct({ ...stubborn, log, pidFile }), { closeGrace: 150 });
          yield* Effect.promise(() => client.handshake());
        }),
      );
      expect(performance.now() - startedAt).toBeGreaterThan(300);
      expect(
        readLog(log)
          .map((line) => (line.kind === "signal" ? line.signal : line.kind))
          .slice(-2),
      ).toEqual(["stdin-end", "SIGTERM"]);
      expect(readPids(pidFile).filter(isAlive)).toEqual([]);
    });
  });

  it.live("C-001: the server behind a launcher ends with it, even when it ignores all politeness", () => {
    const pidFile = newFile();
    return Effect.gen(function* () {
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* openStdio(launched({ ...stubborn, pidFile }), { closeGrace: 100 });
          yield* Effect.promise(() => client.handshake());
          const [server] = readPids(pidFile);
          expect([server, client.transport.pid].filter((pid) => isAlive(pid!))).toHaveLength(2);
          yield* Effect.promise(() => client.transport.close());
          expect([server, client.transport.pid].filter((pid) => isAlive(pid!))).toEqual([]);
        }),
      );
    });
  });

  it.live("close settles when the killed are gone, however short the grace", () => {
    const pidFile = newFile();
    return Effect.scoped(
      Effect.gen(function* () {
        for (let round = 1; round <= 5; round++) {
          const client = yield* openStdio(launched({ ...stubborn, pidFile }), { closeGrace: 1 });
          yield* Effect.promise(() => client.handshake());
          yield* Effect.promise(() => client.transport.close());
          expect(readPids(pidFile)).toHaveLength(round);
          expect([client.transport.pid!, ...readPids(pidFile)].filter(isAlive)).toEqual([]);
        }
      }),
    );
  });

  it.live("C-001: the server ends when its launcher has died first", () => {
    const pidFile = newFile();
    return Effect.scoped(
      Effect.gen(function* () {
        const client = yield* openStdio(launched({ ...stubborn, pidFile }), { closeGrace: 100 });
        yield* Effect.promise(() => client.handshake());
        process.kill(client.transport.pid!, "SIGKILL");
        yield* Effect.promise(() => client.closed);
        expect(client.transport.end?.()).toMatchObject({ signal: "SIGKILL" });
        yield* Effect.promise(() => client.transport.close());
        expect(readPids(pidFile)).toHaveLength(1);
        expect(readPids(pidFile).filter(isAlive)).toEqual([]);
      }),
    );
  });

  it.live("a server that logs more than a pipe holds at its end is not killed for it", () => {
    const code = `process.stdin.resume().on("end", () => { process.stderr.write("e".repeat(500000), () => process.exit(9)); })`;
    return Effect.scoped(
      Effect.gen(function* () {
        const client = yield* openStdio({ command: nodeBinary, args: ["-e", code] }, { closeGrace: 5000 });
        yield* Effect.promise(() => client.transport.close());
        expect(client.transport.end?.()).toMatchObject({ exitCode: 9 });
      }),
    );
  });

  it.live("a server that does not read is closed all the same", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const client = yield* openStdio({ command: "sleep", args: ["1000"] }, { closeGrace: 100 });
        const sent = client.transport
          .send({ jsonrpc: "2.0", method: "n", params: { pad: "x".repeat(1_000_000) } })
          .catch((error: unknown) => error);
        yield* Effect.promise(() => client.transport.close());
        expect(yield* Effect.promise(() => sent)).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
        expect(client.transport.end?.()).toMatchObject({ signal: "SIGTERM" });
      }),
    ),
  );

  it.live("closing twice is closing once; without a start too", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const transport = yield* openTransport(direct({}));
        yield* Effect.promise(() => Promise.all([transport.close(), transport.close()]));
        yield* Effect.promise(() => transport.close());
        expect(isAlive(transport.pid!)).toBe(false);
      }),
    ),
  );

  it.live("an interrupted opening leaves no process", () => {
    const pidFile = newFile();
    return Effect.gen(function* () {
      for (let i = 0; i < 10; i++) {
        const fiber = yield* Effect.forkChild(
          Effect.scoped(
            Effect.andThen(openTransport(direct({ ...stubborn, pidFile }), { closeGrace: 50 }), Effect.never),
          ),
        );
        yield* Effect.sleep(i * 5);
        yield* Fiber.interrupt(fiber);
        expect(readPids(pidFile).filter(isAlive)).toEqual([]);
      }
    });
  });
});

describe("100 open/close cycles leave no process", () => {
  /** Servers that take a few milliseconds to start; each appends its pid to the file `$0` and answers one request. */
  const answer = `printf '%s\\n' '{"jsonrpc":"2.0","id":1,"result":{}}'`;
  const small = `echo $$ >> "$0"; read -r line; ${answer}; cat > /dev/null`;
  const smallStubborn = `trap '' TERM; echo $$ >> "$0"; read -r line; ${answer}; while :; do sleep 1; done`;
  const onNode = `require("node:fs").appendFileSync(process.argv[1], process.pid + "\\n");
    process.stdin.once("data", () => console.log('{"jsonrpc":"2.0","id":1,"result":{}}'));`;

  for (const [name, args, grace] of [
    ["sh -c 'node server & wait'", ['exec 3<&0; "$@" <&3 & wait', "sh", nodeBinary, "-e", onNode], 5000],
    ["a launcher that waits for its server", ['"$@"; exit $?', "sh", "sh", "-c", small], 5000],
    [
      "a server that ignores stdin end and SIGTERM, behind a launcher",
      ['"$@"; exit $?', "sh", "sh", "-c", smallStubborn],
      30,
    ],
  ] as const) {
    it.live(
      name,
      () => {
        const pidFile = newFile();
        const cycle = Effect.scoped(
          Effect.gen(function* () {
            const client = yield* openStdio({ command: "sh", args: ["-c", ...args, pidFile] }, { closeGrace: grace });
            yield* Effect.promise(() => client.request("ping"));
            return client.transport.pid!;
          }),
        );
        return Effect.gen(function* () {
          const leaders = yield* Effect.all(
            Array.from({ length: 100 }, () => cycle),
            { concurrency: 10 },
          );
          expect(readPids(pidFile)).toHaveLength(100);
          expect([...leaders, ...readPids(pidFile)].filter(isAlive)).toEqual([]);
        });
      },
      60_000,
    );
  }
});
