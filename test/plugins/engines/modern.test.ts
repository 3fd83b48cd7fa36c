import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { describe, expect, it } from "@effect/vitest";
import type { HostHandlers } from "../../../src/core/contracts.ts";
import { Cancelled, ConnectionLost, HttpFailed, Unauthorized } from "../../../src/core/errors.ts";
import { modernEngine } from "../../../src/plugins/engines/modern.ts";
import {
  type Connected,
  connectEngine,
  type Given,
  type Message,
  newHeard,
  type RawPeer,
  rawPeer,
  rejection,
} from "../../support/engine-peer.ts";
import { nodeBinary } from "../../support/node-binary.ts";

const VERSION = "2026-07-28";
const KEY = "io.modelcontextprotocol/";

const discovered = (more: Message = {}): Message => ({
  resultType: "complete",
  supportedVersions: [VERSION],
  capabilities: { tools: {} },
  _meta: { [`${KEY}serverInfo`]: { name: "peer", version: "1.2.3" } },
  ...more,
});

const answer = (peer: RawPeer, asked: Message, result: unknown): void =>
  peer.say({ jsonrpc: "2.0", id: asked["id"], result });
const refuse = (peer: RawPeer, asked: Message, error: unknown): void =>
  peer.say({ jsonrpc: "2.0", id: asked["id"], error });

/** A session past `server/discover`. */
const met = async (result: Message = discovered(), given: Given = {}): Promise<Connected & { peer: RawPeer }> => {
  const peer = rawPeer();
  const connecting = connectEngine(modernEngine, peer.transport, given);
  answer(peer, await peer.next("server/discover"), result);
  return { ...(await connecting), peer };
};

/** How a connect ends when the peer treats each `server/discover` as told, in turn. */
const outcome = async (...turns: ReadonlyArray<(peer: RawPeer, asked: Message) => void>) => {
  const peer = rawPeer();
  const connecting = rejection(connectEngine(modernEngine, peer.transport));
  for (const turn of turns) turn(peer, await peer.next("server/discover"));
  return connecting;
};

const unsupported = (supported: unknown) => (peer: RawPeer, asked: Message) =>
  refuse(peer, asked, { code: -32_022, message: "Unsupported protocol version", data: { supported } });

describe("server/discover", () => {
  it("is all that opens a session, and carries who asks in which revision", async () => {
    const handlers: HostHandlers = { roots: () => [], elicitation: { form: () => ({ action: "decline" }) } };
    const { session, peer } = await met(discovered({ instructions: "Be kind." }), { handlers });
    expect(peer.sent).toHaveLength(1);
    expect(peer.sent[0]!["params"]).toEqual({
      _meta: {
        [`${KEY}protocolVersion`]: VERSION,
        [`${KEY}clientInfo`]: { name: "test-host", version: "1.0.0" },
        [`${KEY}clientCapabilities`]: { roots: {}, elicitation: { form: {} } },
      },
    });
    expect(session).toMatchObject({
      era: "modern",
      protocolVersion: VERSION,
      serverInfo: { name: "peer", version: "1.2.3" },
      capabilities: { tools: {} },
      instructions: "Be kind.",
    });
    expect(peer.versions).toEqual([VERSION]);
  });

  it("takes the server's name from the body too, and its label where it has none", async () => {
    const body = await met({ ...discovered({ serverInfo: { name: "old", version: "1" } }), _meta: undefined });
    expect(body.session.serverInfo).toEqual({ name: "old", version: "1" });
    const none = await met({ supportedVersions: [VERSION] });
    expect(none.session.serverInfo).toEqual({ name: "peer", version: "unknown" });
    expect(none.session.capabilities).toEqual({});
    expect(none.diagnostics).toHaveLength(2);
  });

  it("asks again once when a refusal lists a revision in common", async () => {
    const peer = rawPeer();
    const connecting = connectEngine(modernEngine, peer.transport);
    unsupported(["2031-01-01", VERSION])(peer, await peer.next("server/discover"));
    answer(peer, await peer.next("server/discover"), discovered());
    expect((await connecting).session.protocolVersion).toBe(VERSION);
    expect(await outcome(unsupported([VERSION]), unsupported([VERSION]))).toMatchObject({ phase: "handshake" });
  });

  it("fails when no revision is in common, naming both sides", async () => {
    const error = await outcome((peer, asked) =>
      answer(peer, asked, discovered({ supportedVersions: ["2031-01-01"] })),
    );
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "negotiate" });
    expect(error.message).toContain("2031-01-01");
    expect(error.message).toContain(VERSION);
  });

  it.each([[{}], [null], [{ supportedVersions: VERSION }], ["text"]])(
    "an answer that is no DiscoverResult, %j, says that this is no modern server",
    async (result) => {
      const error = await outcome((peer, asked) => answer(peer, asked, result));
      expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "negotiate" });
    },
  );

  it("tells apart refusal, loss, and errors that are exact already", async () => {
    const refused = await outcome((peer, asked) => refuse(peer, asked, { code: -32_601, message: "Method not found" }));
    expect(refused).toMatchObject({ _tag: "ConnectFailed", phase: "handshake", cause: { code: -32_601 } });
    const lost = await outcome((peer) => peer.hangUp());
    expect(lost).toMatchObject({ _tag: "ConnectFailed", cause: { _tag: "ConnectionLost" } });
    const exact = new Unauthorized({ server: "peer", reason: "unauthenticated" });
    expect(await outcome((peer, asked) => refuse(peer, asked, { code: 0, message: "", data: exact }))).toBe(exact);
  });

  it("an aborted connect rejects, and tells the server", async () => {
    const controller = new AbortController();
    const peer = rawPeer();
    const connecting = rejection(connectEngine(modernEngine, peer.transport, { signal: controller.signal }));
    const asked = await peer.next("server/discover");
    controller.abort(new Cancelled({ reason: "enough" }));
    expect(await connecting).toMatchObject({ _tag: "Cancelled", reason: "enough" });
    expect((await peer.next("notifications/cancelled"))["params"].requestId).toBe(asked["id"]);
  });
});

describe("the modules it needs", () => {
  it("neither the plugin value nor its session loads an SDK", async () => {
    const script = `
      import { registerHooks } from "node:module";
      const urls = [];
      registerHooks({ resolve: (s, c, next) => { const r = next(s, c); urls.push(r.url); return r; } });
      const { modernEngine } = await import(process.argv[1]);
      const light = !urls.some((url) => url.includes("modern-session"));
      await import(process.argv[1].replace("modern.ts", "modern-session.ts"));
      console.log(modernEngine.era, light, urls.some((url) => url.includes("@modelcontextprotocol")));`;
    const engine = new URL("../../../src/plugins/engines/modern.ts", import.meta.url).href;
    const { stdout } = await promisify(execFile)(nodeBinary, ["--input-type=module", "-e", script, engine]);
    expect(stdout.trim()).toBe("modern true false");
  });
});

describe("requests", () => {
  it("carry the envelope over the caller's own _meta, and answer the result without its discriminator", async () => {
    const { ask, peer } = await met();
    const asking = ask("tools/call", { name: "a", _meta: { mine: 1, [`${KEY}protocolVersion`]: "forged" } });
    const asked = await peer.next("tools/call");
    expect(asked["params"]).toMatchObject({ name: "a", _meta: { mine: 1, [`${KEY}protocolVersion`]: VERSION } });
    answer(peer, asked, { resultType: "complete", content: [], _meta: { their: 2 } });
    expect(await asking).toEqual({ content: [], _meta: { their: 2 } });
  });

  it("a result without resultType is complete; one of an unknown type is an error", async () => {
    const { ask, peer } = await met();
    const plain = ask("tools/list");
    answer(peer, await peer.next("tools/list"), { tools: [], ttlMs: 5 });
    expect(await plain).toEqual({ tools: [], ttlMs: 5 });
    const strange = rejection(ask("tools/list"));
    answer(peer, await peer.next("tools/list"), { resultType: "task" });
    expect(await strange).toMatchObject({ _tag: "ProtocolError" });
    expect((await strange).message).toContain("'task'");
  });

  it("cancellation is told with the envelope; progress reaches its request", async () => {
    const { ask, peer } = await met();
    const controller = new AbortController();
    const steps: Array<unknown> = [];
    const asking = rejection(
      ask("tools/call", { name: "a" }, { signal: controller.signal, onProgress: (step) => steps.push(step) }),
    );
    const { id, params } = await peer.next("tools/call");
    const progressToken = params._meta.progressToken;
    peer.say({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress: 1 } });
    controller.abort("enough");
    expect(await asking).toMatchObject({ _tag: "Cancelled", reason: "enough" });
    expect(steps).toEqual([{ progress: 1 }]);
    const cancelled = await peer.next("notifications/cancelled");
    expect(cancelled["params"]).toMatchObject({ requestId: id, _meta: { [`${KEY}protocolVersion`]: VERSION } });
  });

  it("the log level is kept here and goes with each request; one request may have its own", async () => {
    const { ask, peer } = await met();
    expect(await ask("logging/setLevel", { level: "warning" })).toEqual({});
    void ask("tools/list");
    void ask("tools/call", { _meta: { [`${KEY}logLevel`]: "debug" } });
    expect((await peer.next("tools/list"))["params"]._meta[`${KEY}logLevel`]).toBe("warning");
    expect((await peer.next("tools/call"))["params"]._meta[`${KEY}logLevel`]).toBe("debug");
  });

  it("ping is asked as server/discover, which every server knows", async () => {
    const { ask, peer } = await met();
    const ping = ask("ping");
    answer(peer, await peer.next("server/discover"), discovered());
    expect(await ping).toEqual({});
  });

  it("a change of roots has nobody to tell; other notifications are sent", async () => {
    const { session, peer } = await met();
    await session.notify("notifications/roots/list_changed");
    await session.notify("notifications/custom", { a: 1 });
    expect(peer.sent.map((message) => message["method"])).toEqual(["server/discover", "notifications/custom"]);
  });

  it("a server's request is never answered; noise breaks nothing", async () => {
    const { ask, peer, diagnostics } = await met();
    peer.say({ jsonrpc: "2.0", id: 1, method: "sampling/createMessage", params: {} });
    for (const noise of [null, 7, [], {}, { jsonrpc: "2.0", method: "notifications/progress" }]) peer.say(noise);
    const asking = ask("tools/list");
    answer(peer, await peer.next("tools/list"), { tools: [] });
    expect(await asking).toEqual({ tools: [] });
    expect(peer.sent.every((message) => message["method"] !== undefined)).toBe(true);
    expect(diagnostics.length).toBeGreaterThan(4);
  });

  it.each([
    [{ code: -32_022, message: "Unsupported protocol version" }],
    [{ code: -32_000, message: "Bad Request: Server not initialized" }],
    [{ code: 0, message: "", data: new HttpFailed({ server: "peer", status: 404, reason: "gone" }) }],
  ])("a server that left the era ends the session, so that the next use negotiates anew: %j", async (error) => {
    const { ask, peer, closed } = await met();
    const asking = rejection(ask("tools/call", { name: "a" }));
    refuse(peer, await peer.next("tools/call"), error);
    expect(await asking).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
    expect(closed).toEqual([expect.any(ConnectionLost)]);
    expect(await rejection(ask("tools/list"))).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
  });

  it("a lost connection fails what runs and tells the listener once", async () => {
    const { ask, peer, closed } = await met();
    const asking = rejection(ask("tools/call"));
    await peer.next("tools/call");
    peer.hangUp();
    peer.hangUp();
    expect(await asking).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
    expect(closed).toHaveLength(1);
  });
});

const form = {
  method: "elicitation/create",
  params: { message: "Who?", requestedSchema: { type: "object", properties: {} } },
};

describe("input rounds", () => {
  const handlers: HostHandlers = {
    roots: () => [{ uri: "file:///a" }],
    sampling: () => ({ role: "assistant", model: "m", content: { type: "text", text: "hi" } }),
    elicitation: { form: () => ({ action: "accept", content: { name: "Ada" } }) },
  };

  it("the host answers all questions at once, and the request goes again under a new id with the same state", async () => {
    const { ask, peer } = await met(discovered(), { handlers });
    const asking = ask("tools/call", { name: "a", arguments: { b: 1 } });
    const first = await peer.next("tools/call");
    const sample = { method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } };
    const inputRequests = { who: form, where: { method: "roots/list" }, what: sample };
    answer(peer, first, { resultType: "input_required", inputRequests, requestState: "opaque" });
    const second = await peer.next("tools/call");
    expect(second["id"]).not.toBe(first["id"]);
    expect(second["params"]).toMatchObject({
      name: "a",
      arguments: { b: 1 },
      requestState: "opaque",
      inputResponses: {
        who: { action: "accept", content: { name: "Ada" } },
        where: { roots: [{ uri: "file:///a" }] },
        what: { role: "assistant" },
      },
    });
    answer(peer, second, { resultType: "input_required", inputRequests: { again: form } });
    const third = await peer.next("tools/call");
    expect(Object.keys(third["params"].inputResponses)).toEqual(["again"]);
    expect(third["params"]).not.toHaveProperty("requestState");
    answer(peer, third, { resultType: "complete", content: [] });
    expect(await asking).toEqual({ content: [] });
  });

  it("a state without a question is sent back after a pause", async () => {
    const { ask, peer } = await met();
    const asking = ask("resources/read", { uri: "a:b" });
    answer(peer, await peer.next("resources/read"), { resultType: "input_required", requestState: "later" });
    const again = await peer.next("resources/read");
    expect(again["params"].requestState).toBe("later");
    expect(again["params"]).not.toHaveProperty("inputResponses");
    answer(peer, again, { resultType: "complete", contents: [] });
    expect(await asking).toEqual({ contents: [] });
  });

  it("a result type that no text can be made of is an unknown one", async () => {
    const { peer, ask } = await met();
    const answered = rejection(ask("tools/list"));
    answer(peer, await peer.next("tools/list"), { resultType: [{ toString: null }] });
    const error = await answered;
    expect(error._tag).toBe("ProtocolError");
    expect(error.reason).toContain("unknown type '[{\"toString\":null}]'");
  });

  it("a state that is nested too deep to be sent back ends the request", async () => {
    const { peer, ask } = await met();
    const answered = rejection(ask("tools/call", { name: "t" }));
    let requestState: unknown = 1;
    for (let level = 0; level < 20_000; level++) requestState = [requestState];
    answer(peer, await peer.next("tools/call"), { resultType: "input_required", requestState });
    expect(await answered).toMatchObject({ _tag: "ProtocolError", server: "peer" });
  });

  it("a server that never has enough is given up after ten rounds", async () => {
    const { ask, peer } = await met(discovered(), { handlers });
    const asking = rejection(ask("tools/call"));
    for (let round = 0; round < 11; round++)
      answer(peer, await peer.next("tools/call"), { resultType: "input_required", inputRequests: { who: form } });
    expect((await asking).message).toContain("10 rounds");
    expect(peer.sent).toHaveLength(12);
  });

  it.each([
    ["what the host does not handle", { sampling: handlers.sampling }, { who: form }],
    ["a handler that fails", { elicitation: { form: () => Promise.reject(new Error("no")) } }, { who: form }],
    ["a question without a method", handlers, { who: {} }],
    ["nothing at all", handlers, undefined],
  ])("%s fails the request without another round", async (_what, these, inputRequests) => {
    const { ask, peer } = await met(discovered(), { handlers: these as HostHandlers });
    const asking = rejection(ask("tools/call"));
    answer(peer, await peer.next("tools/call"), { resultType: "input_required", inputRequests });
    expect(await asking).toHaveProperty("_tag", expect.stringMatching(/PluginFailed|ProtocolError/));
    expect(peer.sent).toHaveLength(2);
  });

  it("cancelling while the host is asked ends the handler, and later rounds listen too", async () => {
    const controller = new AbortController();
    let told: AbortSignal | undefined;
    let asked!: () => void;
    const wasAsked = new Promise<void>((resolve) => (asked = resolve));
    const { ask, peer } = await met(discovered(), {
      handlers: {
        elicitation: {
          form: (_params, { signal }) => {
            told = signal;
            asked();
            return new Promise<never>(() => {});
          },
        },
      },
    });
    const asking = rejection(ask("tools/call", {}, { signal: controller.signal }));
    answer(peer, await peer.next("tools/call"), { resultType: "input_required", inputRequests: { who: form } });
    await wasAsked;
    controller.abort("enough");
    expect(await asking).toMatchObject({ _tag: "Cancelled", reason: "enough" });
    expect(told?.aborted).toBe(true);
  });
});

const acknowledge = (peer: RawPeer, { id, params }: Message, notifications = params.notifications): void =>
  peer.say({
    jsonrpc: "2.0",
    method: "notifications/subscriptions/acknowledged",
    params: { _meta: { [`${KEY}subscriptionId`]: id }, notifications },
  });
const change = (peer: RawPeer, method: string, id: unknown, more = {}): void =>
  peer.say({ jsonrpc: "2.0", method, params: { _meta: { [`${KEY}subscriptionId`]: id }, ...more } });

describe("subscriptions", () => {
  const changing = discovered({ capabilities: { tools: { listChanged: true }, prompts: {}, resources: {} } });
  it("follows the lists that may change, and no others", async () => {
    const { peer, notifications } = await met(changing);
    const listen = await peer.next("subscriptions/listen");
    expect(listen["params"].notifications).toEqual({ toolsListChanged: true });
    acknowledge(peer, listen);
    change(peer, "notifications/tools/list_changed", listen["id"]);
    change(peer, "notifications/prompts/list_changed", "somebody else's");
    expect(notifications.map(([method]) => method)).toEqual(["notifications/tools/list_changed"]);
    const still = await met();
    const asking = still.ask("tools/list");
    answer(still.peer, await still.peer.next("tools/list"), {});
    await asking;
    expect(still.peer.sent.map((message) => message["method"])).not.toContain("subscriptions/listen");
  });

  it("an ended stream is opened again, and what may have changed meanwhile counts as changed", async () => {
    const { peer, notifications } = await met(changing);
    const first = await peer.next("subscriptions/listen");
    acknowledge(peer, first);
    peer.say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: first["id"] } });
    const second = await peer.next("subscriptions/listen");
    expect(second["id"]).not.toBe(first["id"]);
    acknowledge(peer, second);
    expect(notifications).toEqual([["notifications/tools/list_changed", {}]]);
  });

  it("a server without subscriptions is not asked again", async () => {
    const { peer, diagnostics } = await met(changing);
    refuse(peer, await peer.next("subscriptions/listen"), { code: -32_601, message: "Method not found" });
    await expect.poll(() => diagnostics.join()).toContain("it knows no subscriptions");
    expect(peer.sent.filter((message) => message["method"] === "subscriptions/listen")).toHaveLength(1);
  });

  it("subscribing to a resource settles when the server agreed; unsubscribing cancels it", async () => {
    const { ask, peer, notifications } = await met();
    const subscribing = ask("resources/subscribe", { uri: "a:b" });
    const listen = await peer.next("subscriptions/listen");
    expect(listen["params"].notifications).toEqual({ resourceSubscriptions: ["a:b"] });
    acknowledge(peer, listen);
    expect(await subscribing).toEqual({});
    expect(await ask("resources/subscribe", { uri: "a:b" })).toEqual({});
    change(peer, "notifications/resources/updated", listen["id"], { uri: "a:b" });
    expect(notifications).toHaveLength(1);
    expect(await ask("resources/unsubscribe", { uri: "a:b" })).toEqual({});
    expect((await peer.next("notifications/cancelled"))["params"].requestId).toBe(listen["id"]);
    change(peer, "notifications/resources/updated", listen["id"], { uri: "a:b" });
    expect(notifications).toHaveLength(1);
  });

  it("a resource the server does not agree to is refused, and so is a refusal", async () => {
    const { ask, peer } = await met();
    const ignored = rejection(ask("resources/subscribe", { uri: "a:b" }));
    acknowledge(peer, await peer.next("subscriptions/listen"), {});
    expect(await ignored).toMatchObject({ _tag: "ProtocolError" });
    const refused = rejection(ask("resources/subscribe", { uri: "a:c" }));
    refuse(peer, await peer.next("subscriptions/listen"), { code: -32_603, message: "Subscription limit reached" });
    expect(await refused).toMatchObject({ _tag: "ProtocolError", code: -32_603 });
  });

  it("nothing is opened again after the session ended", async () => {
    const heard = newHeard();
    const { session, peer } = await met(changing, { heard });
    await peer.next("subscriptions/listen");
    await session.close();
    expect(heard.closed).toEqual([undefined]);
    expect(heard.diagnostics).toEqual([]);
  });
});
