import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll } from "@effect/vitest";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { HttpEndpoint, StdioEndpoint } from "../../src/core/endpoint.ts";
import { transportContract } from "../../src/testing.ts";
import { httpTransport } from "../../src/transports/http.ts";
import { InMemoryEndpoint, inMemoryTransport } from "../../src/transports/in-memory.ts";
import { stdioTransport } from "../../src/transports/stdio.ts";
import { WebSocketEndpoint, websocketTransport } from "../../src/transports/websocket.ts";
import { nodeBinary } from "../support/node-binary.ts";
import { type ScriptedHttp, startScriptedHttp } from "../../src/testing/servers/http.ts";
import type { McpBehaviour } from "../../src/testing/servers/http-mcp.ts";
import { scriptedStdio } from "../support/scripted-stdio.ts";
import { isAlive, readPids } from "../support/stdio-pids.ts";
import { checkSuite } from "./check-suite.ts";

const folder = mkdtempSync(join(tmpdir(), "nucleo-mcp-contract-"));
const pidFile = join(folder, "pids");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

checkSuite(
  "stdio transport",
  transportContract({
    plugin: stdioTransport,
    endpoint: () =>
      new StdioEndpoint({
        name: "scripted",
        ...scriptedStdio({ pidFile, on: { "tools/call": [{ echo: true }], "no/more": [{ exit: 3 }] } }),
      }),
    live: () => readPids(pidFile).filter(isAlive).length,
    hangUp: { method: "no/more", params: {} },
    unreachable: () => new StdioEndpoint({ name: "missing", command: join(folder, "no-such-command") }),
  }),
);

const http = (title: string, behaviour: McpBehaviour, flavor: HttpEndpoint["flavor"]): void => {
  let server: ScriptedHttp;
  beforeAll(async () => {
    server = await startScriptedHttp(undefined, behaviour);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  checkSuite(
    title,
    transportContract({
      plugin: httpTransport,
      endpoint: () => new HttpEndpoint({ url: server.url, flavor }),
      live: () => server.sessions.size + [...server.streams.values()].filter((stream) => !stream.closed).length,
      unreachable: () => new HttpEndpoint({ url: "http://127.0.0.1:9/mcp", flavor }),
    }),
  );
};

http("Streamable HTTP, answers as JSON", { answers: "json" }, "streamable-http");
http("Streamable HTTP, answers as event streams, with server push", { answers: "sse", push: true }, "auto");
http("legacy SSE", { kind: "sse" }, "sse");
http("legacy SSE, found by auto", { kind: "sse" }, "auto");

let child: ChildProcess;
let port = "";
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

checkSuite(
  "WebSocket",
  transportContract({
    plugin: websocketTransport,
    endpoint: () => new WebSocketEndpoint({ url: `ws://127.0.0.1:${port}/` }),
    live: () => printed.split("opened").length - printed.split("closed").length,
    unreachable: () => new WebSocketEndpoint({ url: `ws://127.0.0.1:${port}/refuse` }),
  }),
);
checkSuite(
  "WebSocket, a server that closes on its own",
  transportContract({
    plugin: websocketTransport,
    endpoint: () => new WebSocketEndpoint({ url: `ws://127.0.0.1:${port}/policy` }),
    hangUp: { method: "tools/call", params: { name: "echo", arguments: {} } },
  }).filter(({ name }) => name.startsWith("tells by onclose")),
);

let embedded = 0;
const embed = async (transport: Transport): Promise<void> => {
  const server = new Server({ name: "embedded", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    if (params.name === "leave") await server.close();
    return { content: [{ type: "text", text: JSON.stringify(params.arguments) }] };
  });
  embedded += 1;
  Object.assign(server, { onclose: () => void (embedded -= 1) });
  await server.connect(transport);
};
checkSuite(
  "in-memory transport",
  transportContract({
    plugin: inMemoryTransport,
    endpoint: () => new InMemoryEndpoint({ name: "embedded", connect: embed }),
    live: () => embedded,
    hangUp: { method: "tools/call", params: { name: "leave" } },
    unreachable: () =>
      new InMemoryEndpoint({
        name: "broken",
        connect: () => {
          throw new Error("no server today");
        },
      }),
  }),
);
