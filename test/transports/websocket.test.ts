import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import { lift } from "../../src/core/answer.ts";
import type { McpTransport } from "../../src/core/contracts.ts";
import { InvalidEndpoint } from "../../src/core/errors.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { WebSocketEndpoint, websocketTransport } from "../../src/transports/websocket.ts";
import { type Connected, connectEngine, rejection, testSettings } from "../support/engine-peer.ts";
import { nodeBinary } from "../support/node-binary.ts";

let child: ChildProcess;
let port: string;
let printed = "";

beforeAll(async () => {
  const script = fileURLToPath(new URL("../support/engine-websocket-server.ts", import.meta.url));
  child = spawn(nodeBinary, [script], { stdio: ["ignore", "pipe", "inherit"] });
  port = await new Promise((resolve) => {
    child.stdout!.on("data", (chunk) => {
      printed += String(chunk);
      if (printed.includes("\n")) resolve(printed.split("\n")[0]!);
    });
  });
});
afterAll(() => child.kill("SIGKILL"));

/** Sockets the server has seen opened and closed. */
const count = (what: "opened" | "closed"): number => printed.split(what).length - 1;

const alive = (): number => count("opened") - count("closed");

const open = (
  url: string,
  scope: Scope.Closeable,
  settings = testSettings,
  diagnose: (message: string) => void = () => {},
): Effect.Effect<McpTransport, unknown> => {
  const context = { name: "ws", settings, era: "legacy" as const, diagnose };
  return Scope.provide(
    lift(websocketTransport.kind, () => websocketTransport.open(new WebSocketEndpoint({ url }), context)),
    scope,
  );
};

const using = async (
  path: string,
  use: (connected: Connected, transport: McpTransport) => Promise<void>,
  settings = testSettings,
  diagnostics: Array<string> = [],
): Promise<void> => {
  const scope = Effect.runSync(Scope.make());
  const url = `ws://127.0.0.1:${port}${path}`;
  const transport = await Effect.runPromise(open(url, scope, settings, (message) => diagnostics.push(message)));
  await use(await connectEngine(legacyEngine, transport), transport);
  await Effect.runPromise(Scope.close(scope, Exit.void));
};

describe("WebSocketEndpoint", () => {
  it("is identified by its URL; secrets of the URL show nowhere", () => {
    const endpoint = new WebSocketEndpoint({ url: "wss://user:pw@host.example/mcp/?token=s3cret#frag" });
    expect(endpoint.validate()).toBeUndefined();
    expect(endpoint.name).toBe("host.example/mcp");
    expect(endpoint.endpointId).toMatch(/^wss:\/\/host\.example\/mcp\/\?/);
    expect(JSON.stringify(endpoint)).not.toMatch(/s3cret|pw/);
    expect(endpoint.endpointId).not.toMatch(/s3cret|pw/);
    expect(new WebSocketEndpoint({ url: "wss://host.example/mcp/?token=other" }).endpointId).not.toBe(
      endpoint.endpointId,
    );
  });

  it("refuses other schemes and what is no URL", () => {
    expect(new WebSocketEndpoint({ url: "https://host/mcp" }).validate()).toBeInstanceOf(InvalidEndpoint);
    expect(new WebSocketEndpoint({ url: "nowhere" }).validate()?.message).toContain("'url'");
    const hasty = new WebSocketEndpoint({ url: "ws://host/mcp", requestTimeout: 0 });
    expect(hasty.validate()?.message).toContain("'requestTimeout'");
  });

  it("shares the HTTP gate", () => {
    const endpoint = new WebSocketEndpoint({ url: "ws://host/mcp" });
    expect(websocketTransport.gates!(endpoint, testSettings)).toEqual([{ name: "mcp:http", capacity: 64 }]);
  });
});

describe("WebSocket transport with a real SDK server", () => {
  it("calls, in parallel, small and large, and closes when its scope does", async () => {
    const before = count("closed");
    await using("/mcp", async ({ ask, session }) => {
      expect(session.serverInfo).toEqual({ name: "ws", version: "1.0.0" });
      const big = "é".repeat(200_000);
      const calls = [1, 2, 3].map((n) => ask("tools/call", { name: "echo", arguments: { n, big } }));
      const answers = await Promise.all(calls);
      expect(answers.map((answer) => JSON.parse(answer.content[0].text))).toEqual([1, 2, 3].map((n) => ({ n, big })));
    });
    await expect.poll(() => count("closed")).toBe(before + 1);
  });

  it("a close by the server tells code and reason; a later request was not sent", async () => {
    await using("/policy", async ({ ask, closed }) => {
      const error = await rejection(ask("tools/call", { name: "x" }));
      // The answer may overtake the close on the wire; it never does here, as the close frame is first.
      expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
      expect(error.message).toContain("1008");
      expect(await rejection(ask("ping"))).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
      expect(closed).toHaveLength(1);
    });
  });

  it("C-078: a socket that is cut fails the call at once", async () => {
    await using("/reset", async ({ ask }) => {
      expect(await rejection(ask("tools/call", { name: "x" }))).toMatchObject({
        _tag: "ConnectionLost",
        outcome: "unknown",
      });
    });
  });

  it("noise is skipped with a diagnostic", async () => {
    const diagnostics: Array<string> = [];
    await using(
      "/noise",
      async (connected) => {
        expect(await connected.ask("ping")).toEqual({});
        expect(connected.diagnostics.join()).toContain("not JSON");
      },
      testSettings,
      diagnostics,
    );
    expect(diagnostics.join()).toContain("binary");
  });

  it("an answer beyond messageMax fails its own request alone", async () => {
    await using(
      "/mcp",
      async ({ ask }) => {
        const [large, small] = await Promise.all([
          rejection(ask("tools/call", { name: "x", arguments: { size: 20_000 } })),
          ask("tools/call", { name: "x", arguments: { size: 5 } }),
        ]);
        expect(large).toMatchObject({ _tag: "MessageTooLarge", server: "ws", limit: 10_000 });
        expect(small.content[0].text).toBe("xxxxx");
      },
      { ...testSettings, messageMax: 10_000 },
    );
  });

  it("large values that are no messages are skipped, and harm nobody", async () => {
    const diagnostics: Array<string> = [];
    const settings = { ...testSettings, messageMax: 10_000 };
    await using("/bulk", async ({ ask }) => expect(await ask("ping")).toEqual({}), settings, diagnostics);
    expect(diagnostics.filter((text) => text.startsWith("ignored a message of")).length).toBeGreaterThanOrEqual(5);
  });

  it("a server that does not answer the close is left after closeGrace", async () => {
    const started = performance.now();
    await using("/stay", async ({ ask }) => void (await ask("ping")), { ...testSettings, closeGrace: 50 });
    expect(performance.now() - started).toBeLessThan(2500);
  });

  it("a refused upgrade and a closed port are ConnectFailed in phase transport", async () => {
    for (const url of [`ws://127.0.0.1:${port}/refuse`, "ws://127.0.0.1:9/mcp"]) {
      const scope = Effect.runSync(Scope.make());
      const error = await rejection(Effect.runPromise(open(url, scope)));
      expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "transport", server: "ws" });
      await Effect.runPromise(Scope.close(scope, Exit.void));
    }
  });

  it("interrupting an attempt at any point leaves no socket", async () => {
    const before = alive();
    for (const delay of [0, 1, 2, 4, 8, 16]) {
      const scope = Effect.runSync(Scope.make());
      const attempt = Effect.runFork(open(`ws://127.0.0.1:${port}/mcp`, scope));
      await Effect.runPromise(Effect.sleep(delay));
      await Effect.runPromise(Fiber.interrupt(attempt));
      await Effect.runPromise(Scope.close(scope, Exit.void));
    }
    // Sockets are served in order: when this one is through, the server has seen the others.
    await using("/mcp", async ({ ask }) => void (await ask("ping")));
    await expect.poll(alive, { timeout: 5000 }).toBe(before);
  });
});
