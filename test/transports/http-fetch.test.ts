import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import type { AuthorizeRequest } from "../../src/core/contracts.ts";
import { HttpEndpoint } from "../../src/core/endpoint.ts";
import { Unauthorized } from "../../src/core/errors.ts";
import { resolveSettings } from "../../src/core/resolve-settings.ts";
import { hardenedFetch } from "../../src/transports/http-fetch.ts";
import type { HttpExchange } from "../../src/testing/servers/http.ts";
import { openDriver, scriptedServer, until } from "../support/scripted-http-client.ts";

const secret = "s3cr3t-k3y-987654321";

const on =
  (method: string, answer: (exchange: HttpExchange) => void) =>
  (exchange: HttpExchange): void =>
    exchange.request.rpc?.method === method || exchange.request.method === method ? answer(exchange) : exchange.mcp();

/** A port of 127.0.0.1 on which nothing listens. */
const closedPort = Effect.promise(
  () =>
    new Promise<number>((resolve) => {
      const server = createServer();
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo;
        server.close(() => resolve(port));
      });
    }),
);

describe("redirects", () => {
  for (const status of [307, 308])
    it.effect(`C-026: ${status} on the same origin is followed with method, body and headers`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer((x) =>
          x.request.path === "/old" ? x.text(status, "", { location: "/mcp" }) : x.mcp(),
        );
        const driver = yield* openDriver(`${server.origin}/old`, { headers: { "X-Api-Key": secret } });
        yield* driver.handshake;
        expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
        const moved = server.requests.filter((request) => request.path === "/mcp");
        for (const request of moved) expect(request.headers["x-api-key"]).toBe(secret);
        expect(moved[0]!.body).toBe(server.requests[0]!.body);
      }),
    );

  it.effect("C-026: a cross-origin redirect is refused; nothing reaches the other origin", () =>
    Effect.gen(function* () {
      const other = yield* scriptedServer();
      let redirecting = false;
      const server = yield* scriptedServer((x) =>
        redirecting || x.request.method === "GET"
          ? x.text(307, "", { location: `${other.origin}/mcp?token=${secret}` })
          : x.mcp(),
      );
      yield* Effect.scoped(
        Effect.gen(function* () {
          const driver = yield* openDriver(server.url, {
            headers: { Authorization: `Bearer ${secret}`, "X-Api-Key": secret, Cookie: `a=${secret}` },
          });
          yield* driver.handshake;
          yield* until("no push", () => driver.diagnostics.length === 1);
          redirecting = true;
          const error = yield* Effect.flip(driver.request("tools/call", {}));
          expect(error).toMatchObject({ _tag: "HttpFailed", status: 307 });
          expect(error.message).toContain(other.origin);
          expect(JSON.stringify([error, error.message, driver.diagnostics])).not.toContain(secret);
        }),
      );
      expect(server.seen("DELETE")).toHaveLength(1);
      expect(other.requests).toEqual([]);
    }),
  );

  for (const status of [301, 302, 303])
    it.effect(`C-026: ${status} on a POST is refused`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer((x) =>
          x.request.path === "/old" ? x.text(status, "", { location: "/mcp" }) : x.mcp(),
        );
        const driver = yield* openDriver(`${server.origin}/old`);
        expect(yield* Effect.flip(driver.handshake)).toMatchObject({ _tag: "HttpFailed", status });
        expect(server.requests).toHaveLength(1);
      }),
    );

  it.effect("C-026: endless redirects end, and so do redirects to nowhere", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) =>
        x.request.path === "/mcp" ? x.text(307, "", { location: "/mcp" }) : x.text(308),
      );
      const endless = yield* openDriver(server.url);
      expect(yield* Effect.flip(endless.handshake)).toMatchObject({ _tag: "HttpFailed", status: 307 });
      expect(server.requests).toHaveLength(6);
      const nowhere = yield* openDriver(`${server.origin}/nowhere`);
      expect(yield* Effect.flip(nowhere.handshake)).toMatchObject({ _tag: "HttpFailed", status: 308 });
    }),
  );
});

describe("refusals", () => {
  const refusals: Record<string, [(exchange: HttpExchange) => void, Record<string, unknown>, string]> = {
    "403 insufficient_scope": [
      (x) =>
        x.text(403, "", {
          "www-authenticate": 'Bearer realm="m", error="insufficient_scope", scope="files:read files:write"',
        }),
      { _tag: "InsufficientScope", scopes: ["files:read", "files:write"] },
      "files:write",
    ],
    "403 without challenge": [(x) => x.text(403), { _tag: "Unauthorized", reason: "forbidden" }, "forbids"],
    "401 invalid_token": [
      (x) => x.text(401, "", { "www-authenticate": 'Bearer error="invalid_token", error_description="it expired"' }),
      { _tag: "Unauthorized", reason: "token-rejected" },
      "it expired",
    ],
    "401 without challenge": [(x) => x.text(401), { _tag: "Unauthorized", reason: "unauthenticated" }, "credentials"],
    "403 HTML": [
      (x) =>
        x.text(403, "<html><style>x{}</style><h1>Request \u0007blocked</h1><script>evil()</script></html>", {
          "content-type": "text/html; charset=utf-8",
        }),
      { _tag: "Unauthorized", reason: "forbidden", detail: "Request blocked" },
      "Request blocked",
    ],
    "500 text": [
      (x) => x.text(500, `a ${"long ".repeat(200)}`, { "content-type": "text/plain" }),
      { _tag: "HttpFailed", status: 500 },
      "…",
    ],
    "502 binary": [
      (x) => x.text(502, "\u0000\u0001PNG", { "content-type": "image/png" }),
      { _tag: "HttpFailed", status: 502, reason: "Bad Gateway" },
      "502",
    ],
    "400 with the JSON-RPC error of the request": [
      (x) => x.json({ jsonrpc: "2.0", id: x.request.rpc.id, error: { code: -32_602, message: "bad", data: [1] } }, 400),
      { code: -32_602, message: "bad", data: [1] },
      "bad",
    ],
    "500 with the JSON-RPC error of the request": [
      (x) => x.json({ jsonrpc: "2.0", id: x.request.rpc.id, error: { code: -32_603, message: "oops" } }, 500),
      { code: -32_603, message: "oops" },
      "oops",
    ],
    "400 with a JSON-RPC error without id": [
      (x) => x.json({ jsonrpc: "2.0", id: null, error: { code: -32_000, message: "versions" } }, 400),
      { code: -32_000, message: "versions" },
      "versions",
    ],
    "500 with a JSON-RPC error of another request": [
      (x) => x.json({ jsonrpc: "2.0", id: "z", error: { code: -32_000, message: "other" } }, 500),
      { _tag: "HttpFailed", status: 500, reason: "other" },
      "other",
    ],
  };
  for (const [name, [refuse, expected, words]] of Object.entries(refusals))
    it.effect(`C-042: ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer(on("tools/call", refuse));
        const driver = yield* openDriver(server.url);
        yield* driver.handshake;
        const error = yield* Effect.flip(driver.request("tools/call", {}));
        expect(error).toMatchObject(expected);
        expect(error.message).toContain(words);
        expect(error.message.length).toBeLessThan(400);
        expect(error.message).not.toContain("evil");
        expect(server.seen("tools/call")).toHaveLength(1);
      }),
    );

  it.effect("an error page that echoes headers and query shows no configured value", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) => {
        const echo = `${x.request.headers["x-api-key"]} ${x.request.path}`;
        // The second copy straddles the end of the sample.
        return x.text(500, `${echo} ${"x".repeat(185 - echo.length)} ${echo}`, { "content-type": "text/plain" });
      });
      const query = "qu3ry-s3cr3t-1234";
      const driver = yield* openDriver(`${server.url}?key=${query}`, { headers: { "X-Api-Key": secret } });
      const error = yield* Effect.flip(driver.handshake);
      expect(server.requests[0]!.path).toContain(query);
      expect(error.message).toContain("***");
      for (const piece of [secret.slice(0, 8), query.slice(0, 8)])
        expect(error.message + JSON.stringify(error)).not.toContain(piece);
    }),
  );

  it.effect("userinfo of the URL is sent as Basic authorization", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer();
      const driver = yield* openDriver(server.url.replace("//", "//us%40er:p%C3%A4ss@"));
      yield* driver.handshake;
      const expected = `Basic ${Buffer.from("us@er:päss").toString("base64")}`;
      for (const request of server.requests) expect(request.headers.authorization).toBe(expected);
    }),
  );

  it.effect("a header that HTTP cannot carry is a typed error that does not show it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(openDriver("http://127.0.0.1/mcp", { headers: { "X-Key": `${secret}€` } }));
      expect(error).toMatchObject({ _tag: "InvalidEndpoint", field: "headers" });
      expect(error.message).not.toContain(secret);
    }),
  );
});

describe("unreachable servers", () => {
  it.effect("connection refused at first contact is ConnectFailed", () =>
    Effect.gen(function* () {
      const driver = yield* openDriver(`http://127.0.0.1:${yield* closedPort}/mcp?key=${secret}`);
      const error = yield* Effect.flip(driver.handshake);
      expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "transport", server: "scripted" });
      expect(error.message + JSON.stringify(error)).not.toContain(secret);
    }),
  );

  it.live("a host name that does not resolve is ConnectFailed", () =>
    Effect.gen(function* () {
      const driver = yield* openDriver(`http://no-such-host.invalid/mcp?key=${secret}`);
      const error = yield* Effect.flip(driver.handshake);
      expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "transport" });
      expect(error.message + JSON.stringify(error)).not.toContain(secret);
    }),
  );

  it.effect("connection refused later is ConnectionLost, not sent", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer();
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      yield* Effect.promise(() => server[Symbol.asyncDispose]());
      const error = yield* Effect.flip(driver.request("tools/call", {}));
      expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
    }),
  );

  it.effect("C-081: a kept connection that is reset under a POST does not make it run twice", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(on("tools/call", (x) => x.destroy()));
      const driver = yield* openDriver(server.url);
      yield* driver.handshake;
      for (let i = 1; i <= 5; i++) {
        yield* driver.request("ping");
        const error = yield* Effect.flip(driver.request("tools/call", {}));
        expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
        expect(server.seen("tools/call")).toHaveLength(i);
      }
    }),
  );
});

const flow = (log: Array<AuthorizeRequest>) => (request: AuthorizeRequest) => {
  log.push(request);
  return Promise.resolve({ headers: { authorization: `Bearer token-${log.length}` } });
};

describe("authorization", () => {
  it.effect("is asked for before every request, and again with what was rejected; then the request is repeated", () =>
    Effect.gen(function* () {
      const log: Array<AuthorizeRequest> = [];
      let refuse = false;
      const challenge = 'Bearer error="invalid_token"';
      const server = yield* scriptedServer((x) => {
        if (!refuse || x.request.method !== "POST") return x.mcp();
        refuse = false;
        return x.text(401, "", { "www-authenticate": challenge });
      });
      const driver = yield* openDriver(server.url, { authorize: flow(log) });
      yield* driver.handshake;
      yield* until("the GET", () => server.seen("GET").length === 1);
      refuse = true;
      const before = log.length;
      expect((yield* driver.request("tools/call", {})).content).toHaveLength(1);
      expect(log.slice(before)).toEqual([
        { url: server.url, method: "POST", server: "scripted" },
        {
          url: server.url,
          method: "POST",
          server: "scripted",
          rejected: {
            status: 401,
            challenge,
            authorization: { headers: { authorization: `Bearer token-${before + 1}` } },
          },
        },
      ]);
      expect(server.seen("tools/call").map((request) => request.headers.authorization)).toEqual([
        `Bearer token-${before + 1}`,
        `Bearer token-${before + 2}`,
      ]);
      for (const request of server.requests) expect(request.headers.authorization).toMatch(/^Bearer token-\d+$/);
    }),
  );

  it.effect("the flow is told of three rejections; a further one is a typed error, not a loop", () =>
    Effect.gen(function* () {
      const log: Array<AuthorizeRequest> = [];
      const server = yield* scriptedServer((x) =>
        x.text(401, x.request.headers.authorization, {
          "www-authenticate": 'Bearer error="invalid_token"',
          "content-type": "text/plain",
        }),
      );
      const driver = yield* openDriver(server.url, { authorize: flow(log) });
      const error = yield* Effect.flip(driver.handshake);
      expect(error).toMatchObject({ _tag: "Unauthorized", reason: "token-rejected" });
      expect(error.message).not.toContain("token-4");
      expect(server.requests).toHaveLength(4);
      expect(log.map(({ rejected }) => rejected?.detail)).toEqual([undefined, "***", "***", "***"]);
    }),
  );

  it.effect("a typed error of the flow reaches the caller as itself; anything else is PluginFailed", () =>
    Effect.gen(function* () {
      const mine = new Unauthorized({ server: "x", reason: "unauthenticated", detail: "log in" });
      const server = yield* scriptedServer();
      const typed = yield* openDriver(server.url, { authorize: () => Promise.reject(mine) });
      expect(yield* Effect.flip(typed.handshake)).toBe(mine);
      const untyped = yield* openDriver(server.url, { authorize: () => Promise.reject(new Error("boom")) });
      expect(yield* Effect.flip(untyped.handshake)).toMatchObject({ _tag: "PluginFailed" });
      expect(server.requests).toEqual([]);
    }),
  );
});

describe("hardenedFetch", () => {
  it.effect("is the same door for SDK transports, to the endpoint's origin only", () =>
    Effect.gen(function* () {
      const other = yield* scriptedServer();
      const server = yield* scriptedServer();
      const endpoint = new HttpEndpoint({ url: server.url, headers: { "X-Api-Key": secret } });
      const fetch = yield* hardenedFetch(endpoint, {
        name: "n",
        settings: yield* resolveSettings(),
        era: "modern",
        diagnose: () => {},
      });
      const init = { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize" }) };
      const response = yield* Effect.promise(() => fetch(server.url, init));
      expect(response.status).toBe(200);
      expect(server.requests[0]!.headers["x-api-key"]).toBe(secret);
      const refused = yield* Effect.promise(() => fetch(other.url, init).catch((error: unknown) => error));
      expect(refused).toMatchObject({ _tag: "ConnectFailed" });
      expect(other.requests).toEqual([]);
      const controller = new AbortController();
      server.handler = () => controller.abort("enough");
      const aborted = yield* Effect.promise(() =>
        fetch(server.url, { ...init, signal: controller.signal }).catch((error: unknown) => error),
      );
      expect(aborted).toBe("enough");
    }),
  );
});
