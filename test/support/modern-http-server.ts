/**
 * `node modern-http-server.ts modern|both`: over Streamable HTTP on a free port, which it
 * prints, then the head of each request as a line of JSON. Ends with its stdin.
 */
import { createServer } from "node:http";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import { createMcpHandler } from "@modelcontextprotocol/server";
import { makeModernServer, onChange } from "./modern-server.ts";

const handler = createMcpHandler(makeModernServer, { legacy: process.argv[2] === "both" ? "stateless" : "reject" });
onChange.tools = async () => handler.notify.toolsChanged();

const http = createServer(async (request, response) => {
  const chunks: Array<Buffer> = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  console.log(JSON.stringify({ method: request.method, headers: request.headers }));
  const gone = new AbortController();
  response.on("close", () => gone.abort());
  const answer = await handler.fetch(
    new Request(`http://127.0.0.1${request.url}`, {
      method: request.method!,
      headers: request.headers as Record<string, string>,
      ...(body.length > 0 && { body }),
      signal: gone.signal,
    }),
  );
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  if (!answer.body) return response.end();
  return Readable.fromWeb(answer.body as ReadableStream)
    .on("error", () => response.destroy())
    .pipe(response);
});
http.listen(0, "127.0.0.1", () => console.log(JSON.stringify(http.address())));
process.stdin.on("end", () => process.exit()).resume();
