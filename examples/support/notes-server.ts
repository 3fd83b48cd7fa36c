/** A small MCP server on the official SDK, for the host's own process: notes, and tools that ask the host. */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { RequestHandlerExtra } from "@modelcontextprotocol/sdk/shared/protocol.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  type ServerNotification,
  type ServerRequest,
  type Tool,
} from "@modelcontextprotocol/sdk/types.js";

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>;

const text = { type: "object", properties: { text: { type: "string" } }, required: ["text"] } as const;
const none = { type: "object" } as const;

const tools: ReadonlyArray<Tool> = [
  { name: "add", description: "Adds a note", inputSchema: text },
  { name: "clear", description: "Deletes all notes", inputSchema: none, annotations: { destructiveHint: true } },
  { name: "summarize", description: "Sums the notes up by the host's model", inputSchema: none },
  { name: "sign", description: "Asks the user for a name", inputSchema: none },
  { name: "where", description: "Tells the folders the host works in", inputSchema: none },
  { name: "export", description: "Writes the notes down, slowly: until it is cancelled", inputSchema: none },
];

/** What became of exports, for a host that wants to see it. */
export const exports: { cancelled: number } = { cancelled: 0 };

/** Reports progress every few milliseconds until the client cancels. */
const exportNotes = async ({ signal, sendNotification, _meta }: Extra): Promise<string> => {
  const progressToken = _meta?.progressToken;
  signal.addEventListener("abort", () => exports.cancelled++);
  for (let progress = 1; !signal.aborted; progress++) {
    if (progressToken !== undefined)
      await sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: 1000 } });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  return "cancelled";
};

/** Starts a server on its end of an in-memory channel. */
export const startNotes = (transport: Transport): Promise<void> => {
  const server = new Server({ name: "notes", version: "1.0.0" }, { capabilities: { tools: {} } });
  const notes: Array<string> = [];
  const act: Record<string, (extra: Extra, input: string) => string | Promise<string>> = {
    add: (_extra, input) => `${notes.push(input)} notes`,
    clear: () => `${notes.splice(0).length} notes deleted`,
    summarize: async () => {
      const question = { type: "text", text: `Sum up: ${notes.join(", ")}` } as const;
      const messages = [{ role: "user" as const, content: question }];
      const { content } = await server.createMessage({ messages, maxTokens: 100 });
      return content.type === "text" ? content.text : `(${content.type})`;
    },
    sign: async () => {
      const { action, content } = await server.elicitInput({
        message: "Who signs?",
        requestedSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] },
      });
      return action === "accept" ? `signed by ${String(content?.["name"])}` : `not signed: ${action}`;
    },
    where: async () => (await server.listRoots()).roots.map(({ uri }) => uri).join(", "),
    export: exportNotes,
  };
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: [...tools] }));
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) => {
    const answer = await act[params.name]!(extra, String(params.arguments?.["text"] ?? ""));
    return { content: [{ type: "text", text: answer }] };
  });
  return server.connect(transport);
};
