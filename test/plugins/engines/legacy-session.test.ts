import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { ConnectionLost, HttpFailed, MessageTooLarge, RequestTimeout } from "../../../src/core/errors.ts";
import { legacyEngine } from "../../../src/plugins/engines/legacy.ts";
import { greeted, type Message, rejection } from "../../support/engine-peer.ts";

const reply = (id: unknown, result: unknown): Message => ({ jsonrpc: "2.0", id, result });
const progress = (progressToken: unknown, progress: unknown, rest = {}): Message => ({
  jsonrpc: "2.0",
  method: "notifications/progress",
  params: { progressToken, progress, ...rest },
});
const shuffled = <A>(items: ReadonlyArray<A>, seed: number): Array<A> => {
  const copy = [...items];
  for (let i = copy.length - 1; i > 0; i--) {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    const j = seed % (i + 1);
    [copy[i], copy[j]] = [copy[j]!, copy[i]!];
  }
  return copy;
};

describe("requests", () => {
  it("sends method, params and the caller's _meta, and answers the raw result", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const asked = ask("tools/call", { name: "a", _meta: { trace: "t1" } });
    const request = await peer.next("tools/call");
    expect(request["params"]).toEqual({ name: "a", _meta: { trace: "t1" } });
    peer.say(reply(request["id"], { content: "not checked here", extra: [1] }));
    expect(await asked).toEqual({ content: "not checked here", extra: [1] });
  });

  it("has no params where the caller gave none, and a progress token only with onProgress", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    void ask("ping").catch(() => {});
    expect("params" in (await peer.next("ping"))).toBe(false);
    void ask("tools/call", { name: "a", _meta: { trace: 1 } }, { onProgress: () => {} }).catch(() => {});
    const request = await peer.next("tools/call");
    expect(request["params"]._meta).toEqual({ trace: 1, progressToken: request["id"] });
  });

  it("JSON-RPC errors become ProtocolError with code and data; malformed ones too", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const answers = [
      { code: -32602, message: "bad", data: { field: "x" } },
      { code: "E_BAD", message: 7 },
      "just text",
    ];
    const errors: Array<any> = [];
    for (const error of answers) {
      const failed = rejection(ask("tools/call"));
      peer.say({ jsonrpc: "2.0", id: (await peer.next("tools/call"))["id"], error });
      errors.push(await failed);
    }
    expect(errors.map((error) => error._tag)).toEqual(["ProtocolError", "ProtocolError", "ProtocolError"]);
    expect(errors[0]).toMatchObject({ server: "peer", code: -32602, reason: "bad", data: { field: "x" } });
    expect(errors[1]).toMatchObject({ code: -32603, reason: "no reason given" });
    expect(errors[2]).toMatchObject({ code: -32603, reason: "just text" });
  });

  it("an error of ours in data reaches the caller as itself", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const data = new MessageTooLarge({ server: "peer", size: 9, limit: 5 });
    const failed = rejection(ask("tools/call"));
    peer.say({ jsonrpc: "2.0", id: (await peer.next("tools/call"))["id"], error: { code: -32603, message: "", data } });
    expect(await failed).toBe(data);
  });

  it("tolerates error: null beside a result, ids sent back as text, and batches", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const asked = [ask("a"), ask("b"), ask("c")];
    const [a, b, c] = [await peer.next("a"), await peer.next("b"), await peer.next("c")];
    peer.say({ ...reply(a["id"], { a: 1 }), error: null });
    peer.say([reply(String(b["id"]), { b: 1 }), reply(c["id"], { c: 1 })]);
    expect(await Promise.all(asked)).toEqual([{ a: 1 }, { b: 1 }, { c: 1 }]);
  });

  it("an answer with neither result nor error fails its request", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const failed = rejection(ask("a"));
    peer.say({ jsonrpc: "2.0", id: (await peer.next("a"))["id"] });
    expect((await failed)._tag).toBe("ProtocolError");
  });

  it("a rejected send is told as what it is", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const typed = new HttpFailed({ server: "peer", status: 503, reason: "busy", retryAfter: 1000 });
    const given = [typed, Object.assign(new Error("gone"), { code: 404 }), new Error("odd")];
    const errors: Array<any> = [];
    for (const refusal of given) {
      peer.refuse = () => refusal;
      errors.push(await rejection(ask("tools/list")));
    }
    expect(errors[0]).toBe(typed);
    expect(errors[1]).toMatchObject({ _tag: "HttpFailed", status: 404, reason: "gone" });
    expect(errors[2]).toMatchObject({ _tag: "PluginFailed", reason: "odd" });
  });

  it("a notification whose send fails rejects with a typed error", async () => {
    const { session, peer } = await greeted(legacyEngine);
    await session.notify("notifications/roots/list_changed");
    expect(await peer.next("notifications/roots/list_changed")).toEqual({
      jsonrpc: "2.0",
      method: "notifications/roots/list_changed",
    });
    peer.refuse = () => new Error("odd");
    expect((await rejection(session.notify("x")))._tag).toBe("PluginFailed");
  });
});

describe("answers find their callers", () => {
  it("C-071: the second call answered first", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const asked = [ask("tools/call", { n: 1 }), ask("tools/call", { n: 2 })];
    const [one, two] = [await peer.next("tools/call"), await peer.next("tools/call")];
    peer.say(reply(two["id"], two["params"]));
    peer.say(reply(one["id"], one["params"]));
    expect(await Promise.all(asked)).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it("C-071: 200 calls answered in random order with 64 KiB, notifications and a server request of the same id between", async () => {
    const { ask, peer, notifications } = await greeted(legacyEngine);
    const body = "x".repeat(64 * 1024);
    const asked = Array.from({ length: 200 }, (_, n) => ask("tools/call", { n }));
    const requests = peer.sent.filter((message) => message["method"] === "tools/call");
    expect(requests).toHaveLength(200);
    for (const [i, { id, params }] of shuffled(requests, 7).entries()) {
      if (i % 10 === 0) peer.say({ jsonrpc: "2.0", method: "notifications/message", params: { i } });
      if (i % 20 === 0) peer.say({ jsonrpc: "2.0", id, method: "ping" });
      peer.say(reply(id, { n: params.n, body }));
    }
    const answers = await Promise.all(asked);
    expect(answers.map(({ n }) => n)).toEqual(Array.from({ length: 200 }, (_, n) => n));
    expect(answers.every((answer) => answer.body === body)).toBe(true);
    expect(notifications).toHaveLength(20);
    const { id } = shuffled(requests, 7)[0]!;
    expect(await peer.answerTo(id)).toEqual({ jsonrpc: "2.0", id, result: {} });
  });

  it("C-071: any interleaving of answers, errors, noise and cancellations gives each caller its own", async () => {
    const call = fc.record({
      fate: fc.constantFrom("result", "error", "cancelled", "cancelled-late", "twice"),
      at: fc.nat(1000),
      noise: fc.constantFrom("none", "progress", "stale", "notification", "request"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 25 }), async (calls) => {
        const { ask, peer, session, closed } = await greeted(legacyEngine);
        const seen = calls.map(() => [] as Array<number>);
        const controllers = calls.map(() => new AbortController());
        const asked = calls.map((_, n) =>
          ask(
            "call",
            { n },
            { signal: controllers[n]!.signal, onProgress: ({ progress }) => seen[n]!.push(progress) },
          ).then(
            (result) => result.n,
            (error) => `${error._tag} ${error.reason}`,
          ),
        );
        const ids = peer.sent.filter((message) => message["method"] === "call").map((message) => message["id"]);
        const order = [...calls.keys()].toSorted((a, b) => calls[a]!.at - calls[b]!.at || a - b);
        for (const n of order) {
          const { fate, noise } = calls[n]!;
          const id = ids[n];
          if (noise === "progress") peer.say(progress(id, n));
          if (noise === "stale") peer.say(progress(10_000 + n, 1));
          if (noise === "notification") peer.say({ jsonrpc: "2.0", method: "notifications/message", params: {} });
          if (noise === "request") peer.say({ jsonrpc: "2.0", id, method: "ping" });
          if (fate === "error") peer.say({ jsonrpc: "2.0", id, error: { code: -1, message: `e${n}` } });
          else if (fate === "cancelled") controllers[n]!.abort(`stop ${n}`);
          else peer.say(reply(id, { n }));
          if (fate === "twice" || fate === "cancelled") peer.say(reply(id, { n: -1 }));
          if (fate === "cancelled-late") controllers[n]!.abort();
        }
        const expected = calls.map(({ fate }, n) =>
          fate === "error" ? `ProtocolError e${n}` : fate === "cancelled" ? `Cancelled stop ${n}` : n,
        );
        expect(await Promise.all(asked)).toEqual(expected);
        expect(seen).toEqual(calls.map(({ noise }, n) => (noise === "progress" ? [n] : [])));
        const told = peer.sent.filter((message) => message["method"] === "notifications/cancelled");
        expect(new Set(told.map((message) => message["params"].requestId))).toEqual(
          new Set(ids.filter((_, n) => calls[n]!.fate === "cancelled")),
        );
        expect(closed).toEqual([]);
        await session.close();
      }),
      { numRuns: 100 },
    );
  });
});

describe("cancellation", () => {
  it("tells the server the id and a short reason, and rejects with the host's own reason when it is one of ours", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const controller = new AbortController();
    const failed = rejection(ask("tools/call", {}, { signal: controller.signal }));
    const { id } = await peer.next("tools/call");
    const reason = new RequestTimeout({ server: "peer", method: "tools/call", kind: "idle", timeout: 20_000 });
    controller.abort(reason);
    expect(await failed).toBe(reason);
    expect((await peer.next("notifications/cancelled"))["params"]).toEqual({
      requestId: id,
      reason: "the request timed out",
    });
  });

  it("any other reason becomes Cancelled; a signal aborted before never starts the request", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const before = peer.sent.length;
    const errors = [
      await rejection(ask("x", {}, { signal: AbortSignal.abort() })),
      await rejection(ask("x", {}, { signal: AbortSignal.abort("enough") })),
      await rejection(ask("x", {}, { signal: AbortSignal.abort(null) })),
    ];
    expect(errors.map((error) => error._tag)).toEqual(["Cancelled", "Cancelled", "Cancelled"]);
    expect(errors[1].reason).toBe("enough");
    expect(peer.sent).toHaveLength(before);
  });

  it.each([
    ["a result", [{ result: { late: true } }]],
    ["an error", [{ error: { code: -1, message: "late" } }]],
    ["both", [{ result: {} }, { error: { code: -1, message: "late" } }]],
  ])("C-073: a cancelled request that is answered anyway with %s harms nobody", async (_, late) => {
    const { ask, peer, diagnostics, closed } = await greeted(legacyEngine);
    const controller = new AbortController();
    const first = rejection(ask("tools/call", { n: 1 }, { signal: controller.signal }));
    const second = ask("tools/call", { n: 2 });
    const [one, two] = [await peer.next("tools/call"), await peer.next("tools/call")];
    controller.abort();
    expect((await first)._tag).toBe("Cancelled");
    for (const answer of late) peer.say({ jsonrpc: "2.0", id: one["id"], ...answer });
    peer.say(reply(two["id"], { n: 2 }));
    expect(await second).toEqual({ n: 2 });
    expect(diagnostics).toHaveLength(late.length);
    expect(closed).toEqual([]);
    void ask("tools/call", { n: 3 }).catch(() => {});
    expect((await peer.next("tools/call"))["id"]).toBeGreaterThan(two["id"]);
  });

  it("C-073: cancelling after the answer sends nothing", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const controller = new AbortController();
    const asked = ask("tools/call", {}, { signal: controller.signal });
    peer.say(reply((await peer.next("tools/call"))["id"], { ok: true }));
    controller.abort();
    expect(await asked).toEqual({ ok: true });
    expect(peer.sent.some((message) => message["method"] === "notifications/cancelled")).toBe(false);
  });

  it("a signal that outlives its requests keeps none of them", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const { signal } = new AbortController();
    let listeners = 0;
    const counted = (method: "addEventListener" | "removeEventListener", by: number) => {
      const real: (...args: Array<any>) => void = signal[method].bind(signal);
      Object.assign(signal, {
        [method]: (...args: Array<unknown>) => {
          listeners += by;
          real(...args);
        },
      });
    };
    counted("addEventListener", 1);
    counted("removeEventListener", -1);
    const asked = [ask("a", {}, { signal }), rejection(ask("b", {}, { signal }))];
    expect(listeners).toBe(2);
    peer.say(reply((await peer.next("a"))["id"], {}));
    peer.say({ jsonrpc: "2.0", id: (await peer.next("b"))["id"], error: { code: 1, message: "no" } });
    await Promise.all(asked);
    expect(listeners).toBe(0);
  });

  it("a cancellation that cannot be sent is a diagnostic", async () => {
    const { ask, peer, diagnostics } = await greeted(legacyEngine);
    const controller = new AbortController();
    const failed = rejection(ask("tools/call", {}, { signal: controller.signal }));
    peer.refuse = () => new Error("pipe full");
    controller.abort();
    expect((await failed)._tag).toBe("Cancelled");
    await expect.poll(() => diagnostics.join()).toContain("pipe full");
  });
});

describe("progress and notifications", () => {
  it("delivers progress in order, also right before the answer", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const seen: Array<unknown> = [];
    const asked = ask("tools/call", {}, { onProgress: (step) => seen.push(step) });
    const { id } = await peer.next("tools/call");
    peer.say(progress(id, 1, { total: 3, message: "one" }));
    peer.say(progress(String(id), 2));
    peer.say(progress(id, 1, { total: "many" }));
    peer.say(reply(id, { done: true }));
    expect(await asked).toEqual({ done: true });
    expect(seen).toEqual([{ progress: 1, total: 3, message: "one" }, { progress: 2 }, { progress: 1 }]);
  });

  it("C-074: late, unknown and malformed progress is ignored with a diagnostic", async () => {
    const { ask, peer, diagnostics, closed, notifications } = await greeted(legacyEngine);
    const seen: Array<unknown> = [];
    const first = ask("tools/call", {}, { onProgress: (step) => seen.push(step) });
    const { id } = await peer.next("tools/call");
    peer.say(reply(id, {}));
    await first;
    const argument = "y".repeat(600 * 1024);
    const other = ask("tools/call", { argument });
    const written = await peer.next("tools/call");
    const odd = [
      progress(id, 1),
      progress(999, 1),
      progress("", 1),
      progress(null, 1),
      progress({}, 1),
      progress(written["id"], 1),
      { jsonrpc: "2.0", method: "notifications/progress" },
      { jsonrpc: "2.0", method: "notifications/progress", params: [1] },
    ];
    for (const message of odd) peer.say(message);
    const third = ask("tools/call", {}, { onProgress: (step) => seen.push(step) });
    const { id: thirdId } = await peer.next("tools/call");
    peer.say(progress(thirdId, undefined));
    peer.say(progress(thirdId, "half"));
    peer.say(reply(thirdId, {}));
    peer.say(reply(written["id"], { size: written["params"].argument.length }));
    expect(await other).toEqual({ size: argument.length });
    expect(await third).toEqual({});
    expect(seen).toEqual([]);
    expect(diagnostics.length).toBeGreaterThanOrEqual(odd.length + 2);
    expect(closed).toEqual([]);
    expect(notifications).toEqual([]);
  });

  it("hands every other notification to the listener, and survives a listener that throws", async () => {
    const { peer, notifications, diagnostics, ask } = await greeted(legacyEngine);
    peer.say({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    peer.say({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: "x" } });
    peer.say({ jsonrpc: "2.0", method: "vendor/odd", params: "text" });
    expect(notifications).toEqual([
      ["notifications/tools/list_changed", {}],
      ["notifications/message", { level: "info", data: "x" }],
      ["vendor/odd", {}],
    ]);
    expect(diagnostics).toHaveLength(1);
    const asked = ask(
      "tools/call",
      {},
      {
        onProgress: () => {
          throw new Error("host bug");
        },
      },
    );
    const { id } = await peer.next("tools/call");
    peer.say(progress(id, 1));
    peer.say(reply(id, {}));
    expect(await asked).toEqual({});
    expect(diagnostics.at(-1)).toContain("host bug");
  });

  it("messages of any form are ignored with a diagnostic and break nothing", async () => {
    const { ask, peer, closed } = await greeted(legacyEngine);
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.jsonValue(),
          fc.record(
            {
              jsonrpc: fc.constantFrom("2.0", "1.0", 2),
              id: fc.oneof(fc.jsonValue({ maxDepth: 1 }), fc.constantFrom(-1, 1.5, 1e300)),
              method: fc.oneof(
                fc.jsonValue({ maxDepth: 1 }),
                fc.constantFrom("notifications/cancelled", "ping", "roots/list"),
              ),
              params: fc.jsonValue(),
              result: fc.jsonValue(),
              error: fc.jsonValue(),
            },
            { requiredKeys: [] },
          ),
        ),
        async (message) => {
          const asked = ask("check", {});
          const { id } = await peer.next("check");
          fc.pre(![id, String(id)].includes((message as Message | null)?.["id"]));
          peer.say(message);
          peer.say(reply(id, { id }));
          expect(await asked).toEqual({ id });
        },
      ),
      { numRuns: 300 },
    );
    expect(closed).toEqual([]);
  });
});

describe("the end of a session", () => {
  it("a closed connection fails what is in flight with the process's facts, once", async () => {
    const { ask, peer, closed } = await greeted(legacyEngine);
    const failed = [rejection(ask("a")), rejection(ask("b"))];
    peer.end = { exitCode: 137, stderrTail: "out of memory" };
    peer.hangUp();
    peer.hangUp();
    for (const error of await Promise.all(failed))
      expect(error).toMatchObject({
        _tag: "ConnectionLost",
        outcome: "unknown",
        exitCode: 137,
        stderrTail: "out of memory",
      });
    expect(closed).toHaveLength(1);
    expect(closed[0]).toBeInstanceOf(ConnectionLost);
  });

  it("a request after the end was not sent", async () => {
    const { ask, session, peer } = await greeted(legacyEngine);
    peer.hangUp();
    const before = peer.sent.length;
    expect(await rejection(ask("a"))).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
    expect(await rejection(session.notify("n"))).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
    expect(peer.sent).toHaveLength(before);
  });

  it("a send the transport still held back at the end was not sent", async () => {
    const { ask, peer } = await greeted(legacyEngine);
    const sent = rejection(ask("a"));
    let refuse!: (error: unknown) => void;
    Object.assign(peer.transport, { send: () => new Promise((_, reject) => (refuse = reject)) });
    const held = rejection(ask("b"));
    peer.hangUp();
    refuse(new ConnectionLost({ server: "peer", outcome: "not-sent", reason: "its pipe broke" }));
    expect(await sent).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
    expect(await held).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
  });

  it("the last error of the transport is the reason", async () => {
    const { peer, closed, ask } = await greeted(legacyEngine);
    const failed = rejection(ask("a"));
    const cause = new Error("the socket closed with code 1008");
    peer.transport.onerror?.(cause);
    peer.hangUp();
    expect(await failed).toMatchObject({ reason: cause.message, cause });
    expect(closed[0]?.message).toContain("1008");
  });

  it("an error that the connection survived is not the reason", async () => {
    const { peer, closed } = await greeted(legacyEngine);
    peer.transport.onerror?.(new Error("one odd line"));
    peer.say({ jsonrpc: "2.0", method: "notifications/message", params: {} });
    peer.hangUp();
    expect(closed[0]).toMatchObject({ reason: "the server closed the connection" });
  });

  it("close() fails what is in flight and tells the listener once, without an error", async () => {
    const { ask, session, peer, closed } = await greeted(legacyEngine);
    const failed = rejection(ask("a"));
    await session.close();
    expect(await failed).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
    await session.close();
    peer.hangUp();
    peer.say(reply(2, {}));
    expect(closed).toEqual([undefined]);
  });
});
