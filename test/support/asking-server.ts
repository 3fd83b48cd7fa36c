/**
 * A server of a legacy revision, over stdio, that asks its host in the middle of its work.
 * Tools: `once` (a name), `twice` (one after the other), `both` (a form and a sampling at
 * once), `page` (a URL), `hurried` (a name, given up after 1 s). The prompt `who` and the resource `who:///` ask too. Each says on
 * stderr, as a line of JSON, that its question failed.
 */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import {
  CallToolRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
} from "@modelcontextprotocol/sdk/types.js";

const server = new Server(
  { name: "asking", version: "1.0.0" },
  { capabilities: { tools: {}, prompts: {}, resources: {} } },
);

const text = (value: string) => ({ content: [{ type: "text" as const, text: value }] });

const askName = async (message: string, timeout = 60_000): Promise<string> => {
  const properties = { name: { type: "string" as const } };
  const answer = await server.elicitInput({ message, requestedSchema: { type: "object", properties } }, { timeout });
  return answer.action === "accept" ? String(answer.content?.["name"]) : answer.action;
};

const sample = async (): Promise<string> => {
  const messages = [{ role: "user" as const, content: { type: "text" as const, text: "hi" } }];
  const { content } = await server.createMessage({ messages, maxTokens: 5 });
  return "text" in content ? content.text : "";
};

const openPage = async (): Promise<string> => {
  const { action } = await server.elicitInput({
    mode: "url",
    message: "Log in",
    elicitationId: "1",
    url: "https://example.com/login",
  });
  return action;
};

const tools: Readonly<Record<string, () => Promise<string>>> = {
  once: () => askName("Your name?"),
  twice: async () => `${await askName("First?")} ${await askName("Second?")}`,
  both: async () => (await Promise.all([askName("Your name?"), sample()])).join(" "),
  page: openPage,
  hurried: () => askName("Quick?", 1_000),
};

server.setRequestHandler(ListToolsRequestSchema, () => ({
  tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: "object" as const } })),
}));
server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
  try {
    return text(await tools[params.name]!());
  } catch (cause) {
    const { message } = cause as Error;
    process.stderr.write(`${JSON.stringify({ tool: params.name, message })}\n`);
    return { ...text(message), isError: true };
  }
});
server.setRequestHandler(ListPromptsRequestSchema, () => ({ prompts: [{ name: "who" }] }));
server.setRequestHandler(GetPromptRequestSchema, async () => ({ messages: [], description: await askName("Who?") }));
server.setRequestHandler(ListResourcesRequestSchema, () => ({ resources: [{ uri: "who:///", name: "who" }] }));
server.setRequestHandler(ReadResourceRequestSchema, async ({ params }) => ({
  contents: [{ uri: params.uri, text: await askName("Who?") }],
}));
await server.connect(new StdioServerTransport());
