/** A process that serves typed artifacts over stdio; the refs it minted go to stderr. */
import { Artifact, createGateway, type HostTool } from "../../src/serve.ts";

class Pubmed extends Artifact {
  static override readonly typeAlias: string = "link:cite:pubmed";
  readonly pmid: string;
  readonly title: string;
  constructor(pmid: string, title: string) {
    super();
    this.pmid = pmid;
    this.title = title;
  }
}

const found = ["Bees", "Wasps"].map((title, n) => new Pubmed(String(n + 1), title));
const inputSchema = { type: "object", properties: { n: { type: "integer" } } };
const tools: ReadonlyArray<HostTool> = [
  { name: "find_one", inputSchema, run: ({ n = 0 }) => found[n as number] },
  { name: "find_all", inputSchema: { type: "object" }, run: async () => found },
];

console.error(JSON.stringify(found.map(({ ref }) => ref)));
const gateway = await createGateway({ serve: { tools } });
await gateway.stdio();
await gateway.close();
