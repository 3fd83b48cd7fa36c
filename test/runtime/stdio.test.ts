/** The runtime over real subprocesses: what users of other clients missed. */
import { describe, expect, it } from "@effect/vitest";
import { ConnectionLost, createRuntime, type McpSettingsInput, StdioEndpoint } from "../../src/mod.ts";
import { scratch, until } from "../support/paths.ts";
import { readLog, scriptedStdio, type StdioProgram } from "../support/scripted-stdio.ts";
import { isAlive, readPids } from "../support/stdio-pids.ts";

const server = (name: string, program: StdioProgram = {}) => new StdioEndpoint({ name, ...scriptedStdio(program) });

const start = (settings: McpSettingsInput = {}) => createRuntime({ settings: { closeGrace: 200, ...settings } });

describe("runtime over stdio", () => {
  it("50 callers that ask at once for a new endpoint start exactly one process", async () => {
    const pidFile = `${scratch()}/pids`;
    await using runtime = await start();
    await runtime.attach("s", server("s", { pidFile }));
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, i) => runtime.callTool({ tool: "s__echo", arguments: { i } })),
    );
    expect(results.map((result) => JSON.parse(result.textContent).i)).toEqual(results.map((_, i) => i));
    expect(readPids(pidFile).length).toBe(1);
  });

  it("100 calls to a dead endpoint start exactly one process, the others fail at once", async () => {
    const pidFile = `${scratch()}/pids`;
    await using runtime = await start();
    const dead = server("dead", { pidFile, onStart: [{ exit: 3 }] });
    const first = await runtime.client(dead).catch((error: unknown) => error);
    expect(first).toMatchObject({ _tag: "ConnectFailed", exitCode: 3 });
    const errors = await Promise.all(Array.from({ length: 99 }, () => runtime.client(dead).catch((e: unknown) => e)));
    expect(errors.every((error) => (error as { _tag: string })._tag === "CircuitOpen")).toBe(true);
    expect(readPids(pidFile).length).toBe(1);
  });

  it("C-012: a silent server fails at the limit and is reaped; its neighbour is usable meanwhile", async () => {
    const pidFile = `${scratch()}/pids`;
    await using runtime = await start({ connectTimeout: 3000 });
    const silent = server("silent", { pidFile, on: { initialize: [{ never: true }] } });
    await runtime.attach("silent", silent);
    await runtime.attach("well", server("well"));
    const waiting = runtime.client(silent).catch((error: unknown) => error);
    expect((await runtime.callTool({ tool: "well__echo", arguments: { a: 1 } })).textContent).toContain('"a":1');
    const error = await waiting;
    expect(error).toMatchObject({ _tag: "ConnectFailed", server: "silent", phase: "handshake" });
    await until(() => readPids(pidFile).every((pid) => !isAlive(pid)));
  });

  it("C-014: a server that exits at once harms nobody who is not waiting for it", async () => {
    await using runtime = await start();
    const unhandled: Array<unknown> = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    const endpoints = [
      server("exits", { onStart: [{ exit: 3 }] }),
      server("later", { onStart: [{ delay: 10 }, { exit: 4 }], on: { initialize: [{ never: true }] } }),
      server("killed", { onStart: [{ kill: "SIGKILL" }] }),
      new StdioEndpoint({ name: "missing", command: "no-such-command-anywhere" }),
    ];
    const pending = endpoints.map((endpoint) => [runtime.client(endpoint), runtime.client(endpoint)] as const);
    for (const [a, b] of pending) {
      const [first, second] = await Promise.all([a, b].map((p) => p.catch((error: unknown) => error)));
      expect(first).toMatchObject({ _tag: "ConnectFailed" });
      expect(second).toBe(first);
    }
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });

  it("C-071: answers in any order reach their own callers", async () => {
    await using runtime = await start({ stdioEndpointMax: 200, stdioPoolMax: 200 });
    const holds = Array.from(
      { length: 40 },
      (_, i): ReadonlyArray<{ hold: string } | { release: string } | { echo: true }> =>
        i < 39
          ? [{ hold: `k${i}` }, { echo: true }, ...(i > 0 ? [{ release: `k${i - 1}` }] : [])]
          : [{ echo: true }, { release: "k38" }],
    );
    await runtime.attach("s", server("s", { on: { "tools/call": holds } }));
    await runtime.tools();
    const results = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        runtime.callTool({ tool: "s__echo", arguments: { i, text: "x".repeat(64 * 1024) } }),
      ),
    );
    expect(results.map((result) => JSON.parse(result.textContent).i)).toEqual(results.map((_, i) => i));
  });

  it("C-073: the late answer to a cancelled call is ignored, and the server was told", async () => {
    const log = `${scratch()}/log`;
    await using runtime = await start();
    const calls = [
      [{ hold: "late" }, { echo: true }],
      [{ release: "late" }, { echo: true }],
    ] as const;
    await runtime.attach("s", server("s", { log, on: { "tools/call": calls } }));
    await runtime.tools();
    const controller = new AbortController();
    const first = runtime.callTool({ tool: "s__echo", arguments: { n: 1 } }, { signal: controller.signal });
    await until(() => readLog(log).some((line) => line.kind === "message" && line.message["method"] === "tools/call"));
    const reason = new Error("the user pressed stop");
    controller.abort(reason);
    expect(await first.catch((error: unknown) => error)).toBe(reason);
    expect((await runtime.callTool({ tool: "s__echo", arguments: { n: 2 } })).textContent).toContain('"n":2');
    const sent = readLog(log).flatMap((line) => (line.kind === "message" ? [line.message] : []));
    const call = sent.find((message) => message["method"] === "tools/call")!;
    const cancelled = sent.filter((message) => message["method"] === "notifications/cancelled");
    expect(cancelled.map((message) => message["params"].requestId)).toEqual([call["id"]]);
  });

  it("a signal aborted before the call starts nothing", async () => {
    const log = `${scratch()}/log`;
    await using runtime = await start();
    await runtime.attach("s", server("s", { log }));
    const reason = new Error("too late");
    const call = runtime.callTool({ tool: "s__echo" }, { signal: AbortSignal.abort(reason) });
    expect(await call.catch((error: unknown) => error)).toBe(reason);
    expect(readLog(log)).toEqual([]);
  });

  it("C-078: a server that dies in a call fails every waiting call promptly, and the next use is fresh", async () => {
    const pidFile = `${scratch()}/pids`;
    await using runtime = await start({ minUptime: 1 });
    const calls = [[{ never: true }], [{ never: true }], [{ never: true }], [{ exit: 1 }]] as const;
    await runtime.attach("s", server("s", { pidFile, on: { "tools/call": calls } }));
    await runtime.tools();
    const errors = await Promise.all(
      [1, 2, 3, 4].map((n) => runtime.callTool({ tool: "s__echo", arguments: { n } }).catch((e: unknown) => e)),
    );
    for (const error of errors) {
      expect(error).toBeInstanceOf(ConnectionLost);
      expect(error).toMatchObject({ outcome: "unknown", exitCode: 1 });
    }
    const client = await runtime.client(server("s", { pidFile, on: { "tools/call": calls } }));
    expect(client.isConnected).toBe(true);
    expect(readPids(pidFile).length).toBe(2);
  });

  it("C-079: a server that exits after the handshake is started once per cool-down", async () => {
    const pidFile = `${scratch()}/pids`;
    await using runtime = await start();
    const flapping = server("flapping", { pidFile, on: { "notifications/initialized": [{ exit: 0 }] } });
    for (let i = 0; i < 20; i++) {
      await runtime
        .client(flapping)
        .then((client) => client.ping())
        .catch(() => undefined);
    }
    await until(async () => (await runtime.health()).endpoints[0]?.state === "broken");
    expect(readPids(pidFile).length).toBe(1);
    expect(await runtime.client(flapping).catch((error: unknown) => error)).toMatchObject({ _tag: "CircuitOpen" });
  });

  it("C-081: a write whose answer was lost is not sent twice", async () => {
    const log = `${scratch()}/log`;
    await using runtime = await start({ minUptime: 1 });
    await runtime.attach("s", server("s", { log, on: { "tools/call": [{ exit: 0 }] } }));
    await runtime.tools();
    const error = await runtime.callTool({ tool: "s__echo" }).catch((e: unknown) => e);
    expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
    const sent = readLog(log).filter((line) => line.kind === "message" && line.message["method"] === "tools/call");
    expect(sent.length).toBe(1);
  });

  it("closing ends every process tree, also of servers that ignore it", async () => {
    const pidFile = `${scratch()}/pids`;
    const runtime = await start();
    const stubborn = { pidFile, ignoreStdinEnd: true, ignoreSigterm: true } as const;
    const endpoints = [
      server("polite", { pidFile }),
      server("stubborn", stubborn),
      server("parent", { pidFile, onStart: [{ grandchild: { pidFile, ignoreSigterm: true } }] }),
    ];
    for (const endpoint of endpoints) await (await runtime.client(endpoint)).ping();
    await until(() => readPids(pidFile).length === 4);
    const pids = readPids(pidFile);
    expect(pids.every(isAlive)).toBe(true);
    await runtime.close();
    expect(pids.filter(isAlive)).toEqual([]);
    await runtime.close();
  });

  it("health and errors show no value of the environment", async () => {
    await using runtime = await start();
    const secret = "s3cr3t-value-of-the-token";
    const { command, args } = scriptedStdio({
      onStart: [{ stderr: `the token is ${secret}\n` }],
      on: { initialize: [{ exit: 1 }] },
    });
    const endpoint = new StdioEndpoint({ name: "leaky", command, args, env: { TOKEN: secret } });
    const error = await runtime.client(endpoint).catch((e: unknown) => e);
    expect(error).toMatchObject({ _tag: "ConnectFailed" });
    const everything = [
      JSON.stringify(error),
      String((error as Error).message),
      JSON.stringify(endpoint),
      endpoint.endpointId,
      JSON.stringify(await runtime.health()),
    ].join("\n");
    // The command line itself names the script's text; only the environment is secret.
    expect(everything.replaceAll(args.join(" "), "").replaceAll(JSON.stringify(endpoint.endpointId), "")).not.toContain(
      `TOKEN=${secret}`,
    );
    expect((error as { stderrTail?: string }).stderrTail).toContain("the token is");
    expect((error as { stderrTail?: string }).stderrTail).not.toContain(secret);
  });
});
