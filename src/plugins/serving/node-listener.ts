/** A web-standard handler on node:http. Loaded where it is used. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { Listening } from "./listen.ts";

type Handler = (request: Request) => Promise<Response>;

const toRequest = (incoming: IncomingMessage, hostname: string): Request => {
  const { method = "GET", headers } = incoming;
  const given = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined ? [] : ([[name, Array.isArray(value) ? value.join(", ") : value]] as Array<[string, string]>),
  );
  const hasBody = method !== "GET" && method !== "HEAD";
  // The Host header is checked by the handler; it is no part of the URL here, where it could be malformed.
  return new Request(`http://${hostname.includes(":") ? `[${hostname}]` : hostname}${incoming.url ?? "/"}`, {
    method,
    headers: given,
    ...(hasBody && { body: Readable.toWeb(incoming) as ReadableStream<Uint8Array<ArrayBuffer>>, duplex: "half" }),
  } as RequestInit);
};

const send = async (response: Response, outgoing: ServerResponse): Promise<void> => {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) return void outgoing.end();
  // An event stream's head has to go before its first event.
  outgoing.flushHeaders();
  const reader = response.body.getReader();
  const giveUp = (): void => void reader.cancel().catch(() => {});
  outgoing.on("close", giveUp);
  // The client may have gone before there was an answer.
  if (outgoing.destroyed) giveUp();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (!outgoing.write(part.value) && !outgoing.destroyed)
      await new Promise<void>((resolve) => outgoing.once("drain", resolve).once("close", resolve));
  }
  outgoing.end();
};

const serve = async (handler: Handler, hostname: string, incoming: IncomingMessage, outgoing: ServerResponse) => {
  try {
    await send(await handler(toRequest(incoming, hostname)), outgoing);
  } catch {
    outgoing.destroy();
  }
};

export const makeNodeListener = (handler: Handler, hostname: string, port: number): Promise<Listening> =>
  new Promise((resolve, reject) => {
    const server = createServer((incoming, outgoing) => void serve(handler, hostname, incoming, outgoing));
    server.once("error", reject);
    server.listen(port, hostname, () => {
      server.off("error", reject);
      resolve({
        hostname,
        port: (server.address() as AddressInfo).port,
        close: () =>
          new Promise((done) => {
            server.close(() => done());
            server.closeAllConnections();
          }),
      });
    });
  });
