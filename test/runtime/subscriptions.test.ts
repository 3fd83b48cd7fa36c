/** Who hears of changed resources, and for how long. */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import {
  ListToolsRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { describe, expect, it } from "@effect/vitest";
import { createRuntime, InMemoryEndpoint, type McpEvent, type McpRuntime, ports } from "../../src/mod.ts";
import { until } from "../support/stdio-pids.ts";

const uri = "file:///a.txt";
const other = "file:///b.txt";

/** A runtime with a short idle time, and a server that keeps a diary of its subscriptions. */
const world = async () => {
  const diary: Array<string> = [];
  /** While there is one, the server answers no subscription before it is let. */
  let gate: Array<() => void> | undefined;
  const events: Array<McpEvent> = [];
  let server: Server | undefined;
  const connect = (transport: Parameters<Server["connect"]>[0]): Promise<void> => {
    const own = (server = new Server(
      { name: "files", version: "1" },
      { capabilities: { tools: {}, resources: { subscribe: true } } },
    ));
    own.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [] }));
    own.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
      diary.push(`+ ${params.uri}`);
      return gate ? new Promise<{}>((resolve) => gate!.push(() => resolve({}))) : {};
    });
    own.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
      diary.push(`- ${params.uri}`);
      return {};
    });
    return own.connect(transport);
  };
  const runtime: McpRuntime = await createRuntime({
    settings: { idleTimeout: 20 },
    setup: (c) => c.registerInstance(ports.observers.token, { on: (event: McpEvent) => void events.push(event) }),
  });
  const endpoint = new InMemoryEndpoint({ name: "files", connect });
  return {
    runtime,
    diary,
    /** Answers of the server that are held from now on; each is given by its call. */
    holdAnswers: (): ReadonlyArray<() => void> => (gate = []),
    open: () => runtime.client(endpoint),
    evicted: () => events.filter(({ type }) => type === "evicted").length,
    update: (of: string) => server!.sendResourceUpdated({ uri: of }),
    [Symbol.asyncDispose]: runtime.close,
  };
};

describe("resource subscriptions", () => {
  it("keep the client awake while they are open; giving it back ends them, and it may sleep", async () => {
    await using files = await world();
    const client = await files.open();
    let heard = 0;
    client.onNotification((method, params) => {
      if (method === "notifications/resources/updated" && params["uri"] === uri) heard++;
    });
    await client.subscribeResource(uri);
    // Many idle times pass without a call.
    const since = performance.now();
    await until("many idle times have passed", () => performance.now() - since > 200);
    expect(files.evicted()).toBe(0);
    await files.update(uri);
    await until("it is heard", () => heard === 1);
    await client.close();
    await until("it is evicted", () => files.evicted() === 1);
    expect(files.diary).toEqual([`+ ${uri}`, `- ${uri}`]);
  });

  it("belong to who made them: one borrower's end takes nothing from another", async () => {
    await using files = await world();
    const [one, two] = await Promise.all([files.open(), files.open()]);
    const heard: Array<string> = [];
    two.onNotification((method) => void (method === "notifications/resources/updated" && heard.push("two")));
    for (const client of [one, two]) await client.subscribeResource(uri);
    await one.subscribeResource(other);
    await one.subscribeResource(other);
    await one.close();
    await until("its own is ended", () => files.diary.includes(`- ${other}`));
    await files.update(uri);
    await until("the other one hears", () => heard.length > 0);
    expect(heard).toEqual(["two"]);
    await one.unsubscribeResource(uri).catch(() => {});
    expect(files.diary).not.toContain(`- ${uri}`);
    await two.unsubscribeResource(uri);
    expect(files.diary.filter((line) => line === `- ${uri}`)).toHaveLength(1);
    await two.close();
  });

  it("of one borrower that ends does not end that of another which is just being made", async () => {
    await using files = await world();
    const [one, two] = await Promise.all([files.open(), files.open()]);
    const answers = files.holdAnswers();
    const [first, second] = [one.subscribeResource(uri), two.subscribeResource(uri)];
    await until("the server knows of both", () => answers.length === 2);
    answers[0]!();
    await first;
    await one.unsubscribeResource(uri);
    answers[1]!();
    await second;
    expect(files.diary).toEqual([`+ ${uri}`, `+ ${uri}`]);
    await two.unsubscribeResource(uri);
    expect(files.diary.at(-1)).toBe(`- ${uri}`);
    await Promise.all([one.close(), two.close()]);
  });

  it("that fail count for nobody, and keep none at the server", async () => {
    await using files = await world();
    const [one, two] = await Promise.all([files.open(), files.open()]);
    await one.subscribeResource(uri);
    files.holdAnswers();
    await expect(two.subscribeResource(uri, { timeout: 50 })).rejects.toMatchObject({ _tag: "RequestTimeout" });
    await one.unsubscribeResource(uri);
    expect(files.diary).toEqual([`+ ${uri}`, `+ ${uri}`, `- ${uri}`]);
    await Promise.all([one.close(), two.close()]);
  });
});
