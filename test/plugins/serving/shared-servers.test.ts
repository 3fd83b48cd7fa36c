/** What clients share of a server: its log level, its resources' URIs, its subscriptions. */
import { rm } from "node:fs/promises";
import {
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { readLog, type StdioProgram } from "../../support/scripted-stdio.ts";
import { readPids, until } from "../../support/stdio-pids.ts";
import { agent, at, attach, folder, listening } from "./gateway-with.ts";
import { logLevel, modernAgent } from "./modern-agents.ts";

afterAll(() => rm(folder, { recursive: true }));

const messages = (name: string, method: string): ReadonlyArray<any> =>
  readLog(at(`${name}.log`)).flatMap((line) =>
    line.kind === "message" && line.message["method"] === method ? [line.message["params"]] : [],
  );
const levelsOf = (name: string): ReadonlyArray<unknown> => messages(name, "logging/setLevel").map(({ level }) => level);
const contents = (text: string) => ({ contents: [{ uri: "x:/", text }] });
const log = (level: string) => ({ notify: { method: "notifications/message", params: { level, data: level } } });

describe("the log level of a server", () => {
  it("is the most verbose that any client wants; each client gets what it asked for, at once", async () => {
    await using served = await listening({}, { sessionLost: 100 });
    const on: StdioProgram["on"] & {} = {
      "logging/setLevel": [{ reply: {} }],
      "tools/call": [log("debug"), log("warning"), log("error"), { echo: true }],
    };
    await attach(served.gateway, "levels", { capabilities: { tools: {}, logging: {} }, on });
    await attach(served.gateway, "silent", { capabilities: { tools: {} }, on });
    const heard: Array<unknown> = [];
    const hearing = (name: string) =>
      agent(served.url, {}, (client) =>
        client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
          heard.push(`${name}: ${String(params.data)}`);
        }),
      );
    await using one = await hearing("one");
    const two = await hearing("two");
    await one.client.listTools();
    // Nobody asked for anything, so the server keeps its own level.
    expect(levelsOf("levels")).toEqual([]);
    await one.client.setLoggingLevel("error");
    await until("the server was told", () => levelsOf("levels").length === 1);
    await two.client.setLoggingLevel("debug");
    await until("the server was told", () => levelsOf("levels").length === 2);
    await one.client.setLoggingLevel("warning");
    await one.client.callTool({ name: "levels__echo" });
    await until("one heard", () => heard.length === 2);
    await two.client.callTool({ name: "levels__echo" });
    await until("two heard", () => heard.length === 5);
    expect(heard.splice(0)).toEqual(["one: warning", "one: error", "two: debug", "two: warning", "two: error"]);
    // The other one has not asked yet, and hears all from info on.
    expect(levelsOf("levels")).toEqual(["info", "debug"]);
    await two.transport.terminateSession();
    await until("nobody wants so much any more", () => levelsOf("levels").length === 3);
    {
      await using modern = await modernAgent(served.url);
      modern.client.setNotificationHandler("notifications/message", ({ params }) => void heard.push(params.data));
      await modern.client.callTool({ name: "levels__echo", _meta: logLevel("debug") });
      expect(heard.splice(0)).toEqual(["debug", "warning", "error"]);
    }
    await until("it is forgotten", () => levelsOf("levels").length === 5);
    expect(levelsOf("levels")).toEqual(["info", "debug", "warning", "debug", "warning"]);
    await one.client.callTool({ name: "silent__echo" });
    expect(levelsOf("silent")).toEqual([]);
    await expect(one.client.setLoggingLevel("loud" as never)).rejects.toMatchObject({ code: -32602 });
    await two.client.close();
  });

  it("leaves those that never asked what they hear without asking", async () => {
    await using served = await listening({}, { sessionLost: 100 });
    await attach(served.gateway, "quiet", {
      capabilities: { tools: {}, logging: {} },
      on: { "logging/setLevel": [{ reply: {} }], "tools/call": [{ echo: true }] },
    });
    await using silent = await agent(served.url);
    const strict = await agent(served.url);
    await silent.client.callTool({ name: "quiet__echo" });
    expect(levelsOf("quiet")).toEqual([]);
    await strict.client.setLoggingLevel("emergency");
    await silent.client.callTool({ name: "quiet__echo" });
    expect(levelsOf("quiet")).toEqual(["info"]);
    // Alone, it has the server for itself; then somebody comes who hears the most without asking.
    await silent.transport.terminateSession();
    await until("nobody else is there", () => levelsOf("quiet").length === 2);
    await using late = await agent(served.url);
    await late.client.callTool({ name: "quiet__echo" });
    expect(levelsOf("quiet")).toEqual(["info", "emergency", "info"]);
    await strict.transport.terminateSession();
    await strict.client.close();
    await late.client.callTool({ name: "quiet__echo" });
    expect(levelsOf("quiet")).toEqual(["info", "emergency", "info"]);
  });

  it("is set again, before the next call, when the server comes back", async () => {
    await using served = await listening({ settings: { minUptime: 1 } });
    await attach(served.gateway, "again", {
      capabilities: { tools: {}, logging: {} },
      on: { "logging/setLevel": [{ reply: {} }], "tools/call": [{ kill: "SIGKILL" }] },
    });
    await using one = await agent(served.url);
    await one.client.setLoggingLevel("notice");
    const methods = (): ReadonlyArray<unknown> =>
      readLog(at("again.log")).flatMap((line) =>
        line.kind === "message" && /setLevel|call/.test(line.message["method"]) ? [line.message["method"]] : [],
      );
    await one.client.callTool({ name: "again__echo" });
    expect(methods()).toEqual(["logging/setLevel", "tools/call"]);
    await one.client.callTool({ name: "again__echo" });
    expect(methods()).toEqual(["logging/setLevel", "tools/call", "logging/setLevel", "tools/call"]);
  });
});

describe("a URI that several servers list", () => {
  it("is the first attached one's, whichever answers first, and stays so while that one is down", async () => {
    await using served = await listening();
    const shared = (name: string) => [
      { uri: "both:///a", name: `${name}'s` },
      { uri: `${name}:///own`, name },
    ];
    const reads = (name: string) => ({ "resources/read": [{ reply: contents(name) }] });
    await attach(served.gateway, "slower", {
      resources: shared("slower"),
      on: { ...reads("slower"), "resources/list": [{ delay: 300 }], "tools/call": [{ kill: "SIGKILL" }] },
      onStart: [[], [{ exit: 3 }]],
    });
    await attach(served.gateway, "faster", { resources: shared("faster"), on: reads("faster") });
    await using one = await agent(served.url);
    const { client } = one;
    const listed = async () => (await client.listResources()).resources.map(({ uri, name }) => `${uri} ${name}`);
    const all = ["both:///a slower's", "slower:///own slower", "faster:///own faster"];
    expect(await listed()).toEqual(all);
    expect((await client.readResource({ uri: "both:///a" })).contents).toMatchObject([{ text: "slower" }]);
    await client.callTool({ name: "slower__echo" });
    // Its clients are told what is wrong with it, not given another server's content.
    await expect(client.readResource({ uri: "both:///a" })).rejects.toThrow("slower");
    expect(await listed()).toEqual(all);
    expect((await client.readResource({ uri: "faster:///own" })).contents).toMatchObject([{ text: "faster" }]);
    const slower = served.gateway.runtime.connectors().find(({ handle }) => handle === "slower")!;
    await served.gateway.runtime.detach(slower);
    await until("the list has changed", () => served.gateway.runtime.connectors().length === 1);
    expect((await client.readResource({ uri: "both:///a" })).contents).toMatchObject([{ text: "faster" }]);
  });
});

describe("subscriptions to a server that is lost", () => {
  it("are made again, and the clients hear that the resource may have changed", async () => {
    await using served = await listening({ settings: { minUptime: 1 } });
    await attach(served.gateway, "renewed", {
      resources: ["r:///a", "r:///b"].map((uri) => ({ uri, name: uri })),
      on: {
        "resources/subscribe": [{ reply: {} }],
        "resources/unsubscribe": [{ reply: {} }],
        "tools/call": [
          [{ kill: "SIGKILL" }],
          [{ notify: { method: "notifications/resources/updated", params: { uri: "r:///a" } } }, { echo: true }],
        ],
      },
    });
    const heard: Array<string> = [];
    await using one = await agent(served.url, {}, (client) =>
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
        heard.push(`legacy ${params.uri}`);
      }),
    );
    await using two = await modernAgent(served.url, {}, (client) =>
      client.setNotificationHandler(
        "notifications/resources/updated",
        ({ params }) => void heard.push(`modern ${params.uri}`),
      ),
    );
    await one.client.subscribeResource({ uri: "r:///a" });
    const stream = await two.client.listen({ resourceSubscriptions: ["r:///b"] });
    await one.client.callTool({ name: "renewed__echo" });
    await until("both heard", () => heard.length === 2);
    expect(heard.splice(0).toSorted()).toEqual(["legacy r:///a", "modern r:///b"]);
    expect(messages("renewed", "resources/subscribe")).toHaveLength(4);
    expect(readPids(at("renewed.pids"))).toHaveLength(2);
    await one.client.unsubscribeResource({ uri: "r:///a" });
    await until("the new connection was told", () => messages("renewed", "resources/unsubscribe").length === 1);
    await stream.close();
  });
});
