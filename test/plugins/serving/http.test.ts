import { rm } from "node:fs/promises";
import { connect } from "node:net";
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from "@modelcontextprotocol/client";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { createGateway } from "../../../src/serve.ts";
import { until } from "../../support/stdio-pids.ts";
import { agent, attach, folder, listening, textOf } from "./gateway-with.ts";

afterAll(() => rm(folder, { recursive: true }));

const hello = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
});
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const post = (url: string, body: string = hello, more: Record<string, string> = {}): Promise<Response> =>
  fetch(url, { method: "POST", headers: { ...headers, ...more }, body });

/** The status line for a request with headers that `fetch` does not let through. */
const rawStatus = (port: number, more: Readonly<Record<string, string>>): Promise<string> =>
  new Promise((resolve, reject) => {
    const lines = Object.entries({ ...headers, "content-length": String(hello.length), connection: "close", ...more });
    const socket = connect(port, "127.0.0.1", () =>
      socket.write(`POST /mcp HTTP/1.1\r\n${lines.map((line) => line.join(": ")).join("\r\n")}\r\n\r\n${hello}`),
    );
    socket.once("data", (data) => {
      resolve(String(data).split(" ")[1]!);
      socket.destroy();
    });
    socket.once("error", reject);
  });

describe("the gateway over HTTP", () => {
  it("refuses foreign hosts and origins, and serves loopback ones", async () => {
    await using served = await listening();
    const { port } = served;
    expect(await rawStatus(port, { host: "evil.example" })).toBe("403");
    expect(await rawStatus(port, { host: `evil.example:${port}` })).toBe("403");
    expect(await rawStatus(port, { host: "127.0.0.1.evil.example" })).toBe("403");
    expect(await rawStatus(port, { host: `127.0.0.1:${port}`, origin: "http://evil.example" })).toBe("403");
    expect(await rawStatus(port, { host: `127.0.0.1:${port}`, origin: "null" })).toBe("403");
    expect(served.gateway.clients()).toBe(0);
    expect(await rawStatus(port, { host: `localhost:${port}` })).toBe("200");
    expect(await rawStatus(port, { host: `[::1]:${port}`, origin: `http://localhost:5173` })).toBe("200");
  });

  it("wants the bearer token on every request", async () => {
    await using served = await listening({}, { token: "s3cret" });
    const refused = await post(served.url);
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    expect((await post(served.url, hello, { authorization: "Bearer s3cret2" })).status).toBe(401);
    expect((await post(served.url, hello, { authorization: "Basic s3cret" })).status).toBe(401);
    await using one = await agent(served.url, {}, undefined, { authorization: "Bearer s3cret" });
    expect((await one.client.listTools()).tools).toEqual([]);
  });

  it("does not start beyond loopback without a token", async () => {
    await using gateway = await createGateway();
    await expect(gateway.listen({ hostname: "0.0.0.0" })).rejects.toMatchObject({ _tag: "InvalidConfig" });
    expect(() => gateway.http({ allowedHosts: ["gateway.example"] })).toThrow("token");
    await expect(gateway.listen({ token: "" })).rejects.toMatchObject({ _tag: "InvalidConfig" });
    const { url } = await gateway.listen({ hostname: "0.0.0.0", token: "t", allowedHosts: ["127.0.0.1"] });
    const { status } = await post(url.replace("0.0.0.0", "127.0.0.1"), hello, { authorization: "Bearer t" });
    expect(status).toBe(200);
  });

  it("bad input: bodies too large, no JSON, no MCP, unknown paths, sessions and methods; no session is left", async () => {
    await using served = await listening({}, { bodyMax: 1_000 });
    const statuses = await Promise.all(
      [
        post(served.url, JSON.stringify({ x: "x".repeat(2_000) })),
        post(served.url, "{"),
        post(served.url, '{"hello":1}'),
        post(served.url, hello, { "content-type": "text/plain" }),
        post(served.url, hello, { accept: "text/html" }),
        post(served.url, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'),
        post(served.url, hello, { "mcp-session-id": "guessed" }),
        post(served.url.replace("/mcp", "/other")),
        fetch(served.url),
        fetch(served.url, { method: "PUT" }),
      ].map(async (response) => (await response).status),
    );
    expect(statuses).toEqual([413, 400, 400, 415, 406, 400, 404, 404, 400, 405]);
    await until("no client", () => served.gateway.clients() === 0);
  });

  it("ends a session that only posted when it was idle for long", async () => {
    await using served = await listening({}, { sessionIdle: 200 });
    await (await post(served.url)).text();
    await using _listening = await agent(served.url);
    await until("the idle one was ended", () => served.gateway.clients() === 1);
  });

  it("makes room by ending the idlest, and refuses when all are in use", async () => {
    await using served = await listening({}, { sessionsMax: 2 });
    const first = (await post(served.url)).headers.get("mcp-session-id")!;
    await (await post(served.url)).text();
    await until("two clients", () => served.gateway.clients() === 2);
    await using _third = await agent(served.url);
    expect(
      (await post(served.url, '{"jsonrpc":"2.0","id":2,"method":"ping"}', { "mcp-session-id": first })).status,
    ).toBe(404);
    // Both that are left hold a stream now.
    await using _fourth = await agent(served.url);
    await until("in use", () => served.gateway.clients() === 2);
    const refused = await post(served.url);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "10"]);
  });

  it("serves a client of the SDK v2 that speaks a revision with sessions", async () => {
    await using served = await listening();
    await attach(served.gateway, "modern");
    const client = new ModernClient({ name: "v2", version: "1.0.0" });
    await client.connect(new ModernTransport(new URL(served.url)));
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["modern__echo"]);
    expect(textOf(await client.callTool({ name: "modern__echo", arguments: { n: 1 } }))).toBe('{"n":1}');
    await client.close();
  });

  it("works as a plain handler, without a server of its own", async () => {
    await using gateway = await createGateway();
    const { fetch: handle } = gateway.http({ path: "/tools" });
    const request = new Request("http://localhost/tools", { method: "POST", headers, body: hello });
    const response = await handle(request);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
    expect(await response.text()).toContain('"name":"nucleo-mcp-gateway"');
  });

  it("passes a result of 20 MB whole", async () => {
    await using served = await listening();
    await attach(served.gateway, "large", { on: { "tools/call": [{ big: 20_000_000 }] } });
    await using one = await agent(served.url);
    expect(textOf(await one.client.callTool({ name: "large__echo" }))).toHaveLength(20_000_000);
  });
});
