/** One connection of its own: stdio as a process, and any other transport; clients of either era. */
import { writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Client, type ClientOptions, InMemoryTransport, type Transport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as LegacyClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as LegacyStdioTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { createRuntime, StdioEndpoint } from "../../../src/mod.ts";
import { createGateway, type Gateway } from "../../../src/serve.ts";
import { scriptedStdio } from "../../support/scripted-stdio.ts";
import { isAlive, readPids, until } from "../../support/stdio-pids.ts";
import { at, attach, folder, textOf, seen } from "./gateway-with.ts";
import { automatic, envelope, logLevel, pinned, revision } from "./modern-agents.ts";

afterAll(() => rm(folder, { recursive: true }));

/** A client on a connection of its own in this process. */
const connected = async (gateway: Gateway, options: ClientOptions): Promise<Client> => {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await gateway.connect(ours as never);
  const client = new Client({ name: "agent", version: "2.0.0" }, options);
  await client.connect(theirs);
  return client;
};

/** The wire itself: what was sent to it comes back by id, notifications in a list. */
const raw = async (gateway: Gateway) => {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  await gateway.connect(ours as never);
  const heard: Array<any> = [];
  const wire: Transport = theirs;
  Object.assign(wire, { onmessage: (message: unknown) => void heard.push(message) });
  await wire.start();
  const answer = async (id: unknown): Promise<any> => {
    await until(`an answer to ${String(id)}`, () => heard.some((message) => message.id === id && !message.method));
    return heard.find((message) => message.id === id && !message.method);
  };
  const send = (message: object): Promise<void> => wire.send({ jsonrpc: "2.0", ...message } as never);
  const ask = async (id: unknown, method: string, params: object = {}): Promise<any> => {
    await send({ id, method, params });
    return answer(id);
  };
  return { heard, send, ask, answer, close: () => wire.close() };
};

const updated = (uri: string) => ({ notify: { method: "notifications/resources/updated", params: { uri } } });
const log = (level: string) => ({ notify: { method: "notifications/message", params: { level, data: level } } });
const progress = { notify: { method: "notifications/progress", params: { progressToken: "$token", progress: 1 } } };

describe("a gateway over stdio", () => {
  const main = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
  const command = process.execPath;
  const patience = { timeout: 60_000 };
  const served = (name: string) => {
    const server = scriptedStdio({ pidFile: at(`${name}.pids`) });
    writeFileSync(at(`${name}.json`), JSON.stringify({ mcpServers: { srv: server } }));
    const words = ["serve", "--config", at(`${name}.json`), "--stdio"];
    return { command, args: [...("Deno" in globalThis ? ["run", "-A"] : []), main, ...words] };
  };

  it("one command serves the SDK v2, pinned and in auto mode, the SDK v1 and our own runtime", async () => {
    const call = { name: "srv__echo", arguments: { n: 1 } };
    for (const [name, options] of [
      ["pinned", pinned],
      ["auto", automatic],
    ] as const) {
      const client = new Client({ name: "agent", version: "2.0.0" }, options);
      await client.connect(new StdioClientTransport({ ...served(name), stderr: "inherit" }), patience);
      expect(client.getNegotiatedProtocolVersion()).toBe(revision);
      expect(textOf(await client.callTool(call))).toBe('{"n":1}');
      await client.close();
      await until("no server is left", () => !readPids(at(`${name}.pids`)).some(isAlive));
    }
    const legacy = new LegacyClient({ name: "agent", version: "1.0.0" });
    await legacy.connect(new LegacyStdioTransport({ ...served("v1"), stderr: "inherit" }), patience);
    expect(textOf(await legacy.callTool(call))).toBe('{"n":1}');
    await legacy.close();
    await using runtime = await createRuntime({ settings: { connectTimeout: "60 seconds" } });
    await using client = await runtime.client(new StdioEndpoint({ name: "ours", ...served("ours"), era: "modern" }));
    expect(client.protocolVersion).toBe(revision);
    expect(textOf((await client.callTool("srv__echo", { n: 2 })).raw)).toBe('{"n":2}');
  }, 120_000);
});

describe("a connection of its own", () => {
  it("progress, logs, listening and resources, for a client of 2026-07-28", async () => {
    await using gateway = await createGateway();
    await attach(gateway, "line", {
      capabilities: { tools: {}, resources: { subscribe: true }, logging: {} },
      resources: [{ uri: "l:///a", name: "a" }],
      on: {
        "resources/subscribe": [{ reply: {} }],
        "resources/unsubscribe": [{ reply: {} }],
        "logging/setLevel": [{ reply: {} }],
        "tools/call": [progress, log("error"), updated("l:///a"), { echo: true }],
      },
    });
    const client = await connected(gateway, pinned);
    const heard: Array<unknown> = [];
    client.setNotificationHandler("notifications/message", ({ params }) => void heard.push(params.data));
    client.setNotificationHandler("notifications/resources/updated", ({ params }) => void heard.push(params.uri));
    client.setNotificationHandler("notifications/tools/list_changed", () => void heard.push("tools"));
    await client.callTool({ name: "line__echo" });
    expect(heard).toEqual([]);
    const stream = await client.listen({ resourceSubscriptions: ["l:///a"], toolsListChanged: true });
    await client.callTool(
      { name: "line__echo", _meta: logLevel("error") },
      { onprogress: ({ progress: n }) => void heard.push(n) },
    );
    expect(heard.splice(0)).toEqual([1, "error", "l:///a"]);
    await attach(gateway, "another");
    await until("told of tools", () => heard.includes("tools"));
    await stream.close();
    await until("unsubscribed", () => seen("line", "resources/unsubscribe") === 1);
    expect(gateway.clients()).toBe(1);
    await client.close();
    expect(gateway.clients()).toBe(0);
  });

  it("cancelling reaches the server; a client that goes away ends its calls and its subscriptions", async () => {
    await using gateway = await createGateway();
    await attach(gateway, "gone", {
      resources: [{ uri: "g:///a", name: "a" }],
      on: {
        "resources/subscribe": [{ reply: {} }],
        "resources/unsubscribe": [{ reply: {} }],
        "tools/call": [{ never: true }],
      },
    });
    const wire = await raw(gateway);
    const _meta = envelope();
    await wire.send({ id: 1, method: "tools/call", params: { name: "gone__echo", _meta } });
    await until("the call arrived", () => seen("gone", "tools/call") === 1);
    await wire.send({ method: "notifications/cancelled", params: { requestId: 1 } });
    await until("the server was told", () => seen("gone", "notifications/cancelled") === 1);
    await wire.send({ id: 2, method: "tools/call", params: { name: "gone__echo", _meta } });
    const notifications = { resourceSubscriptions: ["g:///a"] };
    await wire.send({ id: 3, method: "subscriptions/listen", params: { notifications, _meta } });
    await until("the calls arrived", () => seen("gone", "tools/call") === 2);
    await until("acknowledged", () => wire.heard.some(({ method }) => method?.endsWith("acknowledged")));
    await wire.close();
    await until("the server was told", () => seen("gone", "notifications/cancelled") === 2);
    await until("unsubscribed", () => seen("gone", "resources/unsubscribe") === 1);
  });

  it("a stream that is cancelled while it is being opened is never acknowledged", async () => {
    await using gateway = await createGateway();
    await attach(gateway, "slow", {
      resources: [{ uri: "s:///a", name: "a" }],
      on: {
        "resources/subscribe": [{ hold: "go" }, { reply: {} }],
        "resources/unsubscribe": [{ reply: {} }],
        "tools/call": [{ release: "go" }, { echo: true }],
      },
    });
    const wire = await raw(gateway);
    const _meta = envelope();
    const notifications = { resourceSubscriptions: ["s:///a"] };
    await wire.send({ id: "s", method: "subscriptions/listen", params: { notifications, _meta } });
    await until("it is being opened", () => seen("slow", "resources/subscribe") === 1);
    await wire.send({ method: "notifications/cancelled", params: { requestId: "s", _meta } });
    // Meanwhile other messages go on.
    expect((await wire.ask(2, "tools/call", { name: "slow__echo", _meta })).result.resultType).toBe("complete");
    await until("unsubscribed", () => seen("slow", "resources/unsubscribe") === 1);
    expect(wire.heard.filter(({ method }) => method?.endsWith("acknowledged"))).toEqual([]);
  });

  it("both eras and bad input on one connection", async () => {
    await using gateway = await createGateway();
    await attach(gateway, "mixed");
    const { ask, send } = await raw(gateway);
    const _meta = envelope();
    const unsupported = envelope({}, { "io.modelcontextprotocol/protocolVersion": "2099-01-01" });
    expect((await ask(1, "server/discover", { _meta: unsupported })).error.code).toBe(-32022);
    const malformed = { "io.modelcontextprotocol/protocolVersion": revision };
    expect((await ask(2, "tools/list", { _meta: malformed })).error.code).toBe(-32602);
    expect((await ask(3, "server/discover", { _meta })).result).toMatchObject({
      supportedVersions: [revision],
      resultType: "complete",
    });
    expect((await ask(4, "tools/list", { _meta })).result).toMatchObject({ resultType: "complete" });
    expect((await ask(5, "resources/subscribe", { uri: "x:/", _meta })).error.code).toBe(-32601);
    expect((await ask(6, "x/y", { _meta })).error.code).toBe(-32601);
    // A client that cannot make sense of all this falls back.
    const clientInfo = { name: "raw", version: "1" };
    const opened = await ask(7, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
    expect(opened.result).toMatchObject({ protocolVersion: "2025-11-25" });
    await send({ method: "notifications/initialized" });
    const legacy = (await ask(8, "tools/list")).result;
    expect(legacy.tools).toHaveLength(1);
    expect(legacy).not.toHaveProperty("resultType");
    expect((await ask(9, "ping")).result).toEqual({});
  });
});
