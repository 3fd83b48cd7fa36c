import { describe, expect, it } from "@effect/vitest";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import { createRuntime, InMemoryEndpoint, ports } from "../../src/mod.ts";
import { makeModernServer } from "../support/modern-server.ts";

/** Asks the person within a call, as the legacy eras do. */
const makeLegacyServer = (): Server => {
  const server = new Server({ name: "legacy", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
    if (params.name === "wait") return new Promise<never>(() => {});
    const { content } = await server.elicitInput({
      message: "Your name?",
      requestedSchema: { type: "object", properties: { name: { type: "string" } } },
    });
    return { content: [{ type: "text", text: `hello ${String(content?.["name"])}` }] };
  });
  return server;
};

describe("a person who takes longer than the server may be silent", () => {
  const servers: ReadonlyArray<readonly [string, InMemoryEndpoint["connect"]]> = [
    ["legacy", (transport) => makeLegacyServer().connect(transport)],
    ["modern", (transport) => serveStdio(makeModernServer, { transport: transport as never, legacy: "reject" })],
  ];

  it.each(servers)("is waited for, in the %s era; the limit holds again afterwards", async (era, connect) => {
    await using runtime = await createRuntime({
      setup: (container) =>
        container.registerInstance(ports.hostHandlers.token, {
          elicitation: {
            form: async () => {
              await new Promise((resolve) => setTimeout(resolve, 600));
              return { action: "accept", content: { name: "Ada" } };
            },
          },
        }),
    });
    await using client = await runtime.client(new InMemoryEndpoint({ name: era, connect, requestTimeout: 300 }));
    expect(client.era).toBe(era);
    expect((await client.callTool("ask")).textContent).toBe("hello Ada");
    await expect(client.callTool("wait")).rejects.toMatchObject({ _tag: "RequestTimeout", kind: "idle" });
  });
});
