import { describe, expect, it } from "@effect/vitest";
import { McpError as SdkError } from "@modelcontextprotocol/sdk/types.js";
import * as Effect from "effect/Effect";
import type { HostHandlers, HostRequestContext } from "../../../src/core/contracts.ts";
import { ProtocolError } from "../../../src/core/errors.ts";
import { legacyEngine } from "../../../src/plugins/engines/legacy.ts";
import { connectEngine, greeted, type Message, rawPeer, testEndpoint } from "../../support/engine-peer.ts";

const ask = (id: unknown, method: string, params?: unknown): Message => ({ jsonrpc: "2.0", id, method, params });

const form = () => ({ action: "decline" }) as const;
const advertised = async (handlers: HostHandlers): Promise<unknown> => {
  const peer = rawPeer();
  const [, hello] = await Promise.all([connectEngine(legacyEngine, peer.transport, { handlers }), peer.welcome()]);
  return hello["params"].capabilities;
};

const message = { role: "assistant", content: { type: "text", text: "hi" }, model: "m" } as const;
const samplingParams = { messages: [{ role: "user", content: { type: "text", text: "?" } }], maxTokens: 10 };
const formParams = {
  message: "Who?",
  requestedSchema: {
    type: "object",
    properties: {
      name: { type: "string", default: "Ada" },
      age: { type: "integer", default: 36 },
      admin: { type: "boolean", default: false },
      role: { type: "string", enum: ["a", "b"], default: "b" },
      note: { type: "string" },
    },
    required: ["name"],
  },
};
const urlParams = { mode: "url", message: "Sign in", elicitationId: "e1", url: "https://auth.example/start" };

describe("capabilities", () => {
  it("advertises only what the host handles", async () => {
    expect(await advertised({})).toEqual({});
    expect(await advertised({ roots: () => [] })).toEqual({ roots: { listChanged: true } });
    expect(await advertised({ sampling: () => message })).toEqual({ sampling: { tools: {} } });
    expect(await advertised({ elicitation: {} })).toEqual({});
    expect(await advertised({ elicitation: { form } })).toEqual({ elicitation: { form: {} } });
    expect(await advertised({ elicitation: { url: form } })).toEqual({ elicitation: { url: {} } });
    expect(await advertised({ elicitation: { form, url: form } })).toEqual({ elicitation: { form: {}, url: {} } });
  });
});

describe("requests of the server", () => {
  it("C-076: ping is answered, ids keep their type, what is not handled is -32601", async () => {
    const { peer } = await greeted(legacyEngine);
    const ids = [0, 1, "1", "a-b", -5, ""];
    for (const id of ids) peer.say(ask(id, "ping"));
    for (const id of ids) expect(await peer.answerTo(id)).toEqual({ jsonrpc: "2.0", id, result: {} });
    const methods = ["roots/list", "sampling/createMessage", "elicitation/create", "vendor/unknown", "tasks/get"];
    for (const [i, method] of methods.entries()) {
      peer.say(ask(`r${i}`, method, {}));
      expect(await peer.answerTo(`r${i}`)).toMatchObject({ error: { code: -32601, message: "Method not found" } });
    }
  });

  it("C-076: a ping during a call and before the handshake is done is answered", async () => {
    const peer = rawPeer();
    const connecting = connectEngine(legacyEngine, peer.transport);
    const hello = await peer.next("initialize");
    peer.say(ask("early", "ping"));
    expect(await peer.answerTo("early")).toEqual({ jsonrpc: "2.0", id: "early", result: {} });
    peer.say({ jsonrpc: "2.0", id: hello["id"], result: { protocolVersion: "2025-06-18", capabilities: {} } });
    const { ask: request } = await connecting;
    const call = request("tools/call");
    const { id } = await peer.next("tools/call");
    peer.say(ask(id, "ping"));
    expect(await peer.answerTo(id)).toEqual({ jsonrpc: "2.0", id, result: {} });
    peer.say({ jsonrpc: "2.0", id, result: { own: true } });
    expect(await call).toEqual({ own: true });
  });

  it("malformed requests are refused, never met with silence", async () => {
    const { peer } = await greeted(legacyEngine, { handlers: { roots: () => [] } });
    peer.say(ask(1, "roots/list", [1, 2]));
    peer.say(ask(2, "roots/list", { _meta: "x" }));
    expect(await peer.answerTo(1)).toMatchObject({ error: { code: -32600 } });
    expect(await peer.answerTo(2)).toMatchObject({ error: { code: -32600 } });
  });

  it("roots: values, Promises and Effects; the handler sees whom it serves", async () => {
    const root = { uri: "file:///work", name: "work" };
    const contexts: Array<HostRequestContext> = [];
    const answers = [() => [root], async () => [root], () => Effect.succeed([root])];
    for (const answer of answers) {
      const roots = (context: HostRequestContext) => {
        contexts.push(context);
        return answer();
      };
      const { peer } = await greeted(legacyEngine, { handlers: { roots } });
      peer.say(ask(0, "roots/list"));
      expect(await peer.answerTo(0)).toEqual({ jsonrpc: "2.0", id: 0, result: { roots: [root] } });
    }
    expect(contexts[0]).toMatchObject({ endpoint: testEndpoint, name: "peer" });
    expect(contexts[0]!.signal.aborted).toBe(false);
  });

  it("sampling: params arrive whole, with tools too; wrong ones are -32602", async () => {
    const seen: Array<unknown> = [];
    const sampling = (params: unknown) => {
      seen.push(params);
      return message;
    };
    const { peer } = await greeted(legacyEngine, { handlers: { sampling } });
    const withTools = {
      ...samplingParams,
      tools: [{ name: "t", inputSchema: { type: "object" } }],
      vendor: { kept: true },
    };
    peer.say(ask(1, "sampling/createMessage", samplingParams));
    peer.say(ask(2, "sampling/createMessage", withTools));
    peer.say(ask(3, "sampling/createMessage", { messages: "none" }));
    peer.say(ask(4, "sampling/createMessage"));
    expect((await peer.answerTo(1))["result"]).toEqual(message);
    expect((await peer.answerTo(2))["result"]).toEqual(message);
    expect((await peer.answerTo(3))["error"].code).toBe(-32602);
    expect((await peer.answerTo(4))["error"].code).toBe(-32602);
    expect(seen).toEqual([samplingParams, withTools]);
  });

  it("elicitation by form: defaults fill what an accepting user left out, nothing else", async () => {
    const answers: Array<any> = [
      { action: "accept", content: { name: "Grace", admin: undefined } },
      { action: "accept" },
      { action: "decline" },
      { action: "cancel" },
    ];
    const handlers = { elicitation: { form: () => answers.shift() } };
    const { peer } = await greeted(legacyEngine, { handlers });
    for (const id of [1, 2, 3, 4])
      peer.say(ask(id, "elicitation/create", { mode: id === 2 ? "form" : undefined, ...formParams }));
    const results = [];
    for (const id of [1, 2, 3, 4]) results.push((await peer.answerTo(id))["result"]);
    expect(results).toEqual([
      { action: "accept", content: { name: "Grace", age: 36, admin: false, role: "b" } },
      { action: "accept", content: { name: "Ada", age: 36, admin: false, role: "b" } },
      { action: "decline" },
      { action: "cancel" },
    ]);
  });

  it("elicitation by URL goes to its own handler; a mode without handler is -32602", async () => {
    const seen: Array<unknown> = [];
    const url = (params: unknown) => {
      seen.push(params);
      return { action: "accept" } as const;
    };
    const { peer, notifications } = await greeted(legacyEngine, { handlers: { elicitation: { url } } });
    peer.say(ask(1, "elicitation/create", urlParams));
    peer.say(ask(2, "elicitation/create", formParams));
    peer.say(ask(3, "elicitation/create", { ...urlParams, url: "no url" }));
    expect((await peer.answerTo(1))["result"]).toEqual({ action: "accept" });
    expect((await peer.answerTo(2))["error"]).toMatchObject({ code: -32602 });
    expect((await peer.answerTo(3))["error"]).toMatchObject({ code: -32602 });
    expect(seen).toEqual([urlParams]);
    peer.say({ jsonrpc: "2.0", method: "notifications/elicitation/complete", params: { elicitationId: "e1" } });
    expect(notifications).toEqual([["notifications/elicitation/complete", { elicitationId: "e1" }]]);

    const formOnly = await greeted(legacyEngine, {
      handlers: { elicitation: { form } },
    });
    formOnly.peer.say(ask(1, "elicitation/create", urlParams));
    expect((await formOnly.peer.answerTo(1))["error"]).toMatchObject({ code: -32602 });
  });

  it("a handler that fails answers with a short error, with its own code where it chose one", async () => {
    const failures: Array<() => any> = [
      () => {
        throw new Error("no model");
      },
      async () => {
        throw new SdkError(-1, "User rejected sampling request");
      },
      () => Effect.fail(new ProtocolError({ server: "host", code: -32050, reason: "quota", data: { left: 0 } })),
      () => {
        throw new Error("x".repeat(5000));
      },
      () => Effect.die("defect"),
      () => ({ wrong: "form" }),
    ];
    const { peer } = await greeted(legacyEngine, { handlers: { sampling: () => failures.shift()!() } });
    const errors: Array<any> = [];
    for (const id of [1, 2, 3, 4, 5, 6]) {
      peer.say(ask(id, "sampling/createMessage", samplingParams));
      errors.push((await peer.answerTo(id))["error"]);
    }
    expect(errors[0]).toEqual({ code: -32603, message: "The host could not answer: no model" });
    expect(errors[1].code).toBe(-1);
    expect(errors[2]).toEqual({ code: -32050, message: "quota", data: { left: 0 } });
    expect(errors[3].message.length).toBeLessThanOrEqual(300);
    expect(errors[4].code).toBe(-32603);
    expect(errors[5]).toEqual({ code: -32603, message: "The host's answer has the wrong form" });
  });

  it.each([0, 7, "seven"])(
    "notifications/cancelled for the id %j aborts the handler, and nothing is answered",
    async (id) => {
      const signals: Array<AbortSignal> = [];
      const interrupted: Array<string> = [];
      const sampling = (_: unknown, { signal }: HostRequestContext) => {
        signals.push(signal);
        return Effect.onInterrupt(Effect.never, () => Effect.sync(() => interrupted.push("yes")));
      };
      const { peer } = await greeted(legacyEngine, { handlers: { sampling } });
      peer.say(ask(id, "sampling/createMessage", samplingParams));
      await expect.poll(() => signals.length).toBe(1);
      peer.say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id, reason: "moot" } });
      await expect.poll(() => interrupted).toEqual(["yes"]);
      expect(signals[0]!.aborted).toBe(true);
      peer.say(ask("after", "ping"));
      await peer.answerTo("after");
      expect(peer.sent.some((sent) => sent["id"] === id && sent["method"] === undefined)).toBe(false);
    },
  );

  it("a request cancelled before the host was asked does not reach it", async () => {
    const seen: Array<unknown> = [];
    const { peer } = await greeted(legacyEngine, { handlers: { sampling: (params) => (seen.push(params), message) } });
    peer.say(ask(1, "sampling/createMessage", samplingParams));
    peer.say({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } });
    peer.say(ask("after", "sampling/createMessage", samplingParams));
    await peer.answerTo("after");
    expect(seen).toHaveLength(1);
  });

  it("the end of the session aborts running handlers and sends nothing more", async () => {
    const signals: Array<AbortSignal> = [];
    const roots = ({ signal }: HostRequestContext) => {
      signals.push(signal);
      return new Promise<never>(() => {});
    };
    const { peer, session } = await greeted(legacyEngine, { handlers: { roots } });
    peer.say(ask(1, "roots/list"));
    await expect.poll(() => signals.length).toBe(1);
    const before = peer.sent.length;
    await session.close();
    expect(signals[0]!.aborted).toBe(true);
    expect(peer.sent).toHaveLength(before);
  });

  it("an answer that cannot be sent is a diagnostic", async () => {
    const { peer, diagnostics, closed } = await greeted(legacyEngine);
    peer.refuse = () => new Error("pipe full");
    peer.say(ask(1, "ping"));
    await expect.poll(() => diagnostics.join()).toContain("pipe full");
    expect(closed).toEqual([]);
  });
});
