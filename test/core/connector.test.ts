import { describe, expect, it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { HttpEndpoint, type McpError, ports, StdioEndpoint } from "../../src/effect.ts";
import type { McpEvent } from "../../src/core/events.ts";
import { runtimeWith, settle } from "../support/runtime-with.ts";
import { ScriptedEndpoint, scriptedEngine, scriptedTransport } from "../support/scripted-endpoint.ts";

const tool = (name: unknown, more: object = {}) => ({ name, inputSchema: { type: "object" }, ...more });

describe("attach and detach", () => {
  it.effect("does no I/O, and counts attaches per connector and connectors per endpoint", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("s");
      const a = yield* runtime.attach("a", endpoint);
      const again = yield* runtime.attach("a", endpoint);
      const b = yield* runtime.attach("b", endpoint);
      expect(again).toBe(a);
      expect(b).not.toBe(a);
      expect(endpoint.opened).toBe(0);
      yield* Effect.scoped(runtime.client(endpoint));
      yield* runtime.detach(a);
      yield* runtime.detach(b);
      expect(endpoint.live).toBe(1);
      yield* runtime.detach(a);
      expect(endpoint.live).toBe(0);
      expect((yield* runtime.health).endpoints).toEqual([]);
    }),
  );

  it.effect("detaching what is no connector names the fix", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const pending = Effect.runPromise(Effect.succeed("a connector one day"));
      for (const odd of ["x", undefined, null, {}, new ScriptedEndpoint("s"), pending]) {
        const error = yield* Effect.flip(runtime.detach(odd as never));
        expect(error).toMatchObject({ _tag: "InvalidEndpoint", field: "connector" });
        expect(error.message).toContain("Pass what attach answered");
      }
    }),
  );

  it.effect("detaching twice is a no-op with a diagnostic", () =>
    Effect.gen(function* () {
      const events: Array<McpEvent> = [];
      const runtime = yield* runtimeWith({ events });
      const endpoint = new ScriptedEndpoint("s");
      const kept = yield* runtime.attach("kept", endpoint);
      const gone = yield* runtime.attach("gone", endpoint);
      yield* runtime.detach(gone);
      yield* runtime.detach(gone);
      yield* settle;
      expect(events.filter((event) => event.type === "diagnostic").length).toBe(1);
      expect(kept.attached).toBe(true);
      expect(gone.attached).toBe(false);
      expect((yield* runtime.health).endpoints[0]?.connectors).toBe(1);
    }),
  );

  it.effect("attachScoped ends with its scope", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      yield* Effect.scoped(runtime.attachScoped("s", new ScriptedEndpoint("s")));
      expect(runtime.connectors()).toEqual([]);
    }),
  );

  const invalid: ReadonlyArray<readonly [string, string, unknown, string]> = [
    ["an unknown transport kind", "s", { transportType: "carrier-pigeon", endpointId: "x" }, "transportType"],
    ["an empty command", "s", new StdioEndpoint({ name: "x", command: " " }), "command"],
    ["a missing name", "s", new StdioEndpoint({ command: "node" } as never), "name"],
    [
      "arguments that are no strings",
      "s",
      new StdioEndpoint({ name: "x", command: "node", args: [1] as never }),
      "args",
    ],
    ["a bad URL", "s", new HttpEndpoint({ url: "not a url" }), "url"],
    ["a scheme that is not HTTP", "s", new HttpEndpoint({ url: "ftp://host/mcp" }), "url"],
    ["an unknown flavor", "s", new HttpEndpoint({ url: "http://host/", flavor: "smoke" as never }), "flavor"],
    [
      "a line break in a header",
      "s",
      new HttpEndpoint({ url: "http://host/", headers: { "x-a": "1\r\nx: 2" } }),
      "headers.x-a",
    ],
    [
      "a credential over SSE",
      "s",
      new HttpEndpoint({ url: "http://host/", flavor: "sse", credential: { kind: "bearer", user: "u" } }),
      "credential",
    ],
    [
      "a credential beside an Authorization header",
      "s",
      new HttpEndpoint({
        url: "http://host/",
        headers: { authorization: "x" },
        credential: { kind: "bearer", user: "u" },
      }),
      "credential",
    ],
    ["an empty handle", "", new ScriptedEndpoint("s"), "handle"],
    ["no endpoint at all", "s", undefined, "endpoint"],
    [
      "a request timeout of zero",
      "s",
      new StdioEndpoint({ name: "x", command: "node", requestTimeout: 0 }),
      "requestTimeout",
    ],
  ];
  for (const [what, handle, endpoint, field] of invalid) {
    it.effect(`refuses ${what}, naming the field and the fix`, () =>
      Effect.gen(function* () {
        const runtime = yield* runtimeWith();
        const healthy = new ScriptedEndpoint("healthy");
        healthy.answer = () => ({ content: [] });
        yield* runtime.attach("healthy", healthy);
        const error = yield* Effect.flip(runtime.attach(handle, endpoint as never));
        expect(error).toMatchObject({ _tag: "InvalidEndpoint", field });
        expect((error as { fix?: string }).fix).toMatch(/\w{3,}/);
        yield* runtime.callTool({ tool: "healthy__echo" });
      }),
    );
  }
});

describe("providers", () => {
  it.effect("one bad tool is set aside with its reason, the others register", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("s");
      endpoint.tools = [
        tool("good"),
        tool("scalar", { inputSchema: { type: "string" } }),
        tool(""),
        null,
        "text",
        tool("good", { description: "a second one" }),
        tool("missing schema", { inputSchema: undefined }),
        tool("fine"),
      ];
      const connector = yield* runtime.attach("s", endpoint);
      const providers = yield* connector.providers();
      expect(providers.map((provider) => provider.tool)).toEqual(["good", "fine"]);
      expect(connector.skipped.length).toBe(6);
      expect(connector.skipped.every(({ reason }) => reason.length > 5)).toBe(true);
    }),
  );

  it.effect("a failed listing answers the last good list, says why, and is tried again later", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { breakerCooldown: 1000 } });
      const endpoint = new ScriptedEndpoint("s");
      endpoint.attempts = ["fail"];
      const connector = yield* runtime.attach("s", endpoint);
      expect(yield* connector.providers()).toEqual([]);
      expect(connector.status).toMatchObject({ state: "failed", error: { _tag: "ConnectFailed" } });
      endpoint.attempts = ["ok"];
      yield* TestClock.adjust("4 seconds");
      yield* connector.providers();
      expect(endpoint.opened).toBe(1);
      yield* TestClock.adjust("1 second");
      expect((yield* connector.providers()).length).toBe(1);
      expect(connector.status).toMatchObject({ state: "listed", error: undefined });
    }),
  );

  it.effect("lists once for many callers, and anew after list_changed", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const endpoint = new ScriptedEndpoint("s");
      const gate = yield* Deferred.make<void, McpError>();
      endpoint.attempts = [gate];
      const connector = yield* runtime.attach("s", endpoint);
      const callers = yield* Effect.forEach(Array.from({ length: 20 }), () => Effect.forkChild(connector.providers()));
      yield* settle;
      yield* Deferred.succeed(gate, undefined);
      const lists = yield* Effect.forEach(callers, Fiber.join);
      expect(lists.every((list) => list === lists[0])).toBe(true);
      endpoint.tools = [tool("echo"), tool("new")];
      expect((yield* runtime.tools()).map(({ name }) => name)).toEqual(["s__echo"]);
      endpoint.listeners[0]!.onNotification("notifications/tools/list_changed", {});
      expect((yield* runtime.tools()).map(({ name }) => name)).toEqual(["s__echo", "s__new"]);
    }),
  );

  it.effect("listing wakes no idle server whose list is known", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({ settings: { idleTimeout: 1000 } });
      const endpoint = new ScriptedEndpoint("s");
      yield* runtime.attach("s", endpoint);
      yield* runtime.tools();
      yield* TestClock.adjust("1 second");
      expect(endpoint.live).toBe(0);
      expect((yield* runtime.tools()).length).toBe(1);
      expect(endpoint.opened).toBe(1);
    }),
  );

  it.effect("a server slower than `within` delays nobody", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const slow = new ScriptedEndpoint("slow");
      slow.attempts = ["hang"];
      yield* runtime.attach("slow", slow);
      yield* runtime.attach("quick", new ScriptedEndpoint("quick"));
      const listing = yield* Effect.forkChild(runtime.tools({ within: "1 second" }));
      yield* settle;
      yield* TestClock.adjust("1 second");
      expect((yield* Fiber.join(listing)).map(({ name }) => name)).toEqual(["quick__echo"]);
    }),
  );
});

describe("names", () => {
  it.effect("C-047: names are legal and unique, do not depend on order, and reach the exact tool", () =>
    Effect.gen(function* () {
      const long = "x".repeat(70);
      const raw = [
        "a.b",
        "a_b",
        "a/b",
        "find me",
        "🙂",
        "9lives",
        "__proto__",
        "constructor",
        `${long}one`,
        `${long}two`,
      ];
      const namesOf = (tools: ReadonlyArray<string>) =>
        Effect.gen(function* () {
          const runtime = yield* runtimeWith();
          const endpoint = new ScriptedEndpoint("s");
          endpoint.tools = tools.map((name) => tool(name));
          endpoint.answer = (_method, params) => ({ content: [{ type: "text", text: String(params?.["name"]) }] });
          yield* runtime.attach("s", endpoint);
          const definitions = yield* runtime.tools();
          for (const definition of definitions) {
            expect(definition.name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
            expect((yield* runtime.callTool({ tool: definition.name })).textContent).toBe(definition.tool);
          }
          return new Map(definitions.map((definition) => [definition.tool, definition.name]));
        });
      const forward = yield* namesOf(raw);
      const backward = yield* namesOf(raw.toReversed());
      expect(new Set(forward.values()).size).toBe(raw.length);
      expect(Object.fromEntries(backward)).toEqual(Object.fromEntries(forward));
    }),
  );

  it.effect("two instances under one handle both stay reachable", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith();
      const names: Array<string> = [];
      for (const who of ["alice", "bob"]) {
        const endpoint = new ScriptedEndpoint(who);
        endpoint.answer = () => ({ content: [{ type: "text", text: who }] });
        yield* runtime.attach("mail", endpoint);
      }
      for (const { name } of yield* runtime.tools()) names.push((yield* runtime.callTool({ tool: name })).textContent);
      expect(names.toSorted()).toEqual(["alice", "bob"]);
    }),
  );

  it.effect("policies hide and rename, in order", () =>
    Effect.gen(function* () {
      const runtime = yield* runtimeWith({
        setup: (container) => {
          container.registerInstance(ports.catalogPolicies.token, {
            decide: ({ name }: { name: string }) => (name === "secret" ? "hide" : "keep"),
          });
          container.registerInstance(ports.catalogPolicies.token, {
            decide: ({ name }: { name: string }) => (name === "echo" ? { rename: "say it" } : "keep"),
          });
        },
      });
      const endpoint = new ScriptedEndpoint("s");
      endpoint.tools = [tool("secret"), tool("echo"), tool("plain")];
      endpoint.answer = (_method, params) => ({ content: [{ type: "text", text: String(params?.["name"]) }] });
      yield* runtime.attach("s", endpoint);
      const names = (yield* runtime.tools()).map(({ name }) => name);
      expect(names.length).toBe(2);
      expect(names[0]).toMatch(/^say_it/);
      expect((yield* runtime.callTool({ tool: names[0]! })).textContent).toBe("echo");
      expect((yield* Effect.flip(runtime.callTool({ tool: "s__secret" })))._tag).toBe("ToolNotFound");
    }),
  );
});

describe("registration", () => {
  it.effect("names every fault at once", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        runtimeWith({
          setup: (container) => {
            container.registerInstance(ports.transports.token, scriptedTransport());
            container.registerInstance(ports.engines.token, scriptedEngine);
            container.registerInstance(ports.credentialFlows.token, { authorize: () => ({ headers: {} }) });
            container.registerInstance(ports.hostHandlers.token, {});
            container.registerInstance(ports.hostHandlers.token, {});
          },
        }),
      );
      expect(error._tag).toBe("PluginFailed");
      for (const part of [
        "'scripted'",
        "'legacy'",
        "credentialFlows: a plugin has no kind",
        "hostHandlers: 2 plugins",
      ]) {
        expect(error.message).toContain(part);
      }
    }),
  );

  it.effect("a setting that cannot be used is named, as is one that does not exist", () =>
    Effect.gen(function* () {
      for (const [settings, field] of [
        [{ idleTimeout: -1 }, "idleTimeout"],
        [{ stdioPoolMax: 1.5 }, "stdioPoolMax"],
        [{ idleTimeout: "soon" }, "idleTimeout"],
        [{ idelTimeout: 5 }, "idelTimeout"],
      ] as const) {
        const error = yield* Effect.flip(runtimeWith({ settings: settings as never }));
        expect(error).toMatchObject({ _tag: "InvalidConfig", field });
      }
    }),
  );
});

describe("endpoints from elsewhere", () => {
  it.effect("come from a loader of the kind asked for; an unknown kind names those there are", () =>
    Effect.gen(function* () {
      const endpoint = new ScriptedEndpoint("loaded");
      const runtime = yield* runtimeWith({
        setup: (container) => {
          const load = (source: string) => [{ handle: source, endpoint }];
          container.registerInstance(ports.endpointLoaders.token, { kind: "list", load });
        },
      });
      expect(yield* runtime.loadEndpoints("here", "list")).toEqual([{ handle: "here", endpoint }]);
      const error = yield* Effect.flip(runtime.loadEndpoints("here", "tarot"));
      expect(error).toMatchObject({ _tag: "InvalidConfig", field: "kind" });
      expect(error.message).toContain("mcp-json, list");
    }),
  );

  it.effect("errors are worded by the installed presenter", () =>
    Effect.gen(function* () {
      const present = (error: McpError) => `sorry: ${error.message}`;
      const runtime = yield* runtimeWith({
        setup: (container) => void container.registerInstance(ports.errorPresenter.token, { present }),
      });
      const error = yield* Effect.flip(runtime.callTool({ tool: "none" }));
      expect(runtime.presentError(error)).toMatch(/^sorry: There is no tool 'none'/);
    }),
  );
});
