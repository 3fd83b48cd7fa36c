import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as fc from "fast-check";
import { encodeHeader, headersOf, mirroredOf } from "../../src/transports/modern-http-headers.ts";
import type { HttpExchange, HttpHandler } from "../../src/testing/servers/http.ts";
import { openDriver, scriptedServer, until } from "../support/scripted-http-client.ts";

const VERSION = "2026-07-28";
const meta = { _meta: { "io.modelcontextprotocol/protocolVersion": VERSION } };

const region = {
  name: "query",
  inputSchema: { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } },
};

const fail = (exchange: HttpExchange, code: number, status = 400): void =>
  exchange.json({ jsonrpc: "2.0", id: exchange.request.rpc.id, error: { code, message: "refused" } }, status);

/** A modern transport to a server that answers as told. */
const modern = (handler: HttpHandler) =>
  Effect.gen(function* () {
    const server = yield* scriptedServer(handler);
    return { server, driver: yield* openDriver(server.url, { opens: "modern" }) };
  });

const call = { ...meta, name: "query", arguments: { region: "eu" } };

describe("requests of the modern era over HTTP", () => {
  it.live("each is a POST of its own, without a session, with headers that mirror its body", () =>
    Effect.gen(function* () {
      const { server, driver } = yield* modern((exchange) => exchange.result({}));
      yield* driver.request("tools/call", call);
      yield* driver.request("resources/read", { ...meta, uri: "file:///ä" });
      yield* driver.request("tools/list", meta);
      yield* driver.send({ method: "notifications/custom", params: meta });
      expect(
        server.requests.map(({ method, headers }) => [method, headers["mcp-method"], headers["mcp-name"]]),
      ).toEqual([
        ["POST", "tools/call", "query"],
        ["POST", "resources/read", "=?base64?ZmlsZTovLy/DpA==?="],
        ["POST", "tools/list", undefined],
        ["POST", "notifications/custom", undefined],
      ]);
      for (const { headers } of server.requests) {
        expect(headers["mcp-protocol-version"]).toBe(VERSION);
        expect(headers["accept"]).toBe("application/json, text/event-stream");
        expect(headers["mcp-session-id"]).toBeUndefined();
      }
    }).pipe(Effect.scoped),
  );

  it.live("a session that a server offers all the same is not taken, and nothing is deleted at the end", () =>
    Effect.gen(function* () {
      const server = yield* scriptedServer(({ json, request }) =>
        json({ jsonrpc: "2.0", id: request.rpc?.id, result: {} }, 200, { "mcp-session-id": "s" }),
      );
      yield* Effect.scoped(
        Effect.gen(function* () {
          const driver = yield* openDriver(server.url, { opens: "modern" });
          yield* driver.request("server/discover", meta);
          yield* driver.request("tools/list", meta);
        }),
      );
      expect(server.requests).toHaveLength(2);
      expect(server.requests[1]!.headers["mcp-session-id"]).toBeUndefined();
    }).pipe(Effect.scoped),
  );

  it.live("a refusal that holds a JSON-RPC error is that error, whatever the status", () =>
    Effect.gen(function* () {
      const { driver } = yield* modern((exchange) => fail(exchange, -32_601, 404));
      expect(yield* Effect.flip(driver.request("tools/list", meta))).toMatchObject({ code: -32_601 });
    }).pipe(Effect.scoped),
  );

  it.live("a stream that ends without an answer fails the call at once: nothing is resumed", () =>
    Effect.gen(function* () {
      const { server, driver } = yield* modern((exchange) => {
        const stream = exchange.stream();
        stream.event({ id: "7", retry: 1, data: { jsonrpc: "2.0", method: "notifications/message", params: {} } });
        stream.end();
      });
      const error = yield* Effect.flip(driver.request("tools/call", call));
      expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
      expect(server.requests).toHaveLength(1);
      expect(driver.messages).toHaveLength(1);
    }).pipe(Effect.scoped),
  );

  it.live("cancelling closes the stream of the request, and posts nothing", () =>
    Effect.gen(function* () {
      let closed = false;
      const { server, driver } = yield* modern((exchange) => {
        const stream = exchange.stream();
        stream.event({ data: { jsonrpc: "2.0", method: "notifications/message", params: {} } });
        const watch = setInterval(() => {
          closed = stream.closed;
          if (closed) clearInterval(watch);
        }, 2);
      });
      const { id } = driver.start("tools/call", call);
      yield* until("the stream begins", () => driver.messages.length === 1);
      yield* driver.send({ method: "notifications/cancelled", params: { requestId: id } });
      yield* until("the stream is closed", () => closed);
      expect(server.requests).toHaveLength(1);
    }).pipe(Effect.scoped),
  );
});

/** Refuses calls without the header; lists its tools on two pages. */
const strict: HttpHandler = (exchange) => {
  const { rpc, headers } = exchange.request;
  if (rpc.method === "tools/list")
    return exchange.result(rpc.params.cursor === "2" ? { tools: [region] } : { tools: [], nextCursor: "2" });
  if (headers["mcp-param-region"] !== rpc.params.arguments.region) return fail(exchange, -32_020);
  return exchange.result({ ok: true });
};

describe("headers from tool parameters", () => {
  it.live("a tool seen in a list gets its headers; one with a wrong annotation is left out, with a diagnostic", () =>
    Effect.gen(function* () {
      const broken = { name: "broken", inputSchema: { properties: { a: { type: "number", "x-mcp-header": "A" } } } };
      const { server, driver } = yield* modern((exchange) =>
        exchange.result(
          exchange.request.rpc.method === "tools/list" ? { tools: [region, broken, { name: "plain" }] } : {},
        ),
      );
      const { tools } = yield* driver.request("tools/list", meta);
      expect(tools.map((tool: { name: string }) => tool.name)).toEqual(["query", "plain"]);
      expect(driver.diagnostics.join()).toContain("'broken'");
      yield* driver.request("tools/call", call);
      yield* driver.request("tools/call", { ...call, name: "plain" });
      expect(server.requests.map(({ headers }) => headers["mcp-param-region"])).toEqual([undefined, "eu", undefined]);
    }).pipe(Effect.scoped),
  );

  it.live("a call refused for its headers reads the tools again and is sent once more", () =>
    Effect.gen(function* () {
      const { server, driver } = yield* modern(strict);
      expect(yield* driver.request("tools/call", call)).toEqual({ ok: true });
      const methods = server.requests.map(({ rpc }) => rpc.method);
      expect(methods).toEqual(["tools/call", "tools/list", "tools/list", "tools/call"]);
      expect(server.requests[1]!.rpc.params._meta).toEqual(meta._meta);
      expect(yield* driver.request("tools/call", call)).toEqual({ ok: true });
      expect(server.requests).toHaveLength(5);
    }).pipe(Effect.scoped),
  );

  it.live("it is not sent a third time, nor at all when the tools cannot be read", () =>
    Effect.gen(function* () {
      const stubborn = yield* modern((exchange) =>
        exchange.request.rpc.method === "tools/list" ? exchange.result({ tools: [region] }) : fail(exchange, -32_020),
      );
      expect(yield* Effect.flip(stubborn.driver.request("tools/call", call))).toMatchObject({ code: -32_020 });
      expect(stubborn.server.seen("tools/call")).toHaveLength(2);
      const mute = yield* modern((exchange) =>
        exchange.request.rpc.method === "tools/list" ? exchange.destroy() : fail(exchange, -32_020),
      );
      expect(yield* Effect.flip(mute.driver.request("tools/call", call))).toMatchObject({ code: -32_020 });
      expect(mute.server.seen("tools/call")).toHaveLength(1);
    }).pipe(Effect.scoped),
  );

  it.live("a second sending that is lost may have run, and says so", () =>
    Effect.gen(function* () {
      const { driver } = yield* modern((exchange) => {
        if (exchange.request.headers["mcp-param-region"]) return exchange.destroy();
        return strict(exchange);
      });
      const error = yield* Effect.flip(driver.request("tools/call", call));
      expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
    }).pipe(Effect.scoped),
  );
});

describe("what a schema wants mirrored", () => {
  const annotated = { type: "string", "x-mcp-header": "A" };

  it("is found at any depth of properties, and nowhere else", () => {
    const schema = { properties: { a: annotated, b: { properties: { c: { type: "integer", "x-mcp-header": "C" } } } } };
    expect(mirroredOf(schema)).toEqual([
      { path: ["a"], header: "A" },
      { path: ["b", "c"], header: "C" },
    ]);
    // A property of that name, and data that looks like an annotation, are none.
    expect(
      mirroredOf({ properties: { "x-mcp-header": { type: "string" } }, default: annotated, enum: [annotated] }),
    ).toEqual([]);
    for (const none of [undefined, null, true, 7, "text", []]) expect(mirroredOf(none)).toEqual([]);
  });

  it.each([
    [annotated],
    [{ items: annotated }],
    [{ properties: { a: { anyOf: [annotated] } } }],
    [{ $defs: { a: { properties: { a: annotated } } } }],
    [{ properties: { a: { ...annotated, "x-mcp-header": "" } } }],
    [{ properties: { a: { ...annotated, "x-mcp-header": "a b" } } }],
    [{ properties: { a: { ...annotated, "x-mcp-header": "a\r\nb" } } }],
    [{ properties: { a: { ...annotated, "x-mcp-header": 7 } } }],
    [{ properties: { a: { ...annotated, type: "object" } } }],
    [{ properties: { a: { ...annotated, type: ["string", "null"] } } }],
    [{ properties: { a: annotated, b: { ...annotated, "x-mcp-header": "a" } } }],
  ])("%j is a fault of the tool", (schema) => {
    expect(mirroredOf(schema)).toBeTypeOf("string");
  });

  it("values become text; null, absent, fractional, unsafe and inherited ones none", () => {
    const names = ["t", "yes", "n", "zero", "none", "gone", "half", "far", "toString"];
    const args = { t: "x", yes: true, n: -7, zero: 0, none: null, half: 1.5, far: 2 ** 53 };
    const message = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { ...meta, name: "a", arguments: args },
    } as const;
    expect(
      headersOf(
        message,
        names.map((name) => ({ path: [name], header: name })),
      ),
    ).toEqual({
      "mcp-protocol-version": VERSION,
      "mcp-method": "tools/call",
      "mcp-name": "a",
      "mcp-param-t": "x",
      "mcp-param-yes": "true",
      "mcp-param-n": "-7",
      "mcp-param-zero": "0",
    });
  });
});

describe("header values", () => {
  it.each([
    ["us-west1", "us-west1"],
    ["us west 1", "us west 1"],
    ["Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="],
    [" padded ", "=?base64?IHBhZGRlZCA=?="],
    ["line1\nline2", "=?base64?bGluZTEKbGluZTI=?="],
    ["=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="],
    ["", "=?base64??="],
  ])("%j is sent as %s", (value, header) => {
    expect(encodeHeader(value)).toBe(header);
  });

  it("any text becomes a header that HTTP carries unchanged, and decodes to itself", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (value) => {
        const header = new Headers({ a: encodeHeader(value) }).get("a")!;
        const encoded = /^=\?base64\?(.*)\?=$/.exec(header);
        const decoded = encoded
          ? new TextDecoder("utf-8", { ignoreBOM: true }).decode(
              Uint8Array.from(atob(encoded[1]!), (byte) => byte.charCodeAt(0)),
            )
          : header;
        expect(decoded).toBe(value);
      }),
    );
  });
});
