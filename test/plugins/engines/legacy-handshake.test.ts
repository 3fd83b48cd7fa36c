import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "@effect/vitest";
import { StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Cancelled, HttpFailed, Unauthorized } from "../../../src/core/errors.ts";
import { legacyEngine } from "../../../src/plugins/engines/legacy.ts";
import { connectEngine, type Message, newHeard, rawPeer, rejection, welcomeResult } from "../../support/engine-peer.ts";
import { nodeBinary } from "../../support/node-binary.ts";

const VERSIONS = ["2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const NEWEST = "2025-11-25";

/** Connects to a peer that treats the first `initialize` as told. */
const meet = async (first: (peer: ReturnType<typeof rawPeer>, hello: Message) => void, given = {}) => {
  const peer = rawPeer();
  const outcome = connectEngine(legacyEngine, peer.transport, given).then(
    (connected) => ({ connected, error: undefined }),
    (error) => ({ connected: undefined, error }),
  );
  first(peer, await peer.next("initialize"));
  return { peer, outcome };
};

describe("the legacy handshake", () => {
  it("offers the newest version, then says it is initialized", async () => {
    const peer = rawPeer();
    const [{ session }, hello] = await Promise.all([connectEngine(legacyEngine, peer.transport), peer.welcome()]);
    expect(hello["params"]).toEqual({
      protocolVersion: NEWEST,
      capabilities: {},
      clientInfo: { name: "test-host", version: "1.0.0" },
    });
    expect(session.serverInfo).toEqual({ name: "peer", version: "1.2.3" });
    expect(session.era).toBe("legacy");
    expect(peer.sent.map((message) => message["method"])).toEqual(["initialize", "notifications/initialized"]);
  });

  it.each(VERSIONS)("C-016 (a): accepts a server of %s and sets it on the transport", async (version) => {
    const { peer, outcome } = await meet((peer, hello) =>
      peer.say({ jsonrpc: "2.0", id: hello["id"], result: welcomeResult(version) }),
    );
    const { connected } = await outcome;
    expect(connected?.session.protocolVersion).toBe(version);
    expect(peer.versions).toEqual([version]);
  });

  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: null,
    error: {
      code: -32000,
      message: `Bad Request: Unsupported protocol version: ${NEWEST} (supported versions: 2025-03-26, 2024-11-05)`,
    },
  });
  const refusals: ReadonlyArray<readonly [string, unknown]> = [
    ["HttpFailed", new HttpFailed({ server: "peer", status: 400, reason: body })],
    [
      "HttpFailed whose cause has the body",
      new HttpFailed({ server: "peer", status: 400, reason: "Bad Request" }, body),
    ],
    ["the SDK's error", new StreamableHTTPError(400, `Error POSTing to endpoint: ${body}`)],
  ];
  it.each(refusals)("C-016 (b): retries once with the best common version after HTTP 400 as %s", async (_, refusal) => {
    const peer = rawPeer();
    peer.refuse = (message) => (message["params"]?.protocolVersion === NEWEST ? refusal : undefined);
    const [{ session }, hello] = await Promise.all([connectEngine(legacyEngine, peer.transport), peer.welcome()]);
    expect(hello["params"].protocolVersion).toBe("2025-03-26");
    expect(session.protocolVersion).toBe("2025-03-26");
    expect(peer.sent).toHaveLength(2);
  });

  it("C-016 (b): retries after the same refusal as an error with the id null", async () => {
    const { peer, outcome } = await meet((peer) => peer.say(JSON.parse(body)));
    expect((await peer.welcome())["params"].protocolVersion).toBe("2025-03-26");
    expect((await outcome).connected?.session.protocolVersion).toBe("2025-03-26");
  });

  const refuse = (peer: ReturnType<typeof rawPeer>, hello: Message, supported: ReadonlyArray<string>) =>
    peer.say({
      jsonrpc: "2.0",
      id: hello["id"],
      error: { code: -32602, message: "Unsupported protocol version", data: { supported, requested: NEWEST } },
    });

  it("C-016 (c): retries once with the best common version of data.supported", async () => {
    const { peer, outcome } = await meet((peer, hello) =>
      refuse(peer, hello, ["1999-01-01", "2024-11-05", "2025-06-18"]),
    );
    const again = await peer.welcome();
    expect(again["params"].protocolVersion).toBe("2025-06-18");
    expect(again["id"]).not.toBe(peer.sent[0]!["id"]);
    expect((await outcome).connected?.session.protocolVersion).toBe("2025-06-18");
    expect(peer.versions).toEqual(["2025-06-18"]);
  });

  it("C-016 (c): does not retry twice", async () => {
    const { peer, outcome } = await meet((peer, hello) => refuse(peer, hello, ["2025-06-18"]));
    refuse(peer, await peer.next("initialize"), ["2025-03-26"]);
    const { error } = await outcome;
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "handshake" });
    expect(peer.sent).toHaveLength(2);
  });

  it("C-016 (d): an unknown version ends with both sides' versions", async () => {
    const { peer, outcome } = await meet((peer, hello) =>
      peer.say({ jsonrpc: "2.0", id: hello["id"], result: welcomeResult("2031-01-01") }),
    );
    const { error } = await outcome;
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "handshake", server: "peer", endpointId: "test:peer" });
    for (const version of ["2031-01-01", ...VERSIONS]) expect(error.message).toContain(version);
    expect(peer.versions).toEqual([]);
    expect(peer.sent).toHaveLength(1);
  });

  it("C-016 (d): no common version in data.supported ends with both sides' versions", async () => {
    const { outcome } = await meet((peer, hello) => refuse(peer, hello, ["2031-01-01", "2032-02-02"]));
    const { error } = await outcome;
    expect(error._tag).toBe("ConnectFailed");
    for (const version of ["2031-01-01", "2032-02-02", NEWEST]) expect(error.message).toContain(version);
  });

  it("an ordinary refusal is a ConnectFailed whose cause is the server's error", async () => {
    const { peer, outcome } = await meet((peer, hello) =>
      peer.say({ jsonrpc: "2.0", id: hello["id"], error: { code: -32601, message: "Method not found" } }),
    );
    const { error } = await outcome;
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "handshake" });
    expect(error.cause).toMatchObject({ _tag: "ProtocolError", code: -32601 });
    expect(peer.sent).toHaveLength(1);
  });

  it.each([
    ["null", null],
    ["a text", "hello"],
    ["a list", [1]],
    ["an object without version", { capabilities: {}, serverInfo: { name: "x", version: "1" } }],
    ["a version that is no text", { ...welcomeResult("x"), protocolVersion: 7 }],
  ])("answering initialize with %s is a ConnectFailed", async (_, result) => {
    const { outcome } = await meet((peer, hello) => peer.say({ jsonrpc: "2.0", id: hello["id"], result }));
    const { error } = await outcome;
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "handshake" });
    expect(error.message).toContain("its answer to initialize");
  });

  it("tolerates missing serverInfo and capabilities with a diagnostic", async () => {
    const heard = newHeard();
    const { outcome } = await meet(
      (peer, hello) =>
        peer.say({
          jsonrpc: "2.0",
          id: hello["id"],
          result: { protocolVersion: NEWEST, serverInfo: null, instructions: 5 },
        }),
      { heard },
    );
    const { connected } = await outcome;
    expect(connected?.session).toMatchObject({
      serverInfo: { name: "peer", version: "unknown" },
      capabilities: {},
      instructions: undefined,
    });
    expect(heard.diagnostics).toHaveLength(2);
  });

  it("keeps instructions and what else the server says of itself", async () => {
    const result = {
      ...welcomeResult(NEWEST),
      instructions: "Be kind.",
      serverInfo: { name: "s", version: "2", title: "S", websiteUrl: "https://s.example" },
      capabilities: { tools: { listChanged: true }, experimental: { x: {} } },
    };
    const { outcome } = await meet((peer, hello) => peer.say({ jsonrpc: "2.0", id: hello["id"], result }));
    const { connected } = await outcome;
    expect(connected?.session.instructions).toBe("Be kind.");
    expect(connected?.session.serverInfo).toEqual(result.serverInfo);
    expect(connected?.session.capabilities).toEqual(result.capabilities);
  });

  it("a server that exits at once: exit code and stderr are told", async () => {
    const { outcome } = await meet((peer) => {
      peer.end = { exitCode: 3, stderrTail: "no such module" };
      peer.hangUp();
    });
    const { error } = await outcome;
    expect(error).toMatchObject({
      _tag: "ConnectFailed",
      phase: "handshake",
      exitCode: 3,
      stderrTail: "no such module",
    });
    expect(error.message).toContain("it ended before it answered initialize");
  });

  it("a server that never answers", async () => {
    const controller = new AbortController();
    const { peer, outcome } = await meet(() => controller.abort(), { signal: controller.signal });
    const { error } = await outcome;
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "handshake" });
    expect(error.message).toContain("it never answered initialize");
    expect(error.elapsed).toBeGreaterThanOrEqual(0);
    expect(peer.sent.map((message) => message["method"])).toEqual(["initialize"]);
  });

  it("a server that speaks garbage", async () => {
    const controller = new AbortController();
    const { outcome } = await meet(
      (peer) => {
        peer.say("Listening on port 3000");
        peer.say({ level: "info" });
        controller.abort();
      },
      { signal: controller.signal },
    );
    const { error } = await outcome;
    expect(error._tag).toBe("ConnectFailed");
    expect(error.message).toContain("what it sent is not MCP");
  });

  it("a signal with an error of ours rejects with it, one aborted before sends nothing", async () => {
    const reason = new Cancelled({ reason: "nobody waits" });
    const peer = rawPeer();
    expect(await rejection(connectEngine(legacyEngine, peer.transport, { signal: AbortSignal.abort(reason) }))).toBe(
      reason,
    );
    expect(peer.sent).toEqual([]);
  });

  it("a transport that does not start in time ends with the signal", async () => {
    const peer = rawPeer();
    const transport = { ...peer.transport, start: () => new Promise<void>(() => {}) };
    const controller = new AbortController();
    const failed = rejection(connectEngine(legacyEngine, transport, { signal: controller.signal }));
    controller.abort();
    expect(await failed).toMatchObject({ _tag: "ConnectFailed" });
  });

  it("a transport that cannot start is a ConnectFailed in phase transport", async () => {
    const transport = { ...rawPeer().transport, start: () => Promise.reject(new Error("no route")) };
    const error = await rejection(connectEngine(legacyEngine, transport));
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "transport", reason: "no route" });
  });

  it("a transport that rejects with something untyped is a ConnectFailed with the process's facts", async () => {
    const peer = rawPeer();
    peer.end = { stderrTail: "boom" };
    peer.refuse = () => new Error("odd");
    const error = await rejection(connectEngine(legacyEngine, peer.transport));
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "transport", reason: "odd", stderrTail: "boom" });
  });

  it("typed errors of the transport stay as they are", async () => {
    const unauthorized = new Unauthorized({ server: "peer", reason: "unauthenticated" });
    const peer = rawPeer();
    peer.refuse = () => unauthorized;
    expect(await rejection(connectEngine(legacyEngine, peer.transport))).toBe(unauthorized);
  });

  it("a failed handshake is not reported as a close", async () => {
    const heard = newHeard();
    const { peer, outcome } = await meet((peer) => peer.hangUp(), { heard });
    expect((await outcome).error._tag).toBe("ConnectFailed");
    peer.hangUp();
    expect(heard.closed).toEqual([]);
  });

  it("the plugin value is light: the SDK is not loaded before a connect", async () => {
    const script = `
      import { registerHooks } from "node:module";
      const urls = [];
      registerHooks({ resolve: (s, c, next) => { const r = next(s, c); urls.push(r.url); return r; } });
      const { legacyEngine } = await import(process.argv[1]);
      console.log(legacyEngine.era, urls.length > 2, urls.some((url) => url.includes("@modelcontextprotocol")));`;
    const engine = new URL("../../../src/plugins/engines/legacy.ts", import.meta.url).href;
    const { stdout } = await promisify(execFile)(nodeBinary, ["--input-type=module", "-e", script, engine]);
    expect(stdout.trim()).toBe("legacy true false");
  });
});
