/** What becomes of a call whose client lost the response's stream: MCP 2025-11-25, basic/transports. */
import { rm } from "node:fs/promises";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { makeResumption } from "../../../src/plugins/serving/resumption.ts";
import { until } from "../../support/stdio-pids.ts";
import { attach, folder, listening, seen } from "./gateway-with.ts";

afterAll(() => rm(folder, { recursive: true }));

/** A client that holds its connections in its hands. */
const openSession = async (url: string, protocolVersion: string) => {
  const headers: Record<string, string> = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
    "mcp-protocol-version": protocolVersion,
  };
  const post = (body: object, signal?: AbortSignal): Promise<Response> =>
    fetch(url, {
      method: "POST",
      headers,
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
      ...(signal && { signal }),
    });
  const clientInfo = { name: "raw", version: "1" };
  const hello = await post({ id: 0, method: "initialize", params: { protocolVersion, capabilities: {}, clientInfo } });
  headers["mcp-session-id"] = hello.headers.get("mcp-session-id")!;
  await hello.text();
  await (await post({ method: "notifications/initialized" })).text();

  /** Calls a tool and reads the stream's first piece; `cut` ends the connection. */
  const call = async (id: number, name: string) => {
    const stop = new AbortController();
    const response = await post({ id, method: "tools/call", params: { name } }, stop.signal);
    const reader = response.body!.getReader();
    const first = new TextDecoder().decode((await reader.read()).value);
    const eventId = /^id: (\S+)$/m.exec(first)?.[1];
    const cut = (): void => {
      reader.read().catch(() => {});
      stop.abort();
    };
    return { eventId, first, cut };
  };
  const resume = async (eventId: string): Promise<Response> =>
    fetch(url, { headers: { ...headers, accept: "text/event-stream", "last-event-id": eventId } });
  return { post, call, resume };
};

/** The JSON-RPC messages of an event stream that ends. */
const messagesOf = async (response: Response): Promise<ReadonlyArray<any>> =>
  [...(await response.text()).matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data!));

describe("a client that lost the stream of a response", () => {
  it("finds its way: the first event opens the stream and says when to come back", async () => {
    await using served = await listening();
    await attach(served.gateway, "way", { on: { "tools/call": [{ hold: "go" }] } });
    const one = await openSession(served.url, "2025-11-25");
    const { first, cut } = await one.call(1, "way__echo");
    expect(first).toMatch(/^id: \S+\nretry: 1000\ndata: \n\n$/);
    cut();
  });

  it("comes back before the answer: the call went on, and is answered on the new stream", async () => {
    await using served = await listening();
    const go = { "tools/call": [{ hold: "go" }], ping: [{ release: "go" }] };
    await attach(served.gateway, "before", { on: go });
    const one = await openSession(served.url, "2025-11-25");
    const { eventId, cut } = await one.call(1, "before__echo");
    await until("the call arrived", () => seen("before", "tools/call") === 1);
    cut();
    const resumed = await one.resume(eventId!);
    expect(resumed.status).toBe(200);
    await (await served.gateway.runtime.client(served.gateway.runtime.connectors()[0]!.endpoint)).ping();
    const [answer] = await messagesOf(resumed);
    expect([answer.id, answer.result.content[0].text]).toEqual([1, "{}"]);
    expect(seen("before", "notifications/cancelled")).toBe(0);
  });

  it("comes back after the answer: it is kept, and the stream ends with it", async () => {
    await using served = await listening();
    await attach(served.gateway, "after", { on: { "tools/call": [{ hold: "go" }], ping: [{ release: "go" }] } });
    const one = await openSession(served.url, "2025-11-25");
    const { eventId, cut } = await one.call(7, "after__echo");
    await until("the call arrived", () => seen("after", "tools/call") === 1);
    cut();
    const { runtime } = served.gateway;
    await (await runtime.client(runtime.connectors()[0]!.endpoint)).ping();
    const isFree = async () => (await runtime.health()).gates.find(({ name }) => name === "mcp:after")?.used === 0;
    while (!(await isFree()));
    const [answer] = await messagesOf(await one.resume(eventId!));
    expect([answer.id, answer.result.content[0].text]).toEqual([7, "{}"]);
    expect(seen("after", "tools/call")).toBe(1);
  });

  it("does not come back: its call is cancelled, and its event is not known any more", async () => {
    await using served = await listening({}, { resumeWithin: 50 });
    await attach(served.gateway, "never", { on: { "tools/call": [{ never: true }] } });
    const one = await openSession(served.url, "2025-11-25");
    const { eventId, cut } = await one.call(1, "never__echo");
    await until("the call arrived", () => seen("never", "tools/call") === 1);
    cut();
    await until("the server was told", () => seen("never", "notifications/cancelled") === 1);
    expect((await one.resume(eventId!)).status).toBe(400);
    expect((await one.resume("made-up")).status).toBe(400);
  });

  it("of an earlier revision has no way back: its call is cancelled at once", async () => {
    await using served = await listening({}, { resumeWithin: "1 hour" });
    await attach(served.gateway, "early", {
      on: {
        "tools/call": [
          { notify: { method: "notifications/progress", params: { progressToken: "t" } } },
          { never: true },
        ],
      },
    });
    const one = await openSession(served.url, "2025-06-18");
    const stop = new AbortController();
    const call = one.post({ id: 1, method: "tools/call", params: { name: "early__echo" } }, stop.signal);
    const response = await call;
    await until("the call arrived", () => seen("early", "tools/call") === 1);
    stop.abort();
    await response.text().catch(() => {});
    await until("the server was told", () => seen("early", "notifications/cancelled") === 1);
  });
});

describe("kept events", () => {
  const note = (n: number) => ({ jsonrpc: "2.0" as const, method: "notifications/n", params: { n } });
  const replayed = async (resumption: ReturnType<typeof makeResumption>, eventId: string) => {
    const found: Array<unknown> = [];
    await resumption.events.replayEventsAfter(eventId, { send: async (_id, message) => void found.push(message) });
    return found;
  };

  it("stay for a while after the stream was read to its end, and go with the session", async () => {
    const resumption = makeResumption(20);
    const a = await resumption.events.storeEvent("a", {} as never);
    const b = await resumption.events.storeEvent("b", {} as never);
    let lost = 0;
    const done = resumption.reads(a, () => lost++);
    await resumption.events.storeEvent("a", note(1));
    await resumption.events.storeEvent("b", note(2));
    done(false);
    expect(await replayed(resumption, a)).toEqual([note(1)]);
    await until("the stream is forgotten", () => resumption.streamOf(a) === undefined);
    expect(lost).toBe(1);
    expect(await replayed(resumption, b)).toEqual([note(2)]);
    resumption.close();
    expect(resumption.streamOf(b)).toBeUndefined();
  });

  it("are bounded: the oldest stream is forgotten whole, the standing one from its start", async () => {
    const resumption = makeResumption(1_000);
    const first = await resumption.events.storeEvent("_GET_stream", note(0));
    const a = await resumption.events.storeEvent("a", {} as never);
    await resumption.events.storeEvent("a", note(1));
    for (let n = 2; n < 1_100; n++) await resumption.events.storeEvent("_GET_stream", note(n));
    expect((await replayed(resumption, first)).length).toBeLessThanOrEqual(1_000);
    expect((await replayed(resumption, first)).at(-1)).toEqual(note(1_099));
    expect(await replayed(resumption, a)).toEqual([note(1)]);
    await resumption.events.storeEvent("b", {} as never);
    await resumption.events.storeEvent("b", { ...note(3), params: { text: "x".repeat(17 * 1024 * 1024) } });
    expect(resumption.streamOf("b~0")).toBeUndefined();
    resumption.close();
  });
});
