import { describe, expect, it } from "@effect/vitest";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { createRuntime, InMemoryEndpoint, type McpEvent, ports, StdioEndpoint } from "../../src/mod.ts";
import { readLog, scriptedStdio, type StdioProgram } from "../support/scripted-stdio.ts";
import { scratch, until } from "../support/paths.ts";

const tools = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ name: `tool_${i}`, inputSchema: { type: "object" } }));

const open = async (program: StdioProgram, settings: object = {}) => {
  const log = `${scratch()}/log`;
  const diagnostics: Array<string> = [];
  const runtime = await createRuntime({
    settings,
    setup: (c) =>
      void c.registerInstance(ports.observers.token, {
        on: (event: McpEvent) => void (event.type === "diagnostic" && diagnostics.push(event.message)),
      }),
  });
  const endpoint = new StdioEndpoint({ name: "s", ...scriptedStdio({ ...program, log }) });
  const client = await runtime.client(endpoint);
  const asked = (method: string): number =>
    readLog(log).filter((line) => line.kind === "message" && line.message["method"] === method).length;
  return { runtime, client, endpoint, diagnostics, asked, [Symbol.asyncDispose]: () => runtime.close() };
};

describe("listing", () => {
  it("an item that is nested too deep for JSON.stringify leaves the others where they are", async () => {
    let deep: unknown = {};
    for (let level = 0; level < 20_000; level++) deep = { type: "object", properties: { a: deep } };
    const tools = [
      { name: "deep", inputSchema: deep },
      { name: "good", inputSchema: { type: "object" } },
    ];
    const connect = (transport: Transport) => {
      const onmessage = (message: unknown): void => {
        const { id, method, params } = message as { id?: number; method?: string; params?: any };
        const opening = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: {} };
        const result = method === "initialize" ? opening : { tools };
        if (id !== undefined) void transport.send({ jsonrpc: "2.0", id, result });
      };
      Object.assign(transport, { onmessage });
      return transport.start();
    };
    await using runtime = await createRuntime();
    await runtime.attach("s", new InMemoryEndpoint({ name: "s", connect, era: "legacy" }));
    expect((await runtime.tools()).map(({ tool }) => tool)).toContain("good");
  });

  it("C-044: all pages of all lists, in order", async () => {
    await using s = await open({
      tools: tools(101),
      pageSize: 50,
      resources: Array.from({ length: 7 }, (_, i) => ({ uri: `test://r/${i}`, name: `r${i}` })),
      prompts: Array.from({ length: 51 }, (_, i) => ({ name: `p${i}` })),
    });
    expect((await s.client.listTools()).map((tool) => tool.name)).toEqual(tools(101).map((tool) => tool.name));
    expect((await s.client.listResources()).length).toBe(7);
    expect((await s.client.listPrompts()).map((prompt) => prompt["name"])).toEqual(
      Array.from({ length: 51 }, (_, i) => `p${i}`),
    );
    await s.client.listTools();
    expect(s.asked("tools/list")).toBe(3);
  });

  const page = (names: ReadonlyArray<string>, nextCursor?: unknown) => [
    {
      reply: {
        tools: names.map((name) => ({ name, inputSchema: { type: "object" } })),
        ...(nextCursor !== undefined && { nextCursor }),
      },
    },
  ];

  it("C-044: null ends, an empty page with a cursor does not, an item on two pages is kept once", async () => {
    await using s = await open({
      on: { "tools/list": [page(["a"], "1"), page([], "2"), page(["a", "b"], ""), page(["c"], null)] },
    });
    expect((await s.client.listTools()).map((tool) => tool.name)).toEqual(["a", "b", "c"]);
    expect(s.asked("tools/list")).toBe(4);
  });

  it("C-045: a cursor that repeats ends the list with a diagnostic", async () => {
    await using s = await open({ on: { "tools/list": [page(["a", "b"], "x")] } });
    expect((await s.client.listTools()).map((tool) => tool.name)).toEqual(["a", "b"]);
    expect(s.asked("tools/list")).toBe(2);
    await until(() => s.diagnostics.some((text) => text.includes("repeated a cursor")));
  });

  it("C-045: cursors that alternate end the list too", async () => {
    await using s = await open({
      on: { "tools/list": [page(["a"], "1"), page(["b"], "2"), page(["a"], "1"), page(["never"], "3")] },
    });
    expect((await s.client.listTools()).map((tool) => tool.name)).toEqual(["a", "b"]);
  });

  it("C-045: a list without end is cut at the page limit, with a diagnostic", async () => {
    const pages = Array.from({ length: 20 }, (_, i) => page([`t${i}`], `c${i}`));
    await using s = await open({ on: { "tools/list": pages } }, { listPagesMax: 5 });
    expect((await s.client.listTools()).length).toBe(5);
    await until(() => s.diagnostics.some((text) => text.includes("longer than 5 pages")));
  });

  it("C-045: an error on a later page fails the listing: half a list is never passed off as the list", async () => {
    await using s = await open({
      on: {
        "tools/list": [page(["a"], "1"), [{ error: { code: -32603, message: "page two is broken" } }], page(["a"])],
      },
    });
    const error = await s.client.listTools().catch((e: unknown) => e);
    expect(error).toMatchObject({ _tag: "ProtocolError", code: -32603 });
    expect((await s.client.listTools()).length).toBe(1);
  });

  it("C-049: what is not advertised is not asked for", async () => {
    await using s = await open({ capabilities: { tools: {} }, tools: tools(1) });
    expect(await s.client.listResources()).toEqual([]);
    expect(await s.client.listPrompts()).toEqual([]);
    expect(await s.client.listResourceTemplates()).toEqual([]);
    expect(s.asked("resources/list") + s.asked("prompts/list") + s.asked("resources/templates/list")).toBe(0);
  });

  it("C-049: a server that advertises nothing at all is still asked for tools", async () => {
    await using s = await open({ capabilities: {}, tools: tools(2) });
    expect((await s.client.listTools()).length).toBe(2);
  });

  it("C-049: a resources-only server connects and lists; -32601 is an empty list with a diagnostic", async () => {
    const unknown = [{ error: { code: -32601, message: "Method not found" } }];
    await using s = await open({
      capabilities: { resources: {}, prompts: {} },
      resources: [{ uri: "test://a", name: "a" }],
      on: { "prompts/list": unknown, "resources/templates/list": unknown },
    });
    expect((await s.client.listResources()).length).toBe(1);
    expect(await s.client.listPrompts()).toEqual([]);
    expect(await s.client.listTools()).toEqual([]);
    await until(() => s.diagnostics.some((text) => text.includes("-32601")));
  });

  it("C-049: a list request without an answer costs one short timeout, not the connection", async () => {
    await using s = await open({
      tools: tools(1),
      prompts: [{ name: "p" }],
      on: { "prompts/list": [{ never: true }] },
    });
    const error = await s.client.request("prompts/list", {}, { timeout: "100 millis" }).catch((e: unknown) => e);
    expect(error).toMatchObject({ _tag: "RequestTimeout", kind: "idle" });
    expect((await s.client.listTools()).length).toBe(1);
  });

  it("list_changed makes the list be read anew, bursts as one", async () => {
    const burst = Array.from({ length: 20 }, () => ({ notify: { method: "notifications/tools/list_changed" } }));
    await using s = await open({
      capabilities: { tools: { listChanged: true } },
      on: { "tools/list": [page(["old"]), page(["old", "new"])], "tools/call": [...burst, { echo: true }] },
    });
    await s.runtime.attach("s", s.endpoint);
    expect((await s.runtime.tools()).map(({ tool }) => tool)).toEqual(["old"]);
    await s.runtime.callTool({ tool: "s__old" });
    expect((await s.runtime.tools()).map(({ tool }) => tool)).toEqual(["old", "new"]);
    expect(s.asked("tools/list")).toBe(2);
  });
});
