/** Clients of 2026-07-28 over Streamable HTTP, beside those with sessions, at one URL. */
import { rm } from "node:fs/promises";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { Artifact, type HostTool } from "../../../src/serve.ts";
import { createRuntime, HttpEndpoint } from "../../../src/mod.ts";
import { readLog } from "../../support/scripted-stdio.ts";
import { until } from "../../support/stdio-pids.ts";
import { agent, at, attach, echoTool, folder, listening, textOf, seen } from "./gateway-with.ts";
import { automatic, envelope, headersOf, listenTo, logLevel, modernAgent, post, revision } from "./modern-agents.ts";

afterAll(() => rm(folder, { recursive: true }));

const contents = (text: string) => ({ contents: [{ uri: "x:/", text }] });
const updated = (uri: string) => ({ notify: { method: "notifications/resources/updated", params: { uri } } });
const log = (level: string) => ({ notify: { method: "notifications/message", params: { level, data: level } } });
const progress = (n: number) => ({
  notify: { method: "notifications/progress", params: { progressToken: "$token", progress: n, total: 3 } },
});

class Note extends Artifact {
  static override readonly typeAlias: string = "note";
  readonly title = "Bees";
}

describe("clients of 2026-07-28 over HTTP", () => {
  it("the SDK v2 pinned and in auto mode, the SDK v1 and our own runtime use one gateway at once", async () => {
    const note = new Note();
    const find: HostTool = { name: "find", inputSchema: { type: "object" }, run: () => note };
    await using served = await listening({ serve: { tools: [find] } });
    await attach(served.gateway, "shared");
    await using fixed = await modernAgent(served.url);
    await using auto = await modernAgent(served.url, automatic);
    await using legacy = await agent(served.url);
    expect([fixed.client, auto.client].map((client) => client.getNegotiatedProtocolVersion())).toEqual([
      revision,
      revision,
    ]);
    for (const [n, { client }] of [fixed, auto, legacy].entries()) {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(["find", "shared__echo"]);
      expect(textOf(await client.callTool({ name: "shared__echo", arguments: { n } }))).toBe(JSON.stringify({ n }));
      const { structuredContent } = await client.callTool({ name: "find" });
      expect(structuredContent).toEqual({ artifact_ref: note.ref, title: "Bees" });
    }
    await using runtime = await createRuntime();
    await runtime.attach("gateway", new HttpEndpoint({ url: served.url, era: "modern" }));
    const ours = await runtime.callTool({ tool: "gateway__shared__echo", arguments: { n: 3 } });
    expect(textOf(ours.raw)).toBe('{"n":3}');
    expect(readLog(at("shared.log")).filter(({ kind }) => kind === "start")).toHaveLength(1);
  });

  it("resources, templates, prompts, completion and pages; complete lists may be kept for a while", async () => {
    await using served = await listening({ serve: { pageSize: 1, listTtl: "7 seconds" } });
    await attach(served.gateway, "offers", {
      tools: [1, 2].map((n) => ({ ...echoTool, name: `t${n}` })),
      resources: [{ uri: "o:///a", name: "a" }],
      resourceTemplates: [{ uriTemplate: "o:///items/{id}", name: "items" }],
      prompts: [{ name: "greet" }],
      on: {
        "resources/read": [{ reply: contents("read") }],
        "prompts/get": [{ reply: { messages: [], description: "hello" } }],
        "completion/complete": [{ reply: { completion: { values: ["done"] } } }],
      },
    });
    await attach(served.gateway, "others", { tools: [], resources: [{ uri: "p:///a", name: "a" }] });
    await using one = await modernAgent(served.url);
    const { client } = one;
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["offers__t1", "offers__t2"]);
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["o:///a", "p:///a"]);
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["offers__greet"]);
    expect((await client.readResource({ uri: "o:///items/7" })).contents).toMatchObject([{ text: "read" }]);
    expect((await client.getPrompt({ name: "offers__greet" })).description).toBe("hello");
    const ref = { type: "ref/prompt" as const, name: "offers__greet" };
    expect((await client.complete({ ref, argument: { name: "x", value: "" } })).completion.values).toEqual(["done"]);
    await expect(client.readResource({ uri: "none:///" })).rejects.toMatchObject({ code: -32602 });
    const { answer } = await post(served.url, "tools/list");
    expect(answer.result).toMatchObject({ resultType: "complete", ttlMs: 7_000, cacheScope: "private" });
    expect((await post(served.url, "tools/list", { cursor: "nonsense" })).answer.error.code).toBe(-32602);
  });

  it("a list that is not complete may not be kept", async () => {
    await using served = await listening({ serve: { listPatience: 50 } });
    await attach(served.gateway, "late", { on: { "tools/list": [{ never: true }] } });
    expect((await post(served.url, "tools/list")).answer.result).toMatchObject({ tools: [], ttlMs: 0 });
  });

  it("progress comes before the answer; log messages go to the request that wants their level", async () => {
    await using served = await listening();
    await attach(served.gateway, "told", {
      on: {
        "logging/setLevel": [{ reply: {} }],
        "tools/call": [progress(1), log("info"), progress(2), log("error"), { reply: { content: [] } }],
      },
    });
    await using one = await modernAgent(served.url);
    const heard: Array<unknown> = [];
    one.client.setNotificationHandler("notifications/message", ({ params }) => void heard.push(params.data));
    const call = (_meta?: Record<string, string>) =>
      one.client.callTool(
        { name: "told__echo", ...(_meta && { _meta }) },
        { onprogress: ({ progress: n }) => void heard.push(n) },
      );
    await call();
    expect(heard.splice(0)).toEqual([1, 2]);
    await call(logLevel("warning"));
    expect(heard.splice(0)).toEqual([1, 2, "error"]);
    await call(logLevel("debug"));
    expect(heard.splice(0)).toEqual([1, "info", 2, "error"]);
  });

  it("changed lists and resources come through subscriptions/listen, to those who asked", async () => {
    await using served = await listening();
    await attach(served.gateway, "changing", {
      resources: [{ uri: "c:///a", name: "a" }],
      on: {
        "resources/subscribe": [{ reply: {} }],
        "resources/unsubscribe": [{ reply: {} }],
        "tools/call": [updated("c:///a"), { echo: true }],
      },
    });
    await attach(served.gateway, "others", { tools: [], resources: [{ uri: "d:///a", name: "a" }] });
    const heard: Array<string> = [];
    const hearing = (name: string) =>
      modernAgent(served.url, {}, (client) => {
        client.setNotificationHandler("notifications/tools/list_changed", () => void heard.push(`${name}: tools`));
        client.setNotificationHandler(
          "notifications/resources/updated",
          ({ params }) => void heard.push(`${name}: ${params.uri}`),
        );
      });
    await using one = await hearing("one");
    await using two = await hearing("two");
    const first = await one.client.listen({ resourceSubscriptions: ["c:///a", "nowhere:///"] });
    // What nobody has cannot be subscribed to.
    expect(first.honoredFilter).toEqual({ resourceSubscriptions: ["c:///a"] });
    const second = await two.client.listen({ toolsListChanged: true, resourceSubscriptions: ["c:///a"] });
    await two.client.callTool({ name: "changing__echo" });
    await until("both heard", () => heard.length === 2);
    expect(heard.splice(0).toSorted()).toEqual(["one: c:///a", "two: c:///a"]);
    await attach(served.gateway, "another");
    await until("told of tools", () => heard.length === 1);
    expect(heard.splice(0)).toEqual(["two: tools"]);
    expect(seen("changing", "resources/subscribe")).toBe(1);
    await first.close();
    await two.client.callTool({ name: "changing__echo" });
    await until("two heard", () => heard.length === 1);
    expect(heard.splice(0)).toEqual(["two: c:///a"]);
    await second.close();
  });

  it("the end of the last stream that listens to a resource ends the subscription at the server", async () => {
    await using served = await listening({}, { sessionLost: 100 });
    await attach(served.gateway, "ended", {
      resources: [{ uri: "e:///a", name: "a" }],
      on: { "resources/subscribe": [{ reply: {} }], "resources/unsubscribe": [{ reply: {} }] },
    });
    const streams = [
      await listenTo(served.url, { resourceSubscriptions: ["e:///a"] }),
      await listenTo(served.url, { resourceSubscriptions: ["e:///a", "e:///a"] }),
    ];
    for (const { acknowledged } of streams)
      expect(acknowledged.notifications).toEqual({ resourceSubscriptions: ["e:///a"] });
    expect(seen("ended", "resources/subscribe")).toBe(1);
    streams[0]!.close();
    streams[1]!.close();
    await until("the server was told", () => seen("ended", "resources/unsubscribe") === 1);
    await until("it is forgotten", () => served.gateway.clients() === 0);
  });

  it("our own runtime, as a client of the era, hears of changes", async () => {
    await using served = await listening();
    await attach(served.gateway, "ours", {
      resources: [{ uri: "u:///a", name: "a" }],
      on: { "resources/subscribe": [{ reply: {} }], "tools/call": [updated("u:///a"), { echo: true }] },
    });
    await using runtime = await createRuntime();
    await using client = await runtime.client(new HttpEndpoint({ url: served.url, era: "modern" }));
    expect([client.era, client.protocolVersion]).toEqual(["modern", revision]);
    const heard: Array<string> = [];
    client.onNotification((method) => void heard.push(method));
    await client.subscribeResource("u:///a");
    await client.callTool("ours__echo");
    await until("heard of the resource", () => heard.includes("notifications/resources/updated"));
    await attach(served.gateway, "more");
    await until("heard of the tools", () => heard.includes("notifications/tools/list_changed"));
  });

  it("a client that cancels, or vanishes mid-call, ends the call at the server; others go on", async () => {
    await using served = await listening({}, { sessionLost: 100 });
    await attach(served.gateway, "cancel", {
      on: { "tools/call": [[{ never: true }], [{ never: true }], [{ echo: true }]] },
    });
    await using one = await modernAgent(served.url);
    const stop = new AbortController();
    const cancelled = one.client.callTool({ name: "cancel__echo" }, { signal: stop.signal });
    cancelled.catch(() => {});
    await until("the call arrived", () => seen("cancel", "tools/call") === 1);
    stop.abort();
    await until("the server was told", () => seen("cancel", "notifications/cancelled") === 1);
    const gone = await modernAgent(served.url, {}, undefined, "gone");
    gone.client.callTool({ name: "cancel__echo" }).catch(() => {});
    await until("the call arrived", () => seen("cancel", "tools/call") === 2);
    await gone.client.close();
    await until("the server was told", () => seen("cancel", "notifications/cancelled") === 2);
    expect(textOf(await one.client.callTool({ name: "cancel__echo", arguments: { n: 1 } }))).toBe('{"n":1}');
    const { gates } = await served.gateway.runtime.health();
    expect(gates.filter(({ name, used }) => name.startsWith("mcp:cancel") && used > 0)).toEqual([]);
    await until("both are forgotten", () => served.gateway.clients() === 0);
  });

  it("one client's flood leaves another its places, told apart by what they say of themselves", async () => {
    await using served = await listening({ settings: { stdioEndpointMax: 2 } });
    await attach(served.gateway, "busy", { on: { "tools/call": [{ delay: 30 }, { reply: { content: [] } }] } });
    await using greedy = await modernAgent(served.url, {}, undefined, "greedy");
    await using modest = await modernAgent(served.url, {}, undefined, "modest");
    await modest.client.listTools();
    const call = { name: "busy__echo" };
    let left = 60;
    const flood = Array.from({ length: left }, () => greedy.client.callTool(call).then(() => left--));
    await until("the flood runs", () => left < 58);
    await modest.client.callTool(call);
    await modest.client.callTool(call);
    expect(left).toBeGreaterThan(30);
    await Promise.all(flood);
  });

  it("bad input gets the refusals of the revision, and leaves nothing behind", async () => {
    await using served = await listening({}, { bodyMax: 2_000, sessionLost: 100 });
    const { url } = served;
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: envelope() } };
    const raw = async (body: unknown, headers: Record<string, string>): Promise<readonly [number, number]> => {
      const response = await fetch(url, {
        method: "POST",
        headers,
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
      return [response.status, ((await response.json()) as any).error.code];
    };
    const without = (name: string) => {
      const { [name]: _, ...others } = headersOf("tools/list");
      return others;
    };
    const other = {
      ...list,
      params: { _meta: envelope({}, { "io.modelcontextprotocol/protocolVersion": "2099-01-01" }) },
    };
    const results = [
      await raw("{", headersOf("tools/list")),
      await raw({ ...list, params: { x: "x".repeat(3_000) } }, headersOf("tools/list")),
      await raw(list, without("mcp-method")),
      await raw(list, without("mcp-protocol-version")),
      await raw(list, headersOf("prompts/list")),
      await raw({ ...list, params: {} }, headersOf("tools/list")),
      await raw(other, { ...headersOf("tools/list"), "mcp-protocol-version": "2099-01-01" }),
      await raw({ ...list, method: "x/y" }, headersOf("x/y")),
      await raw({ ...list, method: "logging/setLevel" }, headersOf("logging/setLevel")),
      await raw([list], headersOf("tools/list")),
      await raw(list, { ...headersOf("tools/list"), "content-type": "text/plain" }),
    ];
    expect(results).toEqual([
      [400, -32700],
      [413, -32000],
      [400, -32020],
      [400, -32020],
      [400, -32020],
      [400, -32602],
      [400, -32022],
      [404, -32601],
      [404, -32601],
      [400, -32600],
      [415, -32000],
    ]);
    const get = await fetch(url, { headers: { "mcp-protocol-version": revision } });
    expect(get.status).toBe(405);
    const call = (params: object) => post(url, "tools/call", { name: "x", ...params });
    expect((await call({ arguments: [] })).answer.error.code).toBe(-32602);
    expect((await call({ requestState: "made up" })).answer.error.code).toBe(-32602);
    expect((await call({})).answer.result.isError).toBe(true);
    const listen = await post(url, "subscriptions/listen", { notifications: 1 });
    expect(listen.answer.error.code).toBe(-32602);
    await until("all are forgotten", () => served.gateway.clients() === 0);
  });

  it("wants the token, knows no foreign host, and has room for so many clients at work", async () => {
    await using served = await listening({}, { token: "s3cret", sessionsMax: 1 });
    await attach(served.gateway, "room", { on: { "tools/call": [{ never: true }] } });
    expect((await post(served.url, "tools/list")).status).toBe(401);
    const headers = { ...headersOf("tools/list"), authorization: "Bearer s3cret" };
    expect((await post(served.url, "tools/list", {}, { headers })).status).toBe(200);
    expect(
      (await post(served.url, "tools/list", {}, { headers: { ...headers, origin: "http://evil.example" } })).status,
    ).toBe(403);
    const stop = new AbortController();
    const busy = post(
      served.url,
      "tools/call",
      { name: "room__echo" },
      {
        headers: { ...headersOf("tools/call", "room__echo"), authorization: "Bearer s3cret" },
        signal: stop.signal,
      },
    );
    busy.catch(() => {});
    await until("the call arrived", () => seen("room", "tools/call") === 1);
    const stranger = { _meta: envelope({}, { "io.modelcontextprotocol/clientInfo": { name: "other", version: "1" } }) };
    expect((await post(served.url, "tools/list", stranger, { headers })).status).toBe(503);
    stop.abort();
  });
});
