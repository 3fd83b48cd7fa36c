import { describe, expect, it } from "@effect/vitest";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  ErrorCode,
  InitializeRequestSchema,
  McpError,
} from "@modelcontextprotocol/sdk/types.js";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { lift } from "../../src/core/answer.ts";
import type { HostHandlers, TransportContext } from "../../src/core/contracts.ts";
import { ConnectFailed, InvalidEndpoint } from "../../src/core/errors.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { InMemoryEndpoint, inMemoryTransport } from "../../src/transports/in-memory.ts";
import { type Connected, connectEngine, rejection, testSettings } from "../support/engine-peer.ts";

const context: TransportContext = { name: "memory", settings: testSettings, era: "legacy", diagnose: () => {} };

/** Opens the endpoint and connects the legacy engine; the connection lives as long as `use`. */
const using = async (
  connect: (transport: Transport) => unknown,
  use: (connected: Connected) => Promise<void>,
  handlers: HostHandlers = {},
): Promise<void> => {
  const scope = Effect.runSync(Scope.make());
  const endpoint = new InMemoryEndpoint({ name: "memory", connect });
  const opened = lift(inMemoryTransport.kind, () => inMemoryTransport.open(endpoint, context));
  const transport = await Effect.runPromise(Scope.provide(opened, scope));
  await use(await connectEngine(legacyEngine, transport, { handlers }));
  await Effect.runPromise(Scope.close(scope, Exit.void));
};

const capabilities = { tools: {}, logging: {} };
const server = (): Server => new Server({ name: "embedded", version: "3.0.0" }, { capabilities, instructions: "Hi." });

/** A server with one tool that reports progress. */
const startTwice = (transport: Transport) => {
  const embedded = new McpServer({ name: "embedded", version: "3.0.0" }, { instructions: "Hi." });
  embedded.registerTool("twice", { description: "Says it twice" }, async ({ _meta, sendNotification }) => {
    const progressToken = _meta!.progressToken!;
    for (const progress of [1, 2])
      await sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 2 } });
    return { content: [{ type: "text", text: "again" }] };
  });
  return embedded.connect(transport);
};

describe("in-memory endpoints", () => {
  it("are identified by what connects them; the name is a label", () => {
    const connect = server;
    const one = new InMemoryEndpoint({ name: "one", connect });
    expect(new InMemoryEndpoint({ name: "two", connect }).endpointId).toBe(one.endpointId);
    expect(new InMemoryEndpoint({ name: "one", connect: () => {} }).endpointId).not.toBe(one.endpointId);
    expect(one.validate()).toBeUndefined();
  });

  it("say what is wrong with them", () => {
    const nameless = new InMemoryEndpoint({ name: " ", connect: () => {} });
    const helpless = new InMemoryEndpoint({ name: "x", connect: undefined as never });
    expect(nameless.validate()).toBeInstanceOf(InvalidEndpoint);
    expect(nameless.validate()?.message).toContain("'name'");
    expect(helpless.validate()?.message).toContain("'connect'");
    const hasty = new InMemoryEndpoint({ name: "x", connect: server, requestTimeout: -1 });
    expect(hasty.validate()?.message).toContain("'requestTimeout'");
  });
});

describe("in-memory transport with real SDK servers", () => {
  it("calls a tool, with progress and instructions", async () => {
    await using(startTwice, async ({ ask, session }) => {
      expect(session.serverInfo).toEqual({ name: "embedded", version: "3.0.0" });
      expect(session.instructions).toBe("Hi.");
      const { tools } = await ask("tools/list");
      expect(tools.map((tool: { name: string }) => tool.name)).toEqual(["twice"]);
      const steps: Array<unknown> = [];
      const result = await ask("tools/call", { name: "twice" }, { onProgress: (step) => steps.push(step) });
      expect(result).toEqual({ content: [{ type: "text", text: "again" }] });
      expect(steps).toEqual([
        { progress: 1, total: 2 },
        { progress: 2, total: 2 },
      ]);
      expect(await rejection(ask("no/such"))).toMatchObject({ _tag: "ProtocolError", code: ErrorCode.MethodNotFound });
    });
  });

  it.each(["2024-10-07", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])(
    "C-016: speaks %s with a server that knows no newer one",
    async (protocolVersion) => {
      const start = (transport: Transport) => {
        const old = server();
        old.setRequestHandler(InitializeRequestSchema, ({ params }) => {
          if (params.protocolVersion !== protocolVersion)
            throw new McpError(ErrorCode.InvalidParams, "Unsupported protocol version", {
              supported: [protocolVersion],
            });
          return { protocolVersion, capabilities, serverInfo: { name: "old", version: "1" } };
        });
        return old.connect(transport);
      };
      await using(start, async ({ session, ask }) => {
        expect(session.protocolVersion).toBe(protocolVersion);
        expect(await ask("ping")).toEqual({});
      });
    },
  );

  it("the server samples, elicits with defaults, lists roots and cancels, as the SDK does it", async () => {
    let embedded: Server;
    const seen: Array<string> = [];
    const start = (transport: Transport) => {
      embedded = server();
      return embedded.connect(transport);
    };
    const handlers: HostHandlers = {
      roots: () => [{ uri: "file:///r" }],
      sampling: ({ maxTokens }, { signal }) =>
        maxTokens === 1
          ? new Promise<never>(() => {
              seen.push("asked");
              signal.addEventListener("abort", () => seen.push("aborted"));
            })
          : { role: "assistant", content: { type: "text", text: `${maxTokens}` }, model: "m" },
      elicitation: {
        form: () => ({ action: "accept", content: {} }),
        url: () => Effect.succeed({ action: "decline" as const }),
      },
    };
    const use = async () => {
      expect(await embedded.listRoots()).toEqual({ roots: [{ uri: "file:///r" }] });
      const messages = [{ role: "user" as const, content: { type: "text" as const, text: "?" } }];
      expect((await embedded.createMessage({ messages, maxTokens: 9 })).content).toEqual({ type: "text", text: "9" });
      const requestedSchema = { type: "object" as const, properties: { n: { type: "integer" as const, default: 4 } } };
      expect(await embedded.elicitInput({ message: "?", requestedSchema })).toEqual({
        action: "accept",
        content: { n: 4 },
      });
      expect(
        await embedded.elicitInput({ mode: "url", message: "?", elicitationId: "1", url: "https://x.example" }),
      ).toEqual({ action: "decline" });
      const controller = new AbortController();
      const sampled = rejection(embedded.createMessage({ messages, maxTokens: 1 }, { signal: controller.signal }));
      await expect.poll(() => seen).toEqual(["asked"]);
      controller.abort();
      await sampled;
      await expect.poll(() => seen).toEqual(["asked", "aborted"]);
    };
    await using(start, use, handlers);
  });

  it("cancellation reaches the server's handler, and others go on", async () => {
    const aborted: Array<unknown> = [];
    const start = (transport: Transport) => {
      const embedded = server();
      embedded.setRequestHandler(CallToolRequestSchema, ({ params }, { signal }) => {
        if (params.name === "quick") return { content: [] };
        return new Promise<never>(() => {
          signal.addEventListener("abort", () => aborted.push(params.name));
        });
      });
      return embedded.connect(transport);
    };
    await using(start, async ({ ask }) => {
      const controller = new AbortController();
      const slow = rejection(ask("tools/call", { name: "slow" }, { signal: controller.signal }));
      expect(await ask("tools/call", { name: "quick" })).toEqual({ content: [] });
      controller.abort();
      expect((await slow)._tag).toBe("Cancelled");
      await expect.poll(() => aborted).toEqual(["slow"]);
    });
  });

  it("each connection gets its server; closing the scope closes it", async () => {
    const events: Array<string> = [];
    const start = async (transport: Transport) => {
      events.push("start");
      const embedded = server();
      Object.assign(embedded, { onclose: () => events.push("close") });
      await embedded.connect(transport);
    };
    for (const _ of [1, 2]) await using(start, async ({ ask }) => expect(await ask("ping")).toEqual({}));
    expect(events).toEqual(["start", "close", "start", "close"]);
  });

  it("a server that ends fails what is in flight, once", async () => {
    let embedded: Server;
    const start = (transport: Transport) => {
      embedded = server();
      embedded.setRequestHandler(CallToolRequestSchema, () => new Promise<never>(() => {}));
      return embedded.connect(transport);
    };
    await using(start, async ({ ask, closed }) => {
      const lost = rejection(ask("tools/call", { name: "x" }));
      await embedded.close();
      expect(await lost).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown" });
      expect(await rejection(ask("ping"))).toMatchObject({ _tag: "ConnectionLost", outcome: "not-sent" });
      expect(closed).toHaveLength(1);
    });
  });

  it("a server that cannot start is a ConnectFailed", async () => {
    const reason = new Error("no database");
    const error = await rejection(
      using(
        () => Promise.reject(reason),
        async () => {},
      ),
    );
    expect(error).toBeInstanceOf(ConnectFailed);
    expect(error).toMatchObject({ phase: "transport", server: "memory" });
    expect(error.message).toContain("no database");
  });
});
