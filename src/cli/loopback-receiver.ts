/** Receives the browser's redirect of a login on this machine (RFC 8252 section 7.3). */
import type { AddressInfo } from "node:net";
import { Cancelled } from "../core/errors.ts";

const PATH = "/callback";

const PAGE =
  "<!doctype html><meta charset=utf-8><title>nucleo-mcp</title>" +
  "<p>The login has been handed over. You can close this page and go back to the terminal.</p>";

const HEADERS = {
  "Content-Type": "text/html; charset=utf-8",
  "Content-Security-Policy": "default-src 'none'",
  "Referrer-Policy": "no-referrer",
  "Cache-Control": "no-store",
  Connection: "close",
};

export interface LoopbackReceiver {
  /** For `AuthorizationCode`; holds the port the system gave. */
  readonly redirectUri: string;
  /** Settles when the browser comes back with this `state`; anything else is turned away. */
  readonly receiveRedirect: (state: string) => Promise<string>;
  /** Ends the listener; whoever still waits is rejected. */
  readonly close: () => Promise<void>;
}

/** Listens on 127.0.0.1 only, on a free port unless one is given. Close it after the login. */
export const openLoopbackReceiver = async (
  options: { readonly port?: number | undefined } = {},
): Promise<LoopbackReceiver> => {
  const { createServer } = await import("node:http");
  const waiting = new Map<string, { resolve: (url: string) => void; reject: (error: Cancelled) => void }>();
  let redirectUri = "";
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", redirectUri);
    const state = url.searchParams.get("state") ?? "";
    const waiter = request.method === "GET" && url.pathname === PATH ? waiting.get(state) : undefined;
    response.writeHead(waiter ? 200 : 404, HEADERS).end(waiter ? PAGE : "");
    if (!waiter) return;
    waiting.delete(state);
    waiter.resolve(url.href);
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject).listen(options.port ?? 0, "127.0.0.1", resolve);
  });
  redirectUri = `http://127.0.0.1:${(server.address() as AddressInfo).port}${PATH}`;
  return {
    redirectUri,
    receiveRedirect: (state) => new Promise((resolve, reject) => waiting.set(state, { resolve, reject })),
    close: () =>
      new Promise((resolve) => {
        for (const { reject } of waiting.values()) reject(new Cancelled({ reason: "the login was given up" }));
        waiting.clear();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
};
