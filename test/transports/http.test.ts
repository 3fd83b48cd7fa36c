import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { HttpEndpoint } from "../../src/core/endpoint.ts";
import { resolveSettings } from "../../src/core/resolve-settings.ts";
import { httpTransport } from "../../src/transports/http.ts";
import type { HttpExchange } from "../../src/testing/servers/http.ts";
import { openDriver, scriptedServer } from "../support/scripted-http-client.ts";

const auto = { flavor: "auto" } as const;

describe("httpTransport", () => {
  it.effect("opens http endpoints behind one shared gate, and does nothing before the first message", () =>
    Effect.gen(function* () {
      const settings = yield* resolveSettings({ httpPoolMax: 7 });
      const endpoint = new HttpEndpoint({ url: "http://127.0.0.1:9/mcp" });
      expect(httpTransport.kind).toBe(endpoint.transportType);
      expect(httpTransport.gates?.(endpoint, settings)).toEqual([{ name: "mcp:http", capacity: 7 }]);
      const server = yield* scriptedServer();
      const driver = yield* openDriver(server.url, auto);
      yield* Effect.promise(() => driver.transport.close());
      expect(server.requests).toEqual([]);
      expect(driver.closes()).toBe(1);
    }),
  );

  it.effect("auto speaks Streamable HTTP where the server does", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer();
      const driver = yield* openDriver(server.url, auto);
      yield* driver.handshake;
      expect((yield* driver.request("tools/list")).tools).toHaveLength(2);
      expect(driver.transport.sessionId).toBe([...server.sessions][0]);
    }),
  );

  for (const status of [400, 404, 405])
    it.effect(`auto falls back to SSE on the same URL after ${status}`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer(
          (x) => (x.request.method === "POST" && x.request.path === "/sse" ? x.text(status, "Cannot POST") : x.mcp()),
          { kind: "sse" },
        );
        const driver = yield* openDriver(server.url, auto);
        expect((yield* driver.handshake).serverInfo.name).toBe("scripted");
        expect((yield* driver.request("tools/call", { arguments: { a: 1 } })).content[0].text).toBe('{"a":1}');
        expect(server.requests.map(({ method, path }) => `${method} ${path.split("?")[0]}`)).toEqual([
          "POST /sse",
          "GET /sse",
          "POST /message",
          "POST /message",
          "POST /message",
        ]);
      }),
    );

  for (const [name, answer, expected] of [
    [
      "a 400 that holds a JSON-RPC error",
      (x: HttpExchange) =>
        x.json({ jsonrpc: "2.0", id: null, error: { code: -32_000, message: "versions: 2025-03-26" } }, 400),
      { code: -32_000 },
    ],
    ["a 500", (x: HttpExchange) => x.text(500), { _tag: "HttpFailed", status: 500 }],
    ["a 401", (x: HttpExchange) => x.text(401), { _tag: "Unauthorized" }],
  ] as const)
    it.effect(`auto takes ${name} for the answer and does not try SSE`, () =>
      Effect.gen(function* () {
        const server = yield* scriptedServer(answer);
        const driver = yield* openDriver(server.url, auto);
        expect(yield* Effect.flip(driver.handshake)).toMatchObject(expected);
        expect(server.seen("GET")).toHaveLength(0);
      }),
    );

  it.effect("auto reports the first failure and names both when SSE fails too", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) => x.text(x.request.method === "POST" ? 404 : 418, "no such page"));
      const driver = yield* openDriver(server.url, auto);
      const error = yield* Effect.flip(driver.handshake);
      expect(error).toMatchObject({ _tag: "HttpFailed", status: 404 });
      expect(error.message).toMatch(/no such page.*SSE.*418/s);
    }),
  );

  it.effect("auto with a credential does not fall back: SSE takes none", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer((x) => x.text(404));
      const driver = yield* openDriver(server.url, {
        ...auto,
        credential: { kind: "bearer", user: "me" },
        authorize: () => Promise.resolve({ headers: { authorization: "Bearer x" } }),
      });
      const error = yield* Effect.flip(driver.handshake);
      expect(error).toMatchObject({ _tag: "HttpFailed", status: 404 });
      expect(error.message).toContain("credential");
      expect(server.seen("GET")).toHaveLength(0);
    }),
  );

  it.effect("auto closed while its POST is in flight leaves no session", () =>
    Effect.gen(function* () {
      const held: Array<HttpExchange> = [];
      const server = yield* scriptedServer((x) => {
        if (x.request.rpc?.method !== "initialize") return x.mcp();
        held.push(x);
        setTimeout(() => x.mcp(), 20);
      });
      yield* Effect.scoped(
        Effect.gen(function* () {
          const driver = yield* openDriver(server.url, auto);
          driver.start("initialize", {});
          yield* Effect.promise(async () => {
            while (held.length === 0) await new Promise((resolve) => setTimeout(resolve, 2));
          });
        }),
      );
      expect(server.seen("DELETE")).toHaveLength(1);
      expect(server.sessions.size).toBe(0);
    }),
  );
});
