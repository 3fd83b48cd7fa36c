/** A gateway: ten agents share one server process, and get the host's own tool with typed artifacts. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { StdioEndpoint } from "../src/mod.ts";
import { Artifact, createGateway } from "../src/serve.ts";
import { nodeBinary, script } from "./support/servers.ts";

const check = (held: boolean, what: string): void => {
  if (!held) throw new Error(`this did not hold: ${what}`);
  console.log(`ok: ${what}`);
};

class Citation extends Artifact {
  static override readonly typeAlias: string = "link:cite";
  readonly title: string;
  constructor(title: string) {
    super();
    this.title = title;
  }
}

await using gateway = await createGateway({
  serve: {
    tools: [
      {
        name: "cite",
        description: "Finds a publication by its title.",
        inputSchema: { type: "object", properties: { title: { type: "string" } }, required: ["title"] },
        run: ({ title }) => new Citation(String(title)),
      },
    ],
  },
});
await gateway.runtime.attach(
  "everything",
  new StdioEndpoint({ name: "everything", command: nodeBinary, args: [script("server-everything")] }),
);
const { url } = await gateway.listen();
console.log(`serving at ${url}`);

const agents = await Promise.all(
  Array.from({ length: 10 }, async (_, n) => {
    const client = new Client({ name: `agent ${n}`, version: "1.0.0" });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)) as unknown as Transport);
    return client;
  }),
);
const { tools } = await agents[0]!.listTools();
check(tools[0]!.name === "cite" && tools.some(({ name }) => name === "everything__echo"), `${tools.length} tools`);

const echoes = await Promise.all(
  agents.map((agent, n) => agent.callTool({ name: "everything__echo", arguments: { message: `I am ${n}` } })),
);
check(
  echoes.every(({ content }, n) => JSON.stringify(content).includes(`I am ${n}`)),
  "every agent got its own answer",
);
const { endpoints } = await gateway.runtime.health();
check(endpoints.length === 1 && endpoints[0]!.pid !== undefined, `one process for ten agents: ${endpoints[0]!.pid}`);

const { structuredContent } = await agents[1]!.callTool({ name: "cite", arguments: { title: "Bees" } });
const { artifact_ref: ref, title } = structuredContent as { readonly artifact_ref: string; readonly title: string };
check(ref.startsWith("artifact:link:cite~") && title === "Bees", `the artifact has one more field: ${ref}`);

await Promise.all(agents.map((agent) => agent.close()));
