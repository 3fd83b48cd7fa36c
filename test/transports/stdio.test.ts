import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type { StdioEndpointOptions } from "../../src/core/endpoint.ts";
import { ConnectionLost, MessageTooLarge } from "../../src/core/errors.ts";
import type { McpSettingsInput } from "../../src/core/settings.ts";
import { stdioTransport } from "../../src/transports/stdio.ts";
import { readLog, scriptedStdio, type StdioProgram } from "../support/scripted-stdio.ts";
import { openStdio, openTransport, type StdioClient } from "../support/stdio-client.ts";
import { isAlive, readPids, until } from "../support/stdio-pids.ts";

const directory = mkdtempSync(join(tmpdir(), "nucleo-mcp-stdio-"));
let files = 0;
const newFile = (): string => join(directory, `${++files}`);

/** Opens a scripted server, runs the body, closes. */
const using = <A>(
  program: StdioProgram,
  body: (client: StdioClient) => Promise<A>,
  settings: McpSettingsInput = { closeGrace: 300 },
  options: Partial<StdioEndpointOptions> = {},
): Effect.Effect<A, unknown> =>
  Effect.scoped(
    Effect.flatMap(openStdio({ ...scriptedStdio(program), ...options }, settings), (client) =>
      Effect.tryPromise({ try: () => body(client), catch: (error) => error }),
    ),
  );

describe("stdio transport", () => {
  it("names its gates: the endpoint's own first, then the one all share", () => {
    const settings = { stdioEndpointMax: 3, stdioPoolMax: 5 };
    expect(stdioTransport.gates?.({ name: "a" } as never, settings as never)).toEqual([
      { name: "mcp:a", capacity: 3 },
      { name: "mcp:stdio", capacity: 5 },
    ]);
  });

  it.live("speaks with a server, both ways", () =>
    using(
      { on: { "tools/call": [{ request: { id: "r1", method: "roots/list" } }, { notify: { method: "n/x" } }] } },
      async (client) => {
        expect((await client.handshake()).result.serverInfo.name).toBe("scripted");
        expect(client.transport.pid).toBeGreaterThan(0);
        expect(await client.call("echo", { word: "größer 漢字 😀" })).toBe('{"word":"größer 漢字 😀"}');
        expect(client.received.filter(({ method }) => method).map(({ method }) => method)).toEqual([
          "roots/list",
          "n/x",
        ]);
      },
    ),
  );

  it.live("answers that come out of order find their requests", () =>
    using({ on: { "tools/call": [[{ hold: "a" }], [{ release: "a" }, { delay: 20 }]] } }, async (client) => {
      expect(await Promise.all([client.call("echo", { n: 1 }), client.call("echo", { n: 2 })])).toEqual([
        '{"n":1}',
        '{"n":2}',
      ]);
    }),
  );

  it.live("carries 2,000 calls at once, each message whole", () => {
    const log = newFile();
    return using({ log }, async (client) => {
      const answers = await Promise.all(Array.from({ length: 2000 }, (_, i) => client.call("echo", { i })));
      expect(answers).toEqual(Array.from({ length: 2000 }, (_, i) => `{"i":${i}}`));
      expect(readLog(log).filter(({ kind }) => kind === "message")).toHaveLength(2000);
    });
  });

  it.live("C-008: messages of 65 KB, 1 MiB and 9 MiB arrive, both ways, and small ones after them", () =>
    using(
      {
        on: {
          "tools/call": [
            [{ big: 65_537 }],
            [{ echo: true }],
            [{ big: 1_048_576 }],
            [{ echo: true }],
            [{ big: 9_437_184 }],
            [{ echo: true }],
          ],
        },
      },
      async (client) => {
        for (const [size, back] of [
          [65_537, 65_537],
          [1_048_576, 1_048_576],
          [9_437_184, 1],
        ] as const) {
          expect((await client.call("big")).length).toBe(size);
          expect((await client.call("echo", { pad: "p".repeat(back) })).length).toBe(back + 10);
        }
      },
    ),
  );

  it.live("C-004: floods of stderr before and within a request, with newlines and without, block nothing", () =>
    using(
      {
        onStart: [{ stderrFlood: { bytes: 262_144 } }],
        on: {
          "tools/call": [
            [{ stderrFlood: { bytes: 262_144 } }],
            [{ stderrFlood: { bytes: 4_000_000, newline: false } }],
          ],
        },
      },
      async (client) => {
        await client.handshake();
        expect(await client.call("echo", { n: 1 })).toBe('{"n":1}');
        expect(await client.call("echo", { n: 2 })).toBe('{"n":2}');
        const tail = (): string => client.transport.end?.().stderrTail ?? "";
        await until("the flood is read", () => !tail().includes("\n"));
        expect(tail().length).toBe(1000);
      },
      { closeGrace: 300, stderrTailMax: 1000 },
    ),
  );

  it.live("C-005: stray lines on stdout are skipped, told of, and harm nothing", () => {
    const noise = "\n   \nStarting server...\n{ not json\n42\n\u001b[32mready\u001b[0m token=geheim-4711\n";
    return using(
      {
        onStart: [{ raw: noise }],
        on: { "tools/call": [{ raw: "half a line without end " }, { raw: "\n" }, { raw: "\r\n" }] },
      },
      async (client) => {
        await client.handshake();
        expect(await Promise.all([client.call("echo", { n: 1 }), client.call("echo", { n: 2 })])).toEqual([
          '{"n":1}',
          '{"n":2}',
        ]);
        expect(client.closes()).toBe(0);
        expect(client.diagnostics.length).toBe(10);
        expect(client.diagnostics[0]).toContain("a blank line");
        expect(client.diagnostics[2]).toContain('(3 so far): "Starting server..."');
        expect(client.diagnostics[5]).toContain('"ready token=***"');
      },
      undefined,
      { env: { TOKEN: "geheim-4711" } },
    );
  });

  it.live("a server that talks to stdout without end is told of ever less", () =>
    using({ onStart: [{ raw: `${"x".repeat(500)}\n`.repeat(1500) }] }, async (client) => {
      await client.handshake();
      expect(client.diagnostics).toHaveLength(12);
      expect(client.diagnostics[11]).toContain("1000 so far");
      expect(client.diagnostics[11]!.length).toBeLessThan(300);
    }),
  );

  it.live("C-006: a multi-byte character in two chunks stays whole", () => {
    const tools = [{ name: "t", description: "em — dash, 漢字, 😀", inputSchema: { type: "object" } }];
    return using({ on: { "tools/list": [{ reply: { tools }, drip: { size: 1, delay: 1 } }] } }, async (client) => {
      expect((await client.request("tools/list")).result.tools).toEqual(tools);
    });
  });

  it.live("delivers each message of a batch", () =>
    using(
      {
        on: {
          "tools/call": [
            {
              message: [
                { jsonrpc: "2.0", method: "n/1" },
                { jsonrpc: "2.0", id: "$id", result: { ok: 1 } },
              ],
            },
            { never: true },
          ],
        },
      },
      async (client) => {
        expect((await client.request("tools/call")).result).toEqual({ ok: 1 });
        expect(client.received[0].method).toBe("n/1");
      },
    ),
  );

  it.live("a message over messageMax fails its request alone", () =>
    using(
      {
        on: {
          "tools/call": [
            [{ big: 200_000 }],
            [
              { stdoutFlood: 200_000, head: '{"result":{"text":"', tail: '"},"jsonrpc":"2.0","id":$id}' },
              { never: true },
            ],
            [{ echo: true }],
          ],
        },
      },
      async (client) => {
        for (let i = 0; i < 2; i++) {
          const { error } = await client.request("tools/call");
          expect(error.data).toBeInstanceOf(MessageTooLarge);
          expect(error.data).toMatchObject({ server: "test", limit: 100_000 });
          expect(error.data.size).toBeGreaterThan(100_000);
          expect(error.message).toBe(error.data.message);
        }
        expect(await client.call("echo", { n: 1 })).toBe('{"n":1}');
      },
      { closeGrace: 300, messageMax: 100_000 },
    ),
  );

  it.live("the server gets the allow-list, its own variables, and nothing else of the host", () => {
    process.env["NUCLEO_TEST_LEAK"] = "leak";
    return using(
      { on: { "tools/call": [{ about: true }] } },
      async (client) => {
        const { env, cwd } = JSON.parse(await client.call("about"));
        expect(env).toMatchObject({ TOKEN: "t0ken", HOME: "/nowhere", PATH: process.env["PATH"] });
        const allowed = ["PATH", "HOME", "LANG", "TERM", "TMPDIR", "USER", "SHELL", "TOKEN", "NUCLEO_MCP_SPAWN"];
        expect(Object.keys(env).filter((name) => !allowed.includes(name))).toEqual([]);
        expect(cwd).toBe("/");
      },
      undefined,
      { env: { TOKEN: "t0ken", HOME: "/nowhere" }, cwd: "/" },
    );
  });
});

/** Four calls that are lost: all end at once, a later one is refused, `onclose` fires once. */
const lostCall = async (client: StdioClient): Promise<void> => {
  await client.handshake();
  const startedAt = performance.now();
  const calls = Array.from({ length: 4 }, () => client.call("die"));
  for (const result of await Promise.allSettled(calls)) {
    expect(result).toMatchObject({ status: "rejected", reason: { message: "closed" } });
  }
  expect(performance.now() - startedAt).toBeLessThan(1500);
  const refused = await client.call("later").catch((error: unknown) => error);
  expect(refused).toBeInstanceOf(ConnectionLost);
  expect((refused as ConnectionLost).outcome).toBe("not-sent");
  await client.transport.close();
  expect(client.closes()).toBe(1);
};

describe("the end of a server", () => {
  it.live("C-078: exit in the middle of a call ends all calls, with exit code and last words", () =>
    using(
      {
        on: {
          "tools/call": [
            [{ never: true }],
            [{ never: true }],
            [{ never: true }],
            [{ stderr: "bad key geheim-4711\n" }, { exit: 7 }],
          ],
        },
      },
      async (client) => {
        await lostCall(client);
        expect(client.transport.end?.()).toEqual({ exitCode: 7, stderrTail: "bad key ***" });
      },
      undefined,
      { env: { KEY: "geheim-4711" } },
    ),
  );

  it.live("C-078: killed by a signal", () =>
    using({ on: { "tools/call": [{ kill: "SIGKILL" }] } }, async (client) => {
      await lostCall(client);
      expect(client.transport.end?.()).toMatchObject({ signal: "SIGKILL" });
    }),
  );

  it.live("C-078: stdout closed, process alive", () =>
    using({ ignoreStdinEnd: true, on: { "tools/call": [{ closeStdout: true }, { never: true }] } }, lostCall),
  );

  it.live("C-078: dead, while a grandchild holds its pipes", () => {
    const pidFile = newFile();
    return Effect.andThen(
      using(
        { on: { "tools/call": [{ grandchild: { pidFile, ignoreSigterm: true } }, { delay: 50 }, { exit: 1 }] } },
        lostCall,
      ),
      Effect.sync(() => {
        expect(readPids(pidFile).length).toBeGreaterThan(0);
        expect(readPids(pidFile).filter(isAlive)).toEqual([]);
      }),
    );
  });

  it.live("the last answer before an exit arrives", () =>
    using({ on: { "tools/call": [{ big: 300_000 }, { exit: 0 }] } }, async (client) => {
      expect((await client.call("big")).length).toBe(300_000);
      await client.closed;
      expect(client.transport.end?.()).toMatchObject({ exitCode: 0 });
    }),
  );

  for (const [name, program, end] of [
    ["at once", { onStart: [{ stderr: "no config" }, { exit: 3 }] }, { exitCode: 3, stderrTail: "no config" }],
    ["after 10 ms", { onStart: [{ delay: 10 }, { exit: 3 }] }, { exitCode: 3 }],
    ["by a signal", { onStart: [{ kill: "SIGTERM" }] }, { signal: "SIGTERM" }],
  ] as ReadonlyArray<readonly [string, StdioProgram, object]>) {
    it.live(`C-014: exit ${name} is told once, and nothing goes unhandled`, () =>
      using(program, async (client) => {
        const handshake = client.handshake().catch((error: unknown) => error);
        await client.closed;
        expect(client.closes()).toBe(1);
        expect(await handshake).toBeInstanceOf(Error);
        expect(client.transport.end?.()).toMatchObject(end);
        // A late sender that does not wait for the outcome.
        void client.transport.send({ jsonrpc: "2.0", method: "n" }).catch(() => {});
      }),
    );
  }

  it.live("what waits to be written when the pipe breaks is known not to be sent", () =>
    using({ onStart: [{ delay: 200 }, { exit: 1 }] }, async (client) => {
      const outcome = (pad: number): Promise<unknown> =>
        client.transport
          .send({ jsonrpc: "2.0", method: "n", params: { pad: "x".repeat(pad) } })
          .catch((error: ConnectionLost) => error.outcome);
      // More than a pipe holds, to a server that does not read.
      const first = outcome(1_000_000);
      await new Promise((resolve) => setImmediate(resolve));
      const rest = Array.from({ length: 50 }, () => outcome(10));
      expect(await first).toBe("unknown");
      expect(new Set(await Promise.all(rest))).toEqual(new Set(["not-sent"]));
      expect(client.closes()).toBe(0);
      await client.closed;
    }),
  );

  it.live("an exit before start() is told once started", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const transport = yield* openTransport(scriptedStdio({ onStart: [{ stderr: "no key" }, { exit: 4 }] }));
        yield* Effect.promise(() => until("it has exited", () => transport.end?.().exitCode === 4));
        const closed = new Promise<void>((resolve) => Object.assign(transport, { onclose: resolve }));
        yield* Effect.promise(() => transport.start());
        yield* Effect.promise(() => closed);
        expect(transport.end?.()).toEqual({ exitCode: 4, stderrTail: "no key" });
        const error = yield* Effect.flip(Effect.tryPromise({ try: () => transport.start(), catch: (e) => e }));
        expect(error).toBeInstanceOf(ConnectionLost);
      }),
    ),
  );
});
