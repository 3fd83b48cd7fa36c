/** A host whose artifacts are kept in a folder: prints what a model reads of three results, then waits to be ended. */
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { createRuntime, InMemoryEndpoint, type McpEvent, ports } from "../../src/mod.ts";
import { fileArtifactStore } from "../../src/stores.ts";

const [directory = ""] = process.argv.slice(2);
const rows = Array.from({ length: 2_000 }, (_, i) => ({ id: i, title: `row ${i}` }));
const answers: Readonly<Record<string, unknown>> = {
  rows: { rows, more: { rows } },
  cite: { artifact_ref: "artifact:link:cite:pubmed~abc123", pmid: "1", title: "Bees", text: "z".repeat(20_000) },
  text: "t".repeat(20_000),
};

const connect = (transport: Parameters<Server["connect"]>[0]): Promise<void> => {
  const server = new Server({ name: "library", version: "1" }, { capabilities: { tools: {} } });
  const tools = Object.keys(answers).map((name) => ({ name, inputSchema: { type: "object" as const } }));
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => {
    const answer = answers[params.name];
    return { content: [{ type: "text", text: typeof answer === "string" ? answer : JSON.stringify(answer) }] };
  });
  return server.connect(transport);
};

const runtime = await createRuntime({
  setup: (c) => {
    c.registerInstance(ports.artifactStore.token, fileArtifactStore({ directory }));
    const on = (event: McpEvent): void => void (event.type === "diagnostic" && console.log(event.message));
    c.registerInstance(ports.observers.token, { on });
  },
});
await runtime.attach("library", new InMemoryEndpoint({ name: "library", connect }));
const texts: Array<string> = [];
for (const name of Object.keys(answers))
  texts.push(runtime.modelText(await runtime.callTool({ tool: `library__${name}` })));
console.log(JSON.stringify(texts));
process.stdin.resume().once("end", () => void runtime.close());
