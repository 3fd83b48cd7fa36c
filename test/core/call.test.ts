import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { ConnectionLost, type McpRuntime, ports, ProtocolError, type RuntimeOptions } from "../../src/effect.ts";
import type { McpEvent } from "../../src/core/events.ts";
import { runtimeWith, settle } from "../support/runtime-with.ts";
import { ScriptedEndpoint } from "../support/scripted-endpoint.ts";

const objectSchema = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };

const attached = (runtime: McpRuntime, name = "s", tools?: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const endpoint = new ScriptedEndpoint(name);
    if (tools) endpoint.tools = tools;
    yield* runtime.attach(name, endpoint);
    yield* runtime.tools();
    return endpoint;
  });

const text = (value: string) => ({ content: [{ type: "text", text: value }] });

describe("one tool call", () => {
  it.effect("refuses arguments that break the tool's own schema before anything is sent", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = yield* attached(runtime, "s", [{ name: "say", inputSchema: objectSchema }]);
      const error = yield* Effect.flip(runtime.callTool({ tool: "s__say", arguments: { text: 7 } }));
      if (error._tag !== "InvalidArguments") throw error;
      expect(error.issues[0]?.pointer).toBe("/text");
      expect(error.message).toContain("nothing was sent");
      const list = yield* Effect.flip(runtime.callTool({ tool: "s__say", arguments: [] as never }));
      expect(list._tag).toBe("InvalidArguments");
      expect(endpoint.calls).toEqual([]);
    }),
  );

  it.effect("an input schema that cannot be compiled switches only its own check off", () =>
    Effect.gen(function* () {
      const events: Array<McpEvent> = [];
      const compile = () => {
        throw new Error("keyword 'odd' is unknown");
      };
      const setup: RuntimeOptions["setup"] = (container) =>
        void container.registerInstance(ports.schemaValidator.token, { compile });
      const runtime = yield* runtimeWith({ events, setup });
      const endpoint = yield* attached(runtime, "s", [{ name: "odd", inputSchema: { type: "object" } }]);
      endpoint.answer = () => text("ran");
      expect((yield* runtime.callTool({ tool: "s__odd", arguments: { a: "b" } })).textContent).toBe("ran");
      yield* settle;
      expect(events.some((event) => event.type === "diagnostic" && event.message.includes("'odd'"))).toBe(true);
    }),
  );

  it.effect("names the tools that look alike when there is none of that name", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      yield* attached(runtime, "files", [{ name: "read_file", inputSchema: { type: "object" } }]);
      const error = yield* Effect.flip(runtime.callTool({ tool: "files__read" }));
      expect(error).toMatchObject({ _tag: "ToolNotFound", similar: ["files__read_file"] });
    }),
  );

  it.effect("fails after silence, tells the server, and names the limit", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = yield* attached(runtime);
      const call = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "s__echo" })));
      yield* settle;
      yield* TestClock.adjust("20 seconds");
      expect(yield* Fiber.join(call)).toMatchObject({ _tag: "RequestTimeout", kind: "idle", timeout: 20_000 });
      expect(endpoint.calls[0]?.cancelled).toMatchObject({ _tag: "RequestTimeout" });
    }),
  );

  it.effect("progress keeps a call alive until its total limit", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = yield* attached(runtime);
      const call = yield* Effect.forkChild(
        Effect.flip(runtime.callTool({ tool: "s__echo" }, { timeout: "10 seconds", maxTotalTimeout: "1 minute" })),
      );
      yield* settle;
      for (let i = 0; i < 6; i++) {
        yield* TestClock.adjust("9 seconds");
        endpoint.calls[0]!.progress();
        expect(call.pollUnsafe()).toBeUndefined();
      }
      yield* TestClock.adjust("6 seconds");
      expect(yield* Fiber.join(call)).toMatchObject({ _tag: "RequestTimeout", kind: "total", timeout: 60_000 });
    }),
  );

  it.effect("a shorter limit given later is not delayed by a longer one", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      yield* attached(runtime);
      const long = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "s__echo" })));
      yield* settle;
      const short = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "s__echo" }, { timeout: 50 })));
      yield* settle;
      yield* TestClock.adjust(50);
      expect(yield* Fiber.join(short)).toMatchObject({ _tag: "RequestTimeout", timeout: 50 });
      expect(long.pollUnsafe()).toBeUndefined();
      yield* TestClock.adjust("20 seconds");
      expect((yield* Fiber.join(long))._tag).toBe("RequestTimeout");
    }),
  );

  it.effect("an interrupted call is cancelled on the server and gives its slots back", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = yield* attached(runtime);
      const call = yield* Effect.forkChild(runtime.callTool({ tool: "s__echo" }));
      yield* settle;
      const during = yield* runtime.health;
      expect(during.gates.find((gate) => gate.name === "mcp:stdio")?.used).toBe(1);
      yield* Fiber.interrupt(call);
      expect(endpoint.calls[0]?.cancelled).toMatchObject({ _tag: "Cancelled" });
      const after = yield* runtime.health;
      const gates = after.gates.filter((gate) => gate.name === "mcp:s" || gate.name === "mcp:stdio");
      expect(gates.map((gate) => gate.used)).toEqual([0, 0]);
      expect(after.endpoints[0]).toMatchObject({ inFlight: 0, users: 0 });
    }),
  );

  it.effect("C-081: a call that may have run is never sent again by itself", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = yield* attached(runtime, "s", [
        { name: "write", inputSchema: { type: "object" } },
        { name: "read", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } },
      ]);
      for (const tool of ["s__write", "s__read"]) {
        const call = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool })));
        yield* settle;
        endpoint.calls.at(-1)!.fail(new ConnectionLost({ server: "s", outcome: "unknown", reason: "dropped" }));
        expect(yield* Fiber.join(call)).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
      }
      expect(endpoint.calls.length).toBe(2);
    }),
  );

  it.effect("C-081: the host may allow it for tools that say they are safe to repeat, once", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ resend: "annotated" });
      const endpoint = yield* attached(runtime, "s", [
        { name: "write", inputSchema: { type: "object" } },
        { name: "put", inputSchema: { type: "object" }, annotations: { idempotentHint: true } },
      ]);
      const lost = () => new ConnectionLost({ server: "s", outcome: "unknown", reason: "dropped" });
      const write = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "s__write" })));
      yield* settle;
      endpoint.calls[0]!.fail(lost());
      expect((yield* Fiber.join(write))._tag).toBe("ConnectionLost");
      const put = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "s__put" })));
      yield* settle;
      endpoint.calls[1]!.fail(lost());
      yield* settle;
      endpoint.calls[2]!.fail(lost());
      expect((yield* Fiber.join(put))._tag).toBe("ConnectionLost");
      expect(endpoint.calls.map((call) => call.params?.["name"])).toEqual(["write", "put", "put"]);
    }),
  );

  const lostOnce = (then: (endpoint: ScriptedEndpoint) => void) =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ resend: "annotated" });
      const endpoint = yield* attached(runtime, "s", [
        { name: "put", inputSchema: { type: "object" }, annotations: { idempotentHint: true } },
      ]);
      const call = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "s__put" })));
      yield* settle;
      const lost = new ConnectionLost({ server: "s", outcome: "unknown", reason: "dropped" });
      endpoint.calls[0]!.fail(lost);
      then(endpoint);
      yield* settle;
      endpoint.calls[1]?.fail(new ConnectionLost({ server: "s", outcome: "not-sent", reason: "gone" }));
      expect(yield* Fiber.join(call)).toBe(lost);
      return endpoint.calls.length;
    });

  it.effect("a call that may have run says so, also when it could not be sent again", () =>
    Effect.gen(function* () {
      expect(yield* lostOnce((endpoint) => endpoint.die())).toBe(1);
      expect(yield* lostOnce(() => {})).toBe(2);
    }),
  );

  it.effect("C-081: a request that was never sent is sent on a fresh connection; a tool error never is", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = yield* attached(runtime);
      const call = yield* Effect.forkChild(runtime.callTool({ tool: "s__echo" }));
      yield* settle;
      endpoint.calls[0]!.fail(new ConnectionLost({ server: "s", outcome: "not-sent", reason: "gone" }));
      yield* settle;
      endpoint.calls[1]!.answer(text("second"));
      expect((yield* Fiber.join(call)).textContent).toBe("second");
      const refused = yield* Effect.forkChild(Effect.flip(runtime.callTool({ tool: "s__echo" })));
      yield* settle;
      endpoint.calls[2]!.fail(new ProtocolError({ server: "s", code: -32602, reason: "bad" }));
      expect(yield* Fiber.join(refused)).toMatchObject({ _tag: "ProtocolError", code: -32602 });
      expect(endpoint.calls.length).toBe(3);
    }),
  );

  it.effect("isError is a result; a host may ask for ToolFailed instead", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = yield* attached(runtime);
      endpoint.answer = () => ({ ...text("no such file"), isError: true });
      const result = yield* runtime.callTool({ tool: "s__echo" });
      expect(result).toMatchObject({ isError: true, textContent: "no such file" });
      const failed = yield* Effect.flip(runtime.callTool({ tool: "s__echo" }, { failOnToolError: true }));
      expect(failed).toMatchObject({ _tag: "ToolFailed", text: "no such file" });
    }),
  );

  it.effect("a structured result that breaks the output schema is a typed error that keeps the result", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const outputSchema = { type: "object", properties: { n: { type: "number" } }, required: ["n"] };
      const endpoint = yield* attached(runtime, "s", [{ name: "sum", inputSchema: { type: "object" }, outputSchema }]);
      endpoint.answer = () => ({ content: [], structuredContent: { n: "seven" } });
      const error = yield* Effect.flip(runtime.callTool({ tool: "s__sum" }));
      expect(error).toMatchObject({ _tag: "OutputInvalid", result: { structuredContent: { n: "seven" } } });
      endpoint.answer = () => ({ content: [], structuredContent: { n: "seven" }, isError: true });
      expect((yield* runtime.callTool({ tool: "s__sum" })).isError).toBe(true);
    }),
  );

  it.effect("asks rehydrators in order before the normalizer", () =>
    Effect.gen(function* () {
      const asked: Array<string> = [];
      const runtime = yield* runtimeWith({
        setup: (container) => {
          for (const [name, artifact] of [
            ["first", undefined],
            ["second", { typed: true }],
            ["third", { never: true }],
          ] as const) {
            container.registerInstance(ports.artifactRehydrators.token, {
              rehydrate: () => {
                asked.push(name);
                return artifact;
              },
            });
          }
        },
      });
      const endpoint = yield* attached(runtime);
      endpoint.answer = () => text("x");
      expect((yield* runtime.callTool({ tool: "s__echo" })).resultArtifact).toEqual({ typed: true });
      expect(asked).toEqual(["first", "second"]);
    }),
  );

  it.effect("a plugin that throws is a typed PluginFailed", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({
        setup: (container) => {
          const normalize = () => {
            throw new TypeError("broken plugin");
          };
          container.registerInstance(ports.resultNormalizer.token, { normalize });
        },
      });
      const endpoint = yield* attached(runtime);
      endpoint.answer = () => text("x");
      const error = yield* Effect.flip(runtime.callTool({ tool: "s__echo" }));
      expect(error).toMatchObject({ _tag: "PluginFailed", plugin: "result normalizer" });
      expect(error.message).toContain("broken plugin");
    }),
  );

  it.effect("a provider makes an adapter that outlives the client it was made with", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { idleTimeout: 1000 } });
      const endpoint = new ScriptedEndpoint("s");
      endpoint.answer = () => text("fresh");
      const connector = yield* runtime.attach("s", endpoint);
      const [provider] = yield* connector.providers();
      const adapter = yield* provider!.create();
      expect([...adapter.requirements]).toEqual([
        ["mcp:s", 1],
        ["mcp:stdio", 1],
      ]);
      yield* TestClock.adjust("1 second");
      expect(endpoint.live).toBe(0);
      expect((yield* adapter.execute({})).textContent).toBe("fresh");
      expect(endpoint.opened).toBe(2);
    }),
  );
});

describe("shutdown", () => {
  it.effect("lets running calls finish within the grace, cancels the rest, closes everything", () =>
    Effect.gen(function* () {
      const endpoint = new ScriptedEndpoint("s");
      const other = new ScriptedEndpoint("o");
      const fiber = yield* Effect.forkChild(
        Effect.scoped(
          Effect.gen(function* () {
            const runtime = yield* runtimeWith();
            yield* runtime.attach("s", endpoint);
            yield* runtime.attach("o", other);
            const quick = yield* Effect.forkDetach(Effect.exit(runtime.callTool({ tool: "s__echo" })));
            const slow = yield* Effect.forkDetach(Effect.flip(runtime.callTool({ tool: "o__echo" })));
            yield* settle;
            return { runtime, quick, slow };
          }),
        ),
      );
      yield* settle;
      yield* settle;
      yield* settle;
      expect(fiber.pollUnsafe()).toBeUndefined();
      endpoint.calls[0]!.answer(text("in time"));
      yield* TestClock.adjust("5 seconds");
      yield* settle;
      const { runtime, quick, slow } = yield* Fiber.join(fiber);
      expect(yield* Fiber.join(quick)).toMatchObject({ _tag: "Success", value: { textContent: "in time" } });
      expect((yield* Fiber.join(slow))._tag).toBe("Cancelled");
      expect(other.calls[0]?.cancelled).toMatchObject({ _tag: "Cancelled" });
      expect([endpoint.live, other.live]).toEqual([0, 0]);
      expect((yield* Effect.flip(runtime.callTool({ tool: "s__echo" })))._tag).toBe("RuntimeClosed");
      expect((yield* Effect.flip(runtime.attach("late", endpoint)))._tag).toBe("RuntimeClosed");
      expect((yield* runtime.health).state).toBe("closed");
    }),
  );
});
