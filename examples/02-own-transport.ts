/** A transport of the host's own: MCP over a Unix socket. The runtime's sources stay untouched. */
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { createRuntime, ports } from "../src/mod.ts";
import { ConnectFailed, type McpEndpoint, type McpTransport, type TransportPlugin } from "../src/plugin.ts";

/** JSON-RPC over a socket, one message a line. Both ends speak it. */
const overSocket = (socket: Socket): McpTransport => {
  const transport: McpTransport = {
    start: async () => {
      createInterface(socket).on("line", (line) => transport.onmessage?.(JSON.parse(line)));
      socket.on("close", () => transport.onclose?.());
    },
    send: (message) =>
      new Promise((resolve, reject) => {
        socket.write(`${JSON.stringify(message)}\n`, (error) => (error ? reject(error) : resolve()));
      }),
    close: async () => void socket.destroy(),
  };
  return transport;
};

type UnixEndpoint = McpEndpoint & { readonly path: string };

/** The plugin: how endpoints of the kind "unix" are opened, and how many calls each may have at once. */
const unixTransport: TransportPlugin<UnixEndpoint> = {
  kind: "unix",
  gates: ({ path }) => [{ name: `unix:${path}`, capacity: 8 }],
  open: ({ endpointId, path }, { name: server }) =>
    new Promise((resolve, reject) => {
      const socket = connect(path, () => resolve(overSocket(socket)));
      socket.on("error", ({ message: reason }) =>
        reject(new ConnectFailed({ server, endpointId, phase: "transport", reason })),
      );
    }),
};

// Somebody's server: an SDK server for each socket.
const folder = await mkdtemp(join(tmpdir(), "nucleo-mcp-"));
const path = join(folder, "mcp.sock");
const listener = createServer((socket) => {
  const server = new McpServer({ name: "clock", version: "1.0.0" });
  server.registerTool("now", {}, () => ({ content: [{ type: "text", text: new Date().toISOString() }] }));
  void server.connect(overSocket(socket));
});
await new Promise<void>((resolve) => listener.listen(path, resolve));

const runtime = await createRuntime({ setup: (c) => c.registerInstance(ports.transports.token, unixTransport) });
const endpoint: UnixEndpoint = { transportType: "unix", endpointId: `unix:${path}`, name: "clock", path };
await runtime.attach("clock", endpoint);
const { textContent } = await runtime.callTool({ tool: "clock__now" });
console.log(`it is ${textContent}`);
await runtime.close();
await new Promise((resolve) => listener.close(resolve));
await rm(folder, { recursive: true });
if (Number.isNaN(Date.parse(textContent))) throw new Error("the server did not tell the time");
