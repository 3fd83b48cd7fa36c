/** Each step of an HTTP fault program does what it says, seen by a plain HTTP client. */
import { describe, expect, it } from "@effect/vitest";
import { type HttpProgram, type HttpStep, type ScriptedHttp, startScriptedHttp } from "../../src/testing.ts";

const withServer = async (program: HttpProgram, use: (server: ScriptedHttp) => Promise<void>): Promise<void> => {
  const server = await startScriptedHttp(program);
  try {
    await use(server);
  } finally {
    await server[Symbol.asyncDispose]();
  }
};

const post = (server: ScriptedHttp, message: object, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(server.url, {
    method: "POST",
    redirect: "manual",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });

const get = (url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(url, { headers: { accept: "text/event-stream", ...headers } });

/** The blocks of an event stream. */
const blocks = async (response: Response): Promise<ReadonlyArray<string>> =>
  (await response.text()).split("\n\n").filter(Boolean);

/** Reads until `enough` holds, then lets go. */
const readUntil = async (response: Response, enough: (text: string) => boolean): Promise<string> => {
  const reader = response.body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (!enough(text)) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  await reader.cancel().catch(() => {});
  return text;
};

const call = (id: number, params: object = { name: "echo", arguments: { a: 1 } }) => ({
  id,
  method: "tools/call",
  params,
});
const calls = (...steps: ReadonlyArray<HttpStep>): HttpProgram => ({ sessions: false, on: { "tools/call": steps } });
const streamed = (...steps: ReadonlyArray<HttpStep>): HttpProgram => ({ ...calls(...steps), answers: "sse" });
const text = (value: string) => ({ content: [{ type: "text", text: value }] });

describe("an empty HTTP program", () => {
  it("is a polite server with sessions", () =>
    withServer({}, async (server) => {
      const opened = await post(server, { id: 1, method: "initialize", params: { protocolVersion: "2025-11-25" } });
      const session = { "mcp-session-id": opened.headers.get("mcp-session-id")! };
      expect((await opened.json()).result.protocolVersion).toBe("2025-11-25");
      expect((await post(server, { method: "notifications/initialized" }, session)).status).toBe(202);
      expect((await (await post(server, { id: 2, method: "tools/list" }, session)).json()).result.tools[0].name).toBe(
        "echo",
      );
      expect((await post(server, call(3))).status).toBe(404);
      expect((await (await post(server, call(4), session)).json()).result).toEqual(text('{"a":1}'));
      expect((await get(server.url, session)).status).toBe(405);
      expect((await fetch(server.url, { method: "DELETE", headers: session })).status).toBe(204);
      expect((await post(server, call(5), session)).status).toBe(404);
      expect(server.seen("tools/call").map(({ status }) => status)).toEqual([404, 200, 404]);
    }));

  it("speaks HTTP+SSE when told", () =>
    withServer({ kind: "sse" }, async (server) => {
      const stream = await get(server.url);
      const reader = stream.body!.getReader();
      const read = async () => new TextDecoder().decode((await reader.read()).value);
      const path = /^event: endpoint\ndata: (.*)\n\n$/.exec(await read())![1]!;
      const accepted = await fetch(server.origin + path, { method: "POST", body: JSON.stringify(call(1)) });
      expect(accepted.status).toBe(202);
      expect(await read()).toContain('"id":1,"result"');
      expect((await fetch(`${server.origin}/message?sessionId=other`, { method: "POST" })).status).toBe(404);
      await reader.cancel();
    }));

  it("opens with server/discover in the modern era", () =>
    withServer({ era: "modern" }, async (server) => {
      const { result } = await (await post(server, { id: 1, method: "server/discover" })).json();
      expect(result.supportedVersions).toEqual(["2026-07-28"]);
      expect((await (await post(server, { id: 2, method: "initialize" })).json()).error.code).toBe(-32_601);
    }));
});

describe("answers", () => {
  const answers: ReadonlyArray<readonly [string, HttpStep, unknown]> = [
    [
      "reply, with the request's own values",
      { reply: { to: "$id", of: "$params" } },
      { id: 7, result: { to: 7, of: { name: "x" } } },
    ],
    ["reply with another id", { reply: {}, id: "other" }, { id: "other", result: {} }],
    ["error", { error: { code: -1, message: "no" } }, { id: 7, error: { code: -1, message: "no" } }],
    ["echo", { echo: true }, { id: 7, result: text("{}") }],
    ["big", { big: 5, char: "ä" }, { id: 7, result: text("äääää") }],
    ["big, in pieces", { big: 100, drip: { size: 30 } }, { id: 7, result: text("x".repeat(100)) }],
    ["default", { default: true }, { id: 7, result: text("{}") }],
  ];
  it.each(answers)("%s", async (_name, step, expected) => {
    await withServer(calls(step), async (server) => {
      const response = await post(server, call(7, { name: "x" }));
      expect(response.headers.get("content-type")).toBe("application/json");
      expect(await response.json()).toEqual({ jsonrpc: "2.0", ...(expected as object) });
    });
    await withServer(streamed(step), async (server) => {
      const response = await post(server, call(7, { name: "x" }));
      expect(response.headers.get("content-type")).toBe("text/event-stream");
      const [block, ...more] = await blocks(response);
      expect(more).toEqual([]);
      expect(JSON.parse(block!.replace("event: message\ndata: ", ""))).toEqual({
        jsonrpc: "2.0",
        ...(expected as object),
      });
    });
  });

  it("comes twice, late, or beside other messages on a stream", () =>
    withServer(
      streamed({ notify: { method: "n" } }, { delay: 5 }, { echo: true }, { reply: {} }, { message: [1, "$id"] }),
      async (server) => {
        const data = (await blocks(await post(server, call(3)))).map((block) => JSON.parse(block.split("data: ")[1]!));
        expect(
          data.map((message) => message.method ?? message.result?.content?.length ?? message.result ?? message),
        ).toEqual(["n", 1, {}, [1, 3]]);
      },
    ));

  it("JSON holds one message: what comes beside goes to the standing stream", () =>
    withServer(
      { push: true, on: { "tools/call": [{ notify: { method: "beside" } }, { push: { also: "$id" } }] } },
      async (server) => {
        const opened = await post(server, { id: 1, method: "initialize", params: {} });
        const session = { "mcp-session-id": opened.headers.get("mcp-session-id")! };
        const stream = await get(server.url, session);
        expect((await (await post(server, call(2), session)).json()).id).toBe(2);
        const heard = await readUntil(stream, (so) => so.includes("also"));
        expect(heard).toContain('"method":"beside"');
        expect(heard).toContain('{"also":2}');
      },
    ));

  it("never: the answer stays open, with or without a head", async () => {
    await withServer(calls({ never: true }, { delay: 1 }), async (server) => {
      const asked = post(server, call(1)).then(
        () => "answered",
        () => "cut",
      );
      const after = post(server, { id: 2, method: "ping" });
      expect((await after).status).toBe(200);
      expect(server.seen("tools/call")[0]?.status).toBeUndefined();
      server.cut();
      expect(await asked).toBe("cut");
    });
    await withServer(streamed({ head: { "x-seen": "1" } }, { never: true }), async (server) => {
      const response = await post(server, call(1));
      expect(response.headers.get("x-seen")).toBe("1");
      server.cut();
      await expect(response.text()).rejects.toThrow();
    });
  });

  it("successive requests take successive steps, the last repeats", () =>
    withServer({ sessions: false, on: { "tools/call": [[{ status: 503 }], [{ echo: true }]] } }, async (server) => {
      for (const status of [503, 200, 200]) expect((await post(server, call(1))).status).toBe(status);
    }));

  it("hold waits for a release by another request", () =>
    withServer(
      { sessions: false, on: { "tools/call": [{ hold: "key" }], ping: [{ release: "key" }] } },
      async (server) => {
        const held = post(server, call(1));
        await post(server, { id: 2, method: "ping" });
        expect((await held).status).toBe(200);
      },
    ));
});

describe("HTTP", () => {
  it("status, with body and headers, also for notifications", () =>
    withServer(
      { sessions: false, on: { n: [{ status: 429, body: "slow down", headers: { "retry-after": "2" } }] } },
      async (server) => {
        const response = await post(server, { method: "n" });
        expect([response.status, response.headers.get("retry-after"), await response.text()]).toEqual([
          429,
          "2",
          "slow down",
        ]);
      },
    ));

  it("what comes after the answer is too late, and harms nothing", async () => {
    const late: ReadonlyArray<HttpStep> = [{ head: {} }, { raw: "x" }, { status: 500 }, { echo: true }, { end: true }];
    for (const first of [{ status: 202 }, { echo: true }, { end: true }] as ReadonlyArray<HttpStep>)
      for (const step of late)
        await withServer(calls(first, step, { default: true }), async (server) => {
          expect((await post(server, call(1))).ok).toBe(true);
          expect((await post(server, { id: 2, method: "ping" })).status).toBe(200);
        });
  });

  it("redirect", () =>
    withServer(calls({ redirect: "/elsewhere", status: 308 }), async (server) => {
      const response = await post(server, call(1));
      expect([response.status, response.headers.get("location")]).toEqual([308, "/elsewhere"]);
      await response.body?.cancel();
    }));

  it("head: a wrong content type", () =>
    withServer(calls({ head: { "content-type": "text/html" } }, { echo: true }), async (server) => {
      const response = await post(server, call(1));
      expect(response.headers.get("content-type")).toBe("text/html");
      expect((await response.json()).id).toBe(1);
    }));

  it("headFlood: a head of that size", () =>
    withServer(calls({ headFlood: 6000 }, { echo: true }), async (server) => {
      const response = await post(server, call(1));
      const size = [...response.headers].reduce((sum, [name, value]) => sum + name.length + value.length + 4, 0);
      expect(size).toBeGreaterThan(5000);
    }));

  it("raw and bytes: a body as it is", () =>
    withServer(
      calls({ raw: '{"id":$id,' }, { bytes: btoa('"x":1}'), drip: { size: 2 } }, { end: true }),
      async (server) => {
        expect(await (await post(server, call(9))).text()).toBe('{"id":9,"x":1}');
      },
    ));

  it("drop: before the head, after it, within the body", async () => {
    await withServer(calls({ drop: true }), (server) => expect(post(server, call(1))).rejects.toThrow());
    for (const before of [{ head: {} }, { raw: '{"jsonrpc"' }] as ReadonlyArray<HttpStep>)
      await withServer(calls(before, { delay: 5 }, { drop: true }), async (server) => {
        const response = await post(server, call(1));
        expect(response.status).toBe(200);
        await expect(response.text()).rejects.toThrow();
      });
  });

  it("end: an answer without a message", async () => {
    await withServer(calls({ end: true }), async (server) => {
      expect(await (await post(server, call(1))).text()).toBe("");
    });
    await withServer(streamed({ notify: { method: "n" } }, { end: true }, { echo: true }), async (server) => {
      expect(await blocks(await post(server, call(1)))).toHaveLength(1);
    });
  });

  it("repeat: a flood of events or comments, until the client lets go", async () => {
    await withServer(streamed({ repeat: 100, steps: [{ notify: { method: "n" } }] }), async (server) => {
      expect(await blocks(await post(server, call(1)))).toHaveLength(101);
    });
    await withServer(streamed({ repeat: 1e9, steps: [{ raw: ": alive\n\n" }] }), async (server) => {
      const text = await readUntil(await post(server, call(1)), (so) => so.length > 100_000);
      expect(text.startsWith(": alive\n\n: alive\n\n")).toBe(true);
    });
  });
});

it("many floods into one stream that nobody reads wait without a warning", async () => {
  const warnings: Array<Error> = [];
  const listener = (warning: Error) => void warnings.push(warning);
  process.on("warning", listener);
  await withServer(
    { kind: "sse", on: { "tools/call": [{ repeat: 1e9, steps: [{ raw: "x".repeat(100_000) }] }] } },
    async (server) => {
      const stream = await get(server.url);
      await expect.poll(() => server.streams.size).toBe(1);
      const [session] = server.streams.keys();
      const to = `${server.origin}/message?sessionId=${session}`;
      const sent = Array.from({ length: 20 }, (_, id) => fetch(to, { method: "POST", body: JSON.stringify(call(id)) }));
      for (const accepted of await Promise.all(sent)) expect(accepted.status).toBe(202);
      await post(server, { id: 99, method: "ping" }, {});
      await stream.body!.cancel();
    },
  );
  process.off("warning", listener);
  expect(warnings.filter(({ name }) => name === "MaxListenersExceededWarning")).toEqual([]);
});

describe("sessions and streams", () => {
  const opening = async (server: ScriptedHttp) => {
    const opened = await post(server, { id: 1, method: "initialize", params: {} });
    await opened.text();
    return { "mcp-session-id": opened.headers.get("mcp-session-id")! };
  };

  it("forget: a live session is answered 404", () =>
    withServer({ on: { "tools/call": [{ forget: true }] } }, async (server) => {
      const session = await opening(server);
      expect((await post(server, call(2), session)).status).toBe(200);
      expect((await post(server, call(3), session)).status).toBe(404);
    }));

  it("cut: the standing stream of the session ends, the answer comes", () =>
    withServer({ push: true, on: { "tools/call": [{ cut: true }] } }, async (server) => {
      const session = await opening(server);
      const stream = await get(server.url, session);
      expect((await post(server, call(2), session)).status).toBe(200);
      await expect(stream.text()).rejects.toThrow();
    }));

  it("restart: sessions are forgotten, every connection is cut", () =>
    withServer({ push: true, on: { "tools/call": [{ restart: true }] } }, async (server) => {
      const session = await opening(server);
      const stream = await get(server.url, session);
      await expect(post(server, call(2), session)).rejects.toThrow();
      await expect(stream.text()).rejects.toThrow();
      expect((await post(server, call(3), session)).status).toBe(404);
    }));

  it("a stream that closed is resumed after its event, in the name of the first request", () =>
    withServer(
      {
        ...streamed({ event: { id: "e-$id", retry: 5, data: "" } }, { end: true }),
        on: {
          "tools/call": [{ event: { id: "e-$id", retry: 5, data: "" } }, { end: true }],
          resume: [[{ event: { id: "f-$id", data: { half: "$id" } } }, { end: true }], [{ reply: { of: "$id" } }]],
        },
      },
      async (server) => {
        expect(await (await post(server, call(8))).text()).toBe("id: e-8\nretry: 5\ndata: \n\n");
        expect(await blocks(await get(server.url, { "last-event-id": "e-8" }))).toEqual(['id: f-8\ndata: {"half":8}']);
        const [last] = await blocks(await get(server.url, { "last-event-id": "f-8" }));
        expect(last).toContain('"id":8,"result":{"of":8}');
      },
    ));

  it("HTTP+SSE: messages go to the standing stream, drop cuts the post alone", () =>
    withServer(
      { kind: "sse", on: { "tools/call": [[{ drop: true }], [{ delay: 1 }, { echo: true }, { echo: true }]] } },
      async (server) => {
        const stream = await get(server.url);
        const first = stream.body!.getReader();
        const path = /data: (.*)/.exec(new TextDecoder().decode((await first.read()).value))![1]!;
        first.releaseLock();
        const send = () => fetch(server.origin + path, { method: "POST", body: JSON.stringify(call(2)) });
        await expect(send()).rejects.toThrow();
        expect((await send()).status).toBe(202);
        const heard = await readUntil(stream, (so) => so.split("data:").length > 2);
        expect(heard.match(/"id":2/g)).toHaveLength(2);
      },
    ));

  it("the end of the server ends what its steps wait for", async () => {
    const server = await startScriptedHttp(calls({ delay: 600_000 }, { forget: true }));
    const asked = post(server, call(1)).then(
      () => "answered",
      () => "cut",
    );
    await post(server, { id: 2, method: "ping" });
    server.sessions.add("s");
    await server[Symbol.asyncDispose]();
    expect(await asked).toBe("cut");
    await expect.poll(() => server.sessions.size).toBe(0);
  });
});
