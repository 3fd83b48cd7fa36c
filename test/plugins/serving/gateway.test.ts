import { rm } from "node:fs/promises";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { createGateway } from "../../../src/serve.ts";
import { StdioEndpoint } from "../../../src/mod.ts";
import { readLog, scriptedStdio } from "../../support/scripted-stdio.ts";
import { isAlive, readPids, until } from "../../support/stdio-pids.ts";
import { agent, at, attach, echoTool, folder, listening, textOf, seen } from "./gateway-with.ts";

afterAll(() => rm(folder, { recursive: true }));

const progress = (n: number) => ({
  notify: {
    method: "notifications/progress",
    params: { progressToken: "$token", progress: n, total: 3, message: `step ${n}` },
  },
});

/** What clients answered to a server. */
const answers = (name: string): ReadonlyArray<any> =>
  readLog(at(`${name}.log`)).flatMap((line) =>
    line.kind === "message" && line.message["method"] === undefined ? [line.message] : [],
  );

const accept = (client: Client): void =>
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: "accept", content: { name: "x" } }));

describe("a gateway", () => {
  it("ten agents on five servers: five processes, and none is left at the end", async () => {
    const handles = ["a", "b", "c", "d", "e"].map((letter) => `ten-${letter}`);
    {
      await using served = await listening();
      for (const handle of handles) await attach(served.gateway, handle);
      const agents = await Promise.all(Array.from({ length: 10 }, () => agent(served.url)));
      const lists = await Promise.all(agents.map(({ client }) => client.listTools()));
      for (const { tools } of lists)
        expect(tools.map(({ name }) => name)).toEqual(handles.map((handle) => `${handle}__echo`));
      await Promise.all(
        agents.flatMap(({ client }, n) =>
          handles.map(async (handle) => {
            const result = await client.callTool({ name: `${handle}__echo`, arguments: { n, handle } });
            expect(JSON.parse(textOf(result))).toEqual({ n, handle });
          }),
        ),
      );
      expect(served.gateway.clients()).toBe(10);
      for (const handle of handles) expect(readPids(at(`${handle}.pids`))).toHaveLength(1);
      // One goes politely, one without a word.
      await agents[0]!.transport.terminateSession();
      await until("nine clients", () => served.gateway.clients() === 9);
      await Promise.all(agents.map(({ client }) => client.close()));
    }
    for (const handle of handles) expect(readPids(at(`${handle}.pids`)).filter(isAlive)).toEqual([]);
  });

  it("progress comes through in order, before the answer", async () => {
    await using served = await listening();
    await attach(served.gateway, "progress", {
      on: { "tools/call": [progress(1), progress(2), progress(3), { reply: { content: [] } }] },
    });
    await using one = await agent(served.url);
    const heard: Array<unknown> = [];
    await one.client.callTool({ name: "progress__echo" }, undefined, { onprogress: (p) => heard.push(p) });
    expect(heard).toEqual([1, 2, 3].map((n) => ({ progress: n, total: 3, message: `step ${n}` })));
  });

  it("cancelling reaches the server and frees the place", async () => {
    await using served = await listening();
    await attach(served.gateway, "cancel", { on: { "tools/call": [[{ never: true }], [{ echo: true }]] } });
    await using one = await agent(served.url);
    const stop = new AbortController();
    const call = one.client.callTool({ name: "cancel__echo" }, undefined, { signal: stop.signal });
    await until("the call arrived", () => seen("cancel", "tools/call") === 1);
    stop.abort("enough");
    await expect(call).rejects.toThrow();
    await until("the server was told", () => seen("cancel", "notifications/cancelled") === 1);
    expect(textOf(await one.client.callTool({ name: "cancel__echo", arguments: { n: 2 } }))).toBe('{"n":2}');
    const { gates } = await served.gateway.runtime.health();
    expect(gates.filter(({ name, used }) => name.startsWith("mcp:cancel") && used > 0)).toEqual([]);
  });

  it("an agent that vanishes mid-call cancels its calls and leaks nothing; others go on", async () => {
    await using served = await listening({}, { sessionLost: 100, resumeWithin: 100 });
    await attach(served.gateway, "vanish", { on: { "tools/call": [[{ never: true }], [{ echo: true }]] } });
    const one = await agent(served.url);
    await using other = await agent(served.url);
    const lost = one.client.callTool({ name: "vanish__echo" });
    lost.catch(() => {});
    await until("the call arrived", () => seen("vanish", "tools/call") === 1);
    // Closes its connections without ending the session, as a killed process does.
    await one.client.close();
    await until("the server was told", () => seen("vanish", "notifications/cancelled") === 1);
    expect(textOf(await other.client.callTool({ name: "vanish__echo", arguments: { n: 2 } }))).toBe('{"n":2}');
    await until("its session was ended", () => served.gateway.clients() === 1);
    const { gates } = await served.gateway.runtime.health();
    expect(gates.filter(({ name, used }) => name.startsWith("mcp:vanish") && used > 0)).toEqual([]);
  });

  it("a question that comes of a cancelled call is put to nobody else", async () => {
    await using served = await listening();
    const params = { message: "Whose?", requestedSchema: { type: "object", properties: {} } };
    await attach(served.gateway, "whose", {
      on: {
        "tools/call": [
          [{ hold: "go" }, { request: { id: "q", method: "elicitation/create", params } }, { never: true }],
          [{ release: "go" }, { hold: "asked" }],
        ],
      },
    });
    await using one = await agent(served.url, { elicitation: {} }, accept);
    await using other = await agent(served.url, { elicitation: {} }, accept);
    const stop = new AbortController();
    const given = one.client.callTool({ name: "whose__echo" }, undefined, { signal: stop.signal });
    await until("the call arrived", () => seen("whose", "tools/call") === 1);
    stop.abort("enough");
    await expect(given).rejects.toThrow();
    await until("the server was told", () => seen("whose", "notifications/cancelled") === 1);
    void other.client.callTool({ name: "whose__echo" }).catch(() => {});
    await until("the question was answered", () => answers("whose").length === 1);
    expect(answers("whose")[0]!.error.message).toContain("whom to ask");
  });

  it("a server that is killed breaks only its own calls", async () => {
    await using served = await listening();
    await attach(served.gateway, "killed", { on: { "tools/call": [{ kill: "SIGKILL" }, { never: true }] } });
    await attach(served.gateway, "healthy", { on: { "tools/call": [{ delay: 300 }, { echo: true }] } });
    await using one = await agent(served.url);
    await using two = await agent(served.url);
    const [broken, fine] = await Promise.all([
      one.client.callTool({ name: "killed__echo" }),
      two.client.callTool({ name: "healthy__echo", arguments: { n: 1 } }),
    ]);
    expect(broken.isError).toBe(true);
    expect(textOf(broken)).toContain("may have run");
    expect(textOf(fine)).toBe('{"n":1}');
    expect(textOf(await one.client.callTool({ name: "healthy__echo", arguments: { n: 2 } }))).toBe('{"n":2}');
  });

  it("tells clients of new tools, and pages long lists", async () => {
    await using served = await listening({ serve: { pageSize: 2 } });
    await attach(served.gateway, "first", {
      tools: [1, 2, 3].map((n) => ({ ...echoTool, name: `t${n}` })),
      pageSize: 1,
    });
    let told = 0;
    await using one = await agent(served.url, {}, (client) =>
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => void told++),
    );
    const page = await one.client.listTools();
    expect(page.tools.map(({ name }) => name)).toEqual(["first__t1", "first__t2"]);
    const rest = await one.client.listTools({ cursor: page.nextCursor! });
    expect(rest.tools.map(({ name }) => name)).toEqual(["first__t3"]);
    expect(rest.nextCursor).toBeUndefined();
    await expect(one.client.listTools({ cursor: "nonsense" })).rejects.toThrow("Invalid cursor");
    await attach(served.gateway, "second");
    await until("told", () => told > 0);
  });

  it("a server that is slow to list holds up nobody, and its tools are announced later", async () => {
    await using served = await listening({ serve: { listPatience: 300 } });
    const quick = await attach(served.gateway, "quick");
    await quick.providers();
    await attach(served.gateway, "slow", { on: { "tools/list": [{ hold: "list" }], ping: [{ release: "list" }] } });
    let told = 0;
    await using one = await agent(served.url, {}, (client) =>
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => void told++),
    );
    expect((await one.client.listTools()).tools.map(({ name }) => name)).toEqual(["quick__echo"]);
    const slow = served.gateway.runtime.connectors().find(({ handle }) => handle === "slow")!;
    const upstream = await served.gateway.runtime.client(slow.endpoint);
    told = 0;
    await upstream.ping();
    await until("told", () => told > 0);
    expect((await one.client.listTools()).tools.map(({ name }) => name)).toEqual(["quick__echo", "slow__echo"]);
    await upstream.close();
  });

  it("errors: an unknown tool, bad arguments, a server's own protocol error", async () => {
    await using served = await listening();
    await attach(served.gateway, "strict", {
      tools: [{ name: "add", inputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] } }],
      on: { "tools/call": [{ error: { code: -32042, message: "not today", data: { why: "rain" } } }] },
    });
    await using one = await agent(served.url);
    const unknown = await one.client.callTool({ name: "strict__subtract" });
    expect([unknown.isError, textOf(unknown)]).toEqual([true, expect.stringContaining("Similar: strict__add")]);
    const bad = await one.client.callTool({ name: "strict__add", arguments: { a: [] } });
    expect([bad.isError, textOf(bad)]).toEqual([true, expect.stringContaining("a")]);
    await expect(one.client.callTool({ name: "strict__add", arguments: { a: 1 } })).rejects.toMatchObject({
      code: -32042,
      data: { why: "rain" },
    });
    await expect(one.client.request({ method: "x/y" }, undefined as never)).rejects.toMatchObject({ code: -32601 });
  });
});

describe("what servers ask of their host", () => {
  const form = { message: "Name?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } };
  const question = { id: 901, method: "elicitation/create", params: form };
  const sampling = {
    id: 902,
    method: "sampling/createMessage",
    params: { messages: [{ role: "user", content: { type: "text", text: "hi" } }], maxTokens: 5 },
  };
  it("goes to the client whose call is running", async () => {
    await using served = await listening();
    await attach(served.gateway, "asks", {
      on: { "tools/call": [{ request: question }, { request: sampling }, { never: true }] },
    });
    const asked: Array<string> = [];
    const answering = (name: string) => (client: Client) => {
      client.setRequestHandler(ElicitRequestSchema, () => {
        asked.push(name);
        return { action: "accept", content: { name } };
      });
      client.setRequestHandler(CreateMessageRequestSchema, () => ({
        model: "m",
        role: "assistant",
        content: { type: "text", text: name },
      }));
    };
    const capabilities = { elicitation: {}, sampling: {} };
    await using one = await agent(served.url, capabilities, answering("one"));
    await using _two = await agent(served.url, capabilities, answering("two"));
    const stop = new AbortController();
    const call = one.client.callTool({ name: "asks__echo" }, undefined, { signal: stop.signal });
    call.catch(() => {});
    await until("both answered", () => answers("asks").length === 2);
    expect(answers("asks").find(({ id }) => id === 901).result).toEqual({ action: "accept", content: { name: "one" } });
    expect(answers("asks").find(({ id }) => id === 902).result.content.text).toBe("one");
    expect(asked).toEqual(["one"]);
    stop.abort();
  });

  it("is refused when two clients use the server, or the client cannot answer", async () => {
    await using served = await listening();
    await attach(served.gateway, "both", {
      on: { "tools/call": [[{ never: true }], [{ request: question }, { never: true }]] },
    });
    await attach(served.gateway, "unable", { on: { "tools/call": [{ request: question }, { never: true }] } });
    const capabilities = { elicitation: {} };
    await using one = await agent(served.url, capabilities, accept);
    await using two = await agent(served.url, capabilities, accept);
    await using plain = await agent(served.url);
    await one.client.listTools();
    for (const [client, name] of [
      [one.client, "both"],
      [two.client, "both"],
      [plain.client, "unable"],
    ] as const) {
      const before = seen(name, "tools/call");
      client.callTool({ name: `${name}__echo` }).catch(() => {});
      await until("the call arrived", () => seen(name, "tools/call") > before);
    }
    await until("both refused", () => answers("both").length + answers("unable").length === 2);
    expect(answers("both")[0].error.message).toContain("2 clients");
    expect(answers("unable")[0].error).toMatchObject({ code: -32601 });
  });
});

describe("fairness", () => {
  it("one client's flood of 10,000 calls raises another one's median wait no more than threefold", async () => {
    await using gateway = await createGateway();
    // No log: writing it would take the server longer than the calls.
    const program = scriptedStdio({ on: { "tools/call": [{ delay: 5 }, { reply: { content: [] } }] } });
    await gateway.runtime.attach("busy", new StdioEndpoint({ name: "busy", ...program }));
    const connect = async (): Promise<Client> => {
      const [ours, theirs] = InMemoryTransport.createLinkedPair();
      await gateway.connect(ours as never);
      const client = new Client({ name: "agent", version: "1.0.0" });
      await client.connect(theirs as never);
      return client;
    };
    const [greedy, modest] = [await connect(), await connect()];
    await modest.listTools();
    const call = { name: "busy__echo" };
    const median = async (): Promise<number> => {
      const waits: Array<number> = [];
      for (let n = 0; n < 40; n++) {
        const start = performance.now();
        await modest.callTool(call);
        waits.push(performance.now() - start);
      }
      return waits.toSorted((a, b) => a - b)[20]!;
    };
    await median();
    const alone = await median();
    let left = 10_000;
    const flood = Promise.all(
      Array.from({ length: left }, () => greedy.callTool(call, undefined, { timeout: 100_000 }).then(() => left--)),
    );
    flood.catch(() => {});
    const beside = await median();
    // The flood was there all the time, or the figure says nothing.
    expect(left).toBeGreaterThan(100);
    expect(beside / alone).toBeLessThan(3);
    await greedy.close();
    await flood.catch(() => {});
  });
});
