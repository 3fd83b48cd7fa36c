import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { Client as ModernClient } from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernStdioTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect, it } from "@effect/vitest";
import { artifactType } from "../../../src/core/artifact/alias.ts";
import { Artifact, ListArtifact } from "../../../src/core/artifact/artifact.ts";
import { McpArtifact } from "../../../src/core/artifact/mcp-artifact.ts";
import { createRuntime, type McpRuntime, ports, StdioEndpoint } from "../../../src/mod.ts";
import { nodeBinary } from "../../support/node-binary.ts";

const server = {
  command: nodeBinary,
  // Compiled code is kept between the starts.
  args: [
    "--import",
    'data:text/javascript,import m from "node:module";m.enableCompileCache()',
    fileURLToPath(new URL("../../support/artifact-gateway.ts", import.meta.url)),
  ],
};

/** Knows what every citation link has. */
class Cite extends Artifact {
  static override readonly typeAlias: string = "link:cite";
  readonly title: string;
  constructor(title: string) {
    super();
    this.title = title;
  }
  static fromWire({ title }: Readonly<Record<string, unknown>>): Artifact | undefined {
    return typeof title === "string" ? new this(title) : undefined;
  }
}
class Pubmed extends Cite {
  static override readonly typeAlias: string = "link:cite:pubmed";
}

const knowing = async (...classes: ReadonlyArray<typeof Cite>): Promise<McpRuntime> => {
  const runtime = await createRuntime({
    setup: (container) => {
      for (const one of classes) container.registerInstance(ports.artifactTypes.token, artifactType(one));
    },
  });
  await runtime.attach("a", new StdioEndpoint({ name: "a", ...server }));
  return runtime;
};

const refOf = /^artifact:link:cite:pubmed~[0-9a-f]{12}$/;

describe("typed artifacts from another process", () => {
  it("come as the exact class, the nearest ancestor, or a generic artifact; the ref stays as minted", async () => {
    const refs = new Set<string>();
    for (const [classes, expected] of [
      [[Pubmed, Cite], Pubmed],
      [[Cite], Cite],
      [[], McpArtifact],
    ] as const) {
      await using runtime = await knowing(...classes);
      const one = (await runtime.callTool({ tool: "a__find_one", arguments: { n: 1 } })).resultArtifact as Artifact;
      expect(one.constructor).toBe(expected);
      refs.add(one.ref);
      const all = (await runtime.callTool({ tool: "a__find_all" })).resultArtifact as ListArtifact;
      expect(all).toBeInstanceOf(ListArtifact);
      expect(all.items.map((item) => item.constructor)).toEqual([expected, expected]);
      expect(all.items[1]!.ref).toBe(one.ref);
    }
    expect([...refs]).toEqual([expect.stringMatching(refOf)]);
  });

  it("are plain results with one more string field for clients of the SDK, v1 and v2; refs equal the producer's", async () => {
    const v1 = new Client({ name: "third-party", version: "1.0.0" });
    const transport = new StdioClientTransport({ ...server, stderr: "pipe" });
    let log = "";
    transport.stderr!.on("data", (chunk) => (log += String(chunk)));
    await v1.connect(transport);
    const v2 = new ModernClient({ name: "third-party", version: "1.0.0" });
    await v2.connect(new ModernStdioTransport({ ...server, stderr: "ignore" }));
    for (const client of [v1, v2]) {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(["find_one", "find_all"]);
      const one = await client.callTool({ name: "find_one", arguments: { n: 0 } });
      const refs = JSON.parse(log);
      expect(one.structuredContent).toEqual({ artifact_ref: refs[0], pmid: "1", title: "Bees" });
      const all = await client.callTool({ name: "find_all" });
      const { items } = all.structuredContent as { items: ReadonlyArray<{ artifact_ref: string }> };
      expect(items.map(({ artifact_ref }) => artifact_ref)).toEqual(refs);
      const bad = await client.callTool({ name: "find_one", arguments: { n: "x" } });
      expect(bad.isError).toBe(true);
      await client.close();
    }
  });
});
