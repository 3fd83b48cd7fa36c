/**
 * A WebSocket server (RFC 6455, as far as a test needs it) with a real SDK server
 * behind it. Prints its port, then a line for each socket opened and closed. The path of the URL says how it misbehaves:
 * `/refuse` answers 401, `/policy` closes with 1008 on the first tools/call,
 * `/reset` destroys the socket there, `/stay` never answers a close,
 * `/modern` serves the modern era alone, with other tools,
 * `/noise` sends text that is no JSON and a binary frame before each answer;
 * `/bulk` sends large JSON values that are no messages.
 */
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { makeModernServer } from "./modern-server.ts";

/** More than 10,000 characters each. */
const space = " ".repeat(10_001);
const bulk = [`${space}null`, `${space}1`, `${space}"id"`, `${space}[]`, `${space}{"id":{},"result":1}`];

const TEXT = 1;
const BINARY = 2;
const CLOSE = 8;

const frame = (opcode: number, payload: Buffer): Buffer => {
  const { length } = payload;
  const head = Buffer.alloc(length < 126 ? 2 : length < 65536 ? 4 : 10);
  head[0] = 0x80 | opcode;
  if (length < 126) head[1] = length;
  else if (length < 65536) {
    head[1] = 126;
    head.writeUInt16BE(length, 2);
  } else {
    head[1] = 127;
    head.writeBigUInt64BE(BigInt(length), 2);
  }
  return Buffer.concat([head, payload]);
};

/** Takes one whole client frame off the front of the buffer. */
const unframe = (buffer: Buffer): { opcode: number; payload: Buffer; rest: Buffer; final: boolean } | undefined => {
  if (buffer.length < 2) return undefined;
  const short = buffer[1]! & 0x7f;
  const start = short < 126 ? 2 : short === 126 ? 4 : 10;
  if (buffer.length < start + 4) return undefined;
  const length = short < 126 ? short : short === 126 ? buffer.readUInt16BE(2) : Number(buffer.readBigUInt64BE(2));
  const end = start + 4 + length;
  if (buffer.length < end) return undefined;
  const mask = buffer.subarray(start, start + 4);
  const payload = Buffer.from(buffer.subarray(start + 4, end).map((byte, i) => byte ^ mask[i % 4]!));
  return { opcode: buffer[0]! & 0x0f, payload, rest: buffer.subarray(end), final: (buffer[0]! & 0x80) !== 0 };
};

const serve = (socket: Duplex, path: string): void => {
  console.log("opened");
  const server = new Server({ name: "ws", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    if (path === "/policy") socket.write(frame(CLOSE, Buffer.concat([Buffer.from([0x03, 0xf0]), Buffer.from("no")])));
    if (path === "/reset") socket.destroy();
    const text = params.arguments?.["size"]
      ? "x".repeat(Number(params.arguments["size"]))
      : JSON.stringify(params.arguments);
    return { content: [{ type: "text", text }] };
  });
  const transport: Transport = {
    start: async () => {},
    send: async (message) => {
      if (path === "/noise")
        socket.write(Buffer.concat([frame(TEXT, Buffer.from("hello")), frame(BINARY, Buffer.from([1]))]));
      if (path === "/bulk") for (const text of bulk) socket.write(frame(TEXT, Buffer.from(text)));
      if (socket.writable) socket.write(frame(TEXT, Buffer.from(JSON.stringify(message))));
    },
    close: async () => {},
  };
  if (path === "/modern") serveStdio(makeModernServer, { transport, legacy: "reject" });
  else void server.connect(transport);
  let buffer: Buffer = Buffer.alloc(0);
  let parts: Array<Buffer> = [];
  socket.on("data", (chunk: Buffer) => {
    buffer = Buffer.concat([buffer, chunk]);
    for (let next = unframe(buffer); next; next = unframe(buffer)) {
      buffer = next.rest;
      if (next.opcode === CLOSE) {
        if (path !== "/stay") socket.end(frame(CLOSE, next.payload));
      } else {
        parts.push(next.payload);
        if (next.final) transport.onmessage?.(JSON.parse(Buffer.concat(parts.splice(0)).toString()));
        parts = next.final ? [] : parts;
      }
    }
  });
  // Sockets of an HTTP server stay half open otherwise.
  if (path !== "/stay") socket.on("end", () => socket.end());
  socket.on("error", () => {});
  socket.on("close", () => {
    transport.onclose?.();
    console.log("closed");
  });
};

const http = createServer();
http.on("upgrade", (request, socket) => {
  if (request.url === "/refuse") return socket.end("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const accept = createHash("sha1").update(key).digest("base64");
  const protocol = request.headers["sec-websocket-protocol"] === "mcp" ? "Sec-WebSocket-Protocol: mcp\r\n" : "";
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${protocol}Sec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  serve(socket, request.url ?? "/");
});
http.listen(0, "127.0.0.1", () => console.log((http.address() as { port: number }).port));
