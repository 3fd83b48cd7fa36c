import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { type ChildProcess, spawn } from "node:child_process";
import { type AddressInfo, createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { nodeBinary } from "../support/node-binary.ts";
import { openDriver } from "../support/scripted-http-client.ts";

const script = fileURLToPath(
  new URL("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js", import.meta.url),
);

/** The server takes its port from PORT and does not tell which one it got for 0. */
const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** The real server on a port of its own; gone when the scope ends. */
const everything = (mode: "streamableHttp" | "sse"): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const port = await freePort();
        const child: ChildProcess = spawn(nodeBinary, [script, mode], {
          env: { ...process.env, PORT: String(port) },
          stdio: ["ignore", "ignore", "pipe"],
        });
        await new Promise<void>((resolve, reject) => {
          let said = "";
          child.stderr!.on("data", (chunk: Buffer) => {
            said += String(chunk);
            if (/(listening|running) on port/.test(said)) resolve();
          });
          child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
        });
        return { child, port };
      }),
      ({ child }) =>
        Effect.promise(
          () =>
            new Promise<void>((resolve) => {
              child.removeAllListeners("exit");
              child.on("exit", () => resolve());
              child.kill("SIGKILL");
            }),
        ),
    ),
    ({ port }) => `http://127.0.0.1:${port}`,
  );

describe("server-everything", () => {
  for (const [mode, path, flavor] of [
    ["streamableHttp", "/mcp", "auto"],
    ["streamableHttp", "/mcp", "streamable-http"],
    ["sse", "/sse", "auto"],
    ["sse", "/sse", "sse"],
  ] as const)
    it.live(`${mode} as ${flavor}`, () =>
      Effect.gen(function* () {
        const origin = yield* everything(mode);
        let session: string | undefined;
        yield* Effect.scoped(
          Effect.gen(function* () {
            const driver = yield* openDriver(origin + path, { flavor });
            expect((yield* driver.handshake).serverInfo.name).toContain("everything");
            session = driver.transport.sessionId;
            expect((yield* driver.request("tools/list")).tools.length).toBeGreaterThan(5);
            const calls = Array.from({ length: 10 }, (_, i) =>
              driver.start("tools/call", { name: "echo", arguments: { message: `m${i}` } }),
            );
            const answers = yield* Effect.promise(() => Promise.all(calls.map(({ answer }) => answer)));
            expect(answers.map((answer) => answer.content[0].text)).toEqual(calls.map((_, i) => `Echo: m${i}`));
            expect(driver.diagnostics).toEqual([]);
          }),
        );
        if (mode !== "streamableHttp") return;
        expect(session).toBeDefined();
        const ended = yield* Effect.promise(() =>
          fetch(origin + path, { method: "DELETE", headers: { "mcp-session-id": session! } }),
        );
        expect(ended.ok).toBe(false);
      }),
    );
});
