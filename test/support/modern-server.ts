/** A small server written with the SDK of the modern era; the same tools for every transport. */
import { inputRequired, Server } from "@modelcontextprotocol/server";

const object = (properties: Record<string, Record<string, string>> = {}) => ({ type: "object" as const, properties });

const text = (value: unknown) => ({ content: [{ type: "text" as const, text: String(value) }] });

/**
 * Tools: `add`, `ask` (elicits a name), `log` (logs at debug), `count` (reports progress),
 * `wait` (never answers; says on stderr that it was cancelled), `change` (another tool appears).
 */
export const makeModernServer = (): Server => {
  const server = new Server(
    { name: "modern", version: "2.0.0" },
    {
      capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
      instructions: "Add.",
    },
  );
  server.setRequestHandler("tools/list", () => ({
    tools: [
      { name: "add", inputSchema: object({ a: { type: "number" }, b: { type: "number" } }) },
      { name: "region", inputSchema: object({ region: { type: "string", "x-mcp-header": "Region" } }) },
      ...["ask", "log", "count", "wait", "change"].map((name) => ({ name, inputSchema: object() })),
      ...(changed ? [{ name: "late", inputSchema: object() }] : []),
    ],
    ttlMs: 60_000,
    cacheScope: "private" as const,
  }));
  server.setRequestHandler("tools/call", async ({ params }, context) => {
    const { mcpReq } = context;
    const { a, b, region } = (params.arguments ?? {}) as Record<string, any>;
    if (params.name === "add") return text(a + b);
    if (params.name === "region") return text(region);
    if (params.name === "ask") {
      const answer = mcpReq.inputResponses?.["name"] as { content?: { name?: string } } | undefined;
      if (answer) return text(`hello ${answer.content?.name}`);
      return inputRequired({
        inputRequests: {
          name: inputRequired.elicit({
            message: "Your name?",
            requestedSchema: { type: "object", properties: { name: { type: "string" } } },
          }),
        },
        requestState: "opaque state",
      });
    }
    if (params.name === "log") {
      await mcpReq.log("debug", "logged");
      return text("logged");
    }
    if (params.name === "count") {
      const progressToken = mcpReq._meta?.progressToken;
      if (progressToken !== undefined)
        await mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } });
      return text("counted");
    }
    if (params.name === "change") {
      changed = true;
      await onChange.tools(server);
      return text("changed");
    }
    if (params.name === "wait") {
      await new Promise((resolve) => mcpReq.signal.addEventListener("abort", resolve));
      process.stderr.write("cancelled\n");
    }
    return text("");
  });
  server.setRequestHandler("resources/list", () => ({ resources: [{ uri: "test://a", name: "a" }] }));
  server.setRequestHandler("resources/read", ({ params }) => ({ contents: [{ uri: params.uri, text: "content" }] }));
  return server;
};

let changed = false;

/** How a change is told: on a connection by the server itself, over HTTP by the handler that serves all requests. */
export const onChange = {
  tools: (server: Server): Promise<void> => server.sendToolListChanged(),
};
