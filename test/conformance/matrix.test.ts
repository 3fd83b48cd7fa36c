/**
 * Every transport in both eras against real servers: server-everything, and small ones
 * written with either SDK. The host asks for nothing; the era is what the server speaks.
 */
import { describe, expect, it } from "@effect/vitest";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createRuntime,
  type Era,
  HttpEndpoint,
  type McpClient,
  type McpEndpoint,
  ports,
  StdioEndpoint,
  WebSocketEndpoint,
} from "../../src/mod.ts";
import { nodeBinary } from "../support/node-binary.ts";

const path = (file: string): string => fileURLToPath(new URL(file, import.meta.url));
const everything = path("../../node_modules/@modelcontextprotocol/server-everything/dist/index.js");
const modernStdio = path("../support/modern-stdio-server.ts");
const modernHttp = path("../support/modern-http-server.ts");
const webSocket = path("../support/engine-websocket-server.ts");
/** A launcher that notes each start, and then is the server. */
const counted = path("../support/counted-start.ts");

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer();
    server.listen(0, () => {
      const { port } = server.address() as { readonly port: number };
      server.close(() => resolve(port));
    });
  });

/** Runs a server and waits for words that say it is up; answers them, and the way to end it. */
const started = async (
  args: ReadonlyArray<string>,
  up: RegExp,
  env: Record<string, string> = {},
): Promise<AsyncDisposable & { readonly said: RegExpExecArray; readonly log: () => string }> => {
  const child: ChildProcess = spawn(nodeBinary, args, { env: { ...process.env, ...env }, stdio: "pipe" });
  let log = "";
  const said = await new Promise<RegExpExecArray>((resolve, reject) => {
    const hear = (chunk: Buffer): void => {
      log += String(chunk);
      const found = up.exec(log);
      if (found) resolve(found);
    };
    child.stdout!.on("data", hear);
    child.stderr!.on("data", hear);
    child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${log}`)));
  });
  return {
    said,
    log: () => log,
    [Symbol.asyncDispose]: () =>
      new Promise<void>((resolve) => {
        child.removeAllListeners("exit");
        child.on("exit", () => resolve());
        child.kill("SIGKILL");
      }),
  };
};

/** What each kind of server is asked. */
const asks = {
  everything: async (client: McpClient) => {
    const result = await client.callTool("get-sum", { a: 2, b: 3 });
    expect(result.textContent).toContain("5");
    expect((await client.listTools()).length).toBeGreaterThan(3);
    await client.ping();
  },
  modern: async (client: McpClient) => {
    expect(client.instructions).toBe("Add.");
    expect(await client.listTools()).toHaveLength(7);
    expect((await client.callTool("add", { a: 2, b: 3 })).textContent).toBe("5");
    expect((await client.callTool("region", { region: "Zürich" })).textContent).toBe("Zürich");
    expect((await client.callTool("ask")).textContent).toBe("hello Ada");
    const steps: Array<unknown> = [];
    await client.callTool("count", {}, { onProgress: (step) => steps.push(step) });
    expect(steps).toEqual([{ progress: 1, total: 2 }]);
    const heard: Array<string> = [];
    client.onNotification((method) => heard.push(method));
    await client.callTool("log");
    expect(heard).toEqual([]);
    await client.setLogLevel("debug");
    await client.callTool("log");
    await expect.poll(() => heard).toContain("notifications/message");
    await client.callTool("change");
    await expect.poll(async () => (await client.listTools()).length, { timeout: 5000 }).toBe(8);
    expect(await client.listResources()).toHaveLength(1);
    expect(await client.readResource("test://a")).toMatchObject({ contents: [{ text: "content" }] });
    await client.ping();
    const enough = new Error("enough");
    const controller = new AbortController();
    const waiting = client.callTool("wait", {}, { signal: controller.signal });
    setTimeout(() => controller.abort(enough), 50);
    await expect(waiting).rejects.toBe(enough);
  },
  echo: async (client: McpClient) => {
    expect((await client.callTool("echo", { text: "a" })).textContent).toContain("a");
  },
};

const meet = async (endpoint: McpEndpoint, era: Era, asking: keyof typeof asks): Promise<void> => {
  await using runtime = await createRuntime({
    setup: (container) =>
      container.registerInstance(ports.hostHandlers.token, {
        elicitation: { form: () => ({ action: "accept", content: { name: "Ada" } }) },
      }),
  });
  await using client = await runtime.client(endpoint);
  expect(client.era).toBe(era);
  await asks[asking](client);
};

const starts = async (use: (file: string) => Promise<void>): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), "nucleo-mcp-matrix-"));
  try {
    const file = join(folder, "starts");
    await use(file);
    return readFileSync(file, "utf8").trim().split("\n").length;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const TIMEOUT = 60_000;

describe("the matrix of transports and eras", () => {
  it("stdio, legacy: server-everything is started once", { timeout: TIMEOUT }, async () => {
    const times = await starts((file) =>
      meet(
        new StdioEndpoint({ name: "everything", command: nodeBinary, args: [counted, file, everything, "stdio"] }),
        "legacy",
        "everything",
      ),
    );
    expect(times).toBe(1);
  });

  it("stdio, modern: a server that speaks nothing else is started once", { timeout: TIMEOUT }, async () => {
    const times = await starts((file) =>
      meet(
        new StdioEndpoint({ name: "modern", command: nodeBinary, args: [modernStdio, "modern", file] }),
        "modern",
        "modern",
      ),
    );
    expect(times).toBe(1);
  });

  it("stdio, modern by choice: a server of both eras is started once", { timeout: TIMEOUT }, async () => {
    const times = await starts((file) =>
      meet(
        new StdioEndpoint({ name: "both", command: nodeBinary, args: [modernStdio, "both", file], era: "modern" }),
        "modern",
        "modern",
      ),
    );
    expect(times).toBe(1);
  });

  it("Streamable HTTP, legacy", { timeout: TIMEOUT }, async () => {
    const port = await freePort();
    await using _server = await started([everything, "streamableHttp"], /listening on port/, { PORT: String(port) });
    await meet(new HttpEndpoint({ url: `http://127.0.0.1:${port}/mcp` }), "legacy", "everything");
  });

  it("HTTP+SSE, legacy", { timeout: TIMEOUT }, async () => {
    const port = await freePort();
    await using _server = await started([everything, "sse"], /running on port/, { PORT: String(port) });
    const url = `http://127.0.0.1:${port}/sse`;
    await meet(new HttpEndpoint({ url }), "legacy", "everything");
    await meet(new HttpEndpoint({ url, flavor: "sse" }), "legacy", "everything");
  });

  it.each(["modern", "both"])("Streamable HTTP, modern: a server of %s", { timeout: TIMEOUT }, async (eras) => {
    await using server = await started([modernHttp, eras], /"port":(\d+)/);
    await meet(new HttpEndpoint({ url: `http://127.0.0.1:${server.said[1]}/mcp` }), "modern", "modern");
    // The server heard the cancellation, and was never asked for anything of the legacy era.
    await expect.poll(server.log).toContain("cancelled");
    expect(server.log()).not.toMatch(/"method":"(GET|DELETE)"|mcp-session-id/);
    expect(server.log()).toContain('"mcp-param-region":"=?base64?WsO8cmljaA==?="');
  });

  it("WebSocket, legacy and modern", { timeout: TIMEOUT }, async () => {
    await using server = await started([webSocket], /^(\d+)$/m);
    const url = `ws://127.0.0.1:${server.said[1]}`;
    await meet(new WebSocketEndpoint({ url: `${url}/` }), "legacy", "echo");
    await meet(new WebSocketEndpoint({ url: `${url}/modern` }), "modern", "modern");
  });
});
