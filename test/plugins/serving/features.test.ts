import { rm } from "node:fs/promises";
import {
  EmptyResultSchema,
  LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { readLog } from "../../support/scripted-stdio.ts";
import { until } from "../../support/stdio-pids.ts";
import { agent, at, attach, folder, listening, seen } from "./gateway-with.ts";

afterAll(() => rm(folder, { recursive: true }));

const contents = (text: string) => ({ contents: [{ uri: "x:/", text }] });

const log = (level: string) => ({ notify: { method: "notifications/message", params: { level, data: level } } });

describe("a gateway's other features", () => {
  it("resources, templates, prompts and completion of all servers, each from its owner", async () => {
    await using served = await listening();
    await attach(served.gateway, "left", {
      resources: [{ uri: "left:///a", name: "a" }],
      prompts: [{ name: "greet" }],
      on: {
        "resources/read": [{ reply: contents("left") }],
        "prompts/get": [{ message: { jsonrpc: "2.0", id: "$id", result: { messages: [], description: "$params" } } }],
        "completion/complete": [{ reply: { completion: { values: ["left"] } } }],
      },
    });
    await attach(served.gateway, "right", {
      resources: [{ uri: "right:///a", name: "a" }],
      resourceTemplates: [{ uriTemplate: "right:///items/{id}", name: "items" }],
      prompts: [{ name: "greet" }],
      on: {
        "resources/read": [{ reply: contents("right") }],
        "prompts/get": [{ error: { code: -32077, message: "no" } }],
        "completion/complete": [{ reply: { completion: { values: ["right"] } } }],
      },
    });
    // A server that cannot start takes no other's offers away.
    await attach(served.gateway, "dead", { onStart: [{ exit: 3 }] });
    await using one = await agent(served.url);
    const { client } = one;
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["left:///a", "right:///a"]);
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1);
    expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["left__greet", "right__greet"]);
    expect((await client.readResource({ uri: "left:///a" })).contents).toMatchObject([{ text: "left" }]);
    expect((await client.readResource({ uri: "right:///items/7" })).contents).toMatchObject([{ text: "right" }]);
    await expect(client.readResource({ uri: "none:///" })).rejects.toMatchObject({ code: -32002 });
    await expect(client.getPrompt({ name: "right__greet" })).rejects.toMatchObject({ code: -32077 });
    await expect(client.getPrompt({ name: "greet" })).rejects.toMatchObject({ code: -32602 });
    const argument = { name: "id", value: "" };
    const template = { type: "ref/resource" as const, uri: "right:///items/{id}" };
    expect((await client.complete({ ref: template, argument })).completion.values).toEqual(["right"]);
    await client.complete({ ref: { type: "ref/prompt", name: "left__greet" }, argument });
    const asked = readLog(at("left.log")).find(
      (line) => line.kind === "message" && line.message["method"] === "completion/complete",
    );
    expect(asked).toMatchObject({ message: { params: { ref: { type: "ref/prompt", name: "greet" } } } });
  });

  it.each<[string, Record<string, unknown>]>([
    ["completion/complete", { ref: { type: "ref/prompt", name: { toString: null } } }],
    ["completion/complete", { ref: { type: "ref/resource", uri: { toString: null } } }],
    ["resources/subscribe", { uri: [{ toString: null }] }],
    ["resources/unsubscribe", {}],
    ["resources/read", { uri: 7 }],
    ["prompts/get", { name: null }],
    ["tools/list", { cursor: { toString: null } }],
    ["resources/list", { cursor: 1 }],
  ])("bad input: %s with %j is refused as invalid", async (method, params) => {
    await using served = await listening();
    await using one = await agent(served.url);
    const refused = one.client.request({ method, params } as never, EmptyResultSchema);
    await expect(refused).rejects.toMatchObject({ code: -32_602 });
  });

  it("one subscription at the server for all clients that have one", async () => {
    await using served = await listening();
    const updated = { notify: { method: "notifications/resources/updated", params: { uri: "s:///a" } } };
    await attach(served.gateway, "subscribed", {
      resources: [{ uri: "s:///a", name: "a" }],
      on: { "resources/subscribe": [{ reply: {} }], "resources/unsubscribe": [{ reply: {} }], "tools/call": [updated] },
    });
    const heard = [0, 0];
    const listen = (n: number) => (client: Parameters<NonNullable<Parameters<typeof agent>[2]>>[0]) =>
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => void heard[n]!++);
    const one = await agent(served.url, {}, listen(0));
    await using two = await agent(served.url, {}, listen(1));
    await one.client.subscribeResource({ uri: "s:///a" });
    await two.client.subscribeResource({ uri: "s:///a" });
    await one.client.callTool({ name: "subscribed__echo" });
    await until("both heard", () => heard[0] === 1 && heard[1] === 1);
    await two.client.unsubscribeResource({ uri: "s:///a" });
    await one.client.callTool({ name: "subscribed__echo" });
    await until("one heard", () => heard[0] === 2);
    expect([heard[1], seen("subscribed", "resources/subscribe")]).toEqual([1, 1]);
    expect(seen("subscribed", "resources/unsubscribe")).toBe(0);
    await one.transport.terminateSession();
    await until("the last one has left", () => seen("subscribed", "resources/unsubscribe") === 1);
    await one.client.close();
  });

  it("log messages go to the client whose call is running, at its level; changed lists to all", async () => {
    await using served = await listening();
    await attach(served.gateway, "logs", {
      on: {
        "tools/call": [
          log("debug"),
          log("error"),
          { notify: { method: "notifications/prompts/list_changed" } },
          { delay: 200 },
          { echo: true },
        ],
      },
    });
    const heard: Array<unknown> = [];
    let changed = 0;
    await using one = await agent(served.url, {}, (client) => {
      client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void heard.push(params.data));
    });
    await using _two = await agent(served.url, {}, (client) => {
      client.setNotificationHandler(LoggingMessageNotificationSchema, () => void heard.push("other"));
      client.setNotificationHandler(PromptListChangedNotificationSchema, () => void changed++);
    });
    await one.client.setLoggingLevel("warning");
    await one.client.listTools();
    changed = 0;
    await one.client.callTool({ name: "logs__echo" });
    await until("heard", () => heard.length > 0 && changed > 0);
    expect(heard).toEqual(["error"]);
  });
});
