import { afterAll, describe, expect, it } from "@effect/vitest";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, type CallToolResult, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { InMemoryEndpoint, ports } from "../../../src/mod.ts";
import { Artifact, createGateway, type HostTool } from "../../../src/serve.ts";
import { fileArtifactStore } from "../../../src/stores.ts";
import { type Agent, agent, type ListeningGateway, textOf } from "./gateway-with.ts";

const directory = mkdtempSync(join(tmpdir(), "nucleo-mcp-paged-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

class Report extends Artifact {
  static override readonly typeAlias: string = "report";
  readonly lines: ReadonlyArray<string>;
  constructor(lines: ReadonlyArray<string>) {
    super();
    this.lines = lines;
  }
}
const lines = Array.from({ length: 2_000 }, (_, i) => `line ${i}`);
const report: HostTool = { name: "report", inputSchema: { type: "object" }, run: () => new Report(lines) };

const png = Buffer.concat([Buffer.from("iVBORw0KGgo=", "base64"), Buffer.alloc(20_000)]).toString("base64");
const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, title: `row ${id}` }));
const answers: Readonly<Record<string, CallToolResult>> = {
  rows: { content: [{ type: "text", text: JSON.stringify({ rows }) }], structuredContent: { rows } },
  picture: { content: [{ type: "image", data: png, mimeType: "image/png" }] },
  both: {
    content: [
      { type: "text", text: "t".repeat(9_000) },
      { type: "image", data: png, mimeType: "image/png" },
    ],
  },
  failed: { content: [{ type: "text", text: "e".repeat(9_000) }], isError: true },
  short: { content: [{ type: "text", text: "short" }], structuredContent: { n: 1 } },
};

const serveAnswers = (transport: Parameters<Server["connect"]>[0]): Promise<void> => {
  const server = new Server({ name: "library", version: "1" }, { capabilities: { tools: {} } });
  const schema = { type: "object" as const };
  const tools = Object.keys(answers).map((name) => ({ name, inputSchema: schema, outputSchema: schema }));
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => answers[params.name]!);
  return server.connect(transport);
};

/** A gateway on the directory, as one start of `serve --artifacts` is. */
const listening = async (artifacts: boolean): Promise<ListeningGateway> => {
  const gateway = await createGateway({
    serve: { artifacts, tools: [report] },
    setup: (c) => c.registerInstance(ports.artifactStore.token, fileArtifactStore({ directory })),
  });
  await gateway.runtime.attach("srv", new InMemoryEndpoint({ name: "library", connect: serveAnswers }));
  const { url, port } = await gateway.listen();
  return { gateway, url, port, [Symbol.asyncDispose]: gateway.close };
};

const call = (one: Agent, name: string, args: Readonly<Record<string, unknown>> = {}) =>
  one.client.callTool({ name, arguments: args }) as Promise<CallToolResult>;

const refIn = (text: string): string => /artifact:[a-z:]+~[0-9a-f]{12}/.exec(text)![0];

/** One page of an artifact, as the tool of the gateway answers it. */
const page = async (one: Agent, args: Readonly<Record<string, unknown>>) => {
  const result = await call(one, "get_artifact_field", args);
  return result.isError ? textOf(result) : (JSON.parse(textOf(result)) as { value: unknown; next?: number });
};

const bytes = (text: string): number => new TextEncoder().encode(text).length;

describe("a gateway that pages results", () => {
  it("answers large results within 8 KiB; the rest is read by ref, also after a restart of the gateway", async () => {
    let ref = "";
    {
      await using gate = await listening(true);
      await using one = await agent(gate.url);
      const { tools } = await one.client.listTools();
      expect(tools.map(({ name }) => name)).toEqual([
        "report",
        ...Object.keys(answers).map((name) => `srv__${name}`),
        "get_artifact_field",
      ]);
      expect(tools.filter(({ outputSchema }) => outputSchema)).toEqual([]);
      const result = await call(one, "srv__rows");
      expect(Object.keys(result)).toEqual(["content"]);
      expect(bytes(textOf(result))).toBeLessThanOrEqual(8_192);
      ref = refIn(textOf(result));
      expect(await page(one, { ref, pointer: "/rows/19999/title" })).toMatchObject({ value: "row 19999" });
    }
    await using gate = await listening(true);
    await using other = await agent(gate.url);
    const read: Array<unknown> = [];
    for (let offset: number | undefined = 0; offset !== undefined;) {
      const { value, next } = (await page(other, { ref, pointer: "/rows", offset })) as {
        value: ReadonlyArray<unknown>;
        next?: number;
      };
      read.push(...value);
      offset = next;
    }
    expect(read).toEqual(rows);
    expect(await page(other, { ref: "artifact:mcp~000000000000" })).toMatch(/no artifact 'artifact:mcp~000000000000'/);
    expect(await page(other, { ref, pointer: "/rows/x" })).toMatch(/leads nowhere/);
    expect(await page(other, {})).toMatch(/ref/);
  });

  it("leaves short results, pictures and errors what they are", async () => {
    await using gate = await listening(true);
    await using one = await agent(gate.url);
    expect(await call(one, "srv__short")).toEqual(answers["short"]);
    expect(await call(one, "srv__picture")).toEqual(answers["picture"]);
    const both = await call(one, "srv__both");
    expect(both.content[1]).toEqual(answers["both"]!.content[1]);
    expect(bytes(textOf(both))).toBeLessThanOrEqual(8_192);
    const failed = await call(one, "srv__failed");
    expect([failed.isError, textOf(failed).includes("[cut: ")]).toEqual([true, true]);
  });

  it("artifacts of the host's own tools are whole, and are read by their refs after a restart, too", async () => {
    let ref = "";
    {
      await using gate = await listening(true);
      await using one = await agent(gate.url);
      const { structuredContent } = await call(one, "report");
      expect(structuredContent).toEqual({ artifact_ref: expect.stringMatching(/^artifact:report~/), lines });
      ref = (structuredContent as { artifact_ref: string }).artifact_ref;
      expect(await page(one, { ref, pointer: "/lines/7" })).toMatchObject({ value: "line 7" });
    }
    await using gate = await listening(true);
    await using other = await agent(gate.url);
    expect(await page(other, { ref, pointer: "/lines/1999" })).toMatchObject({ value: "line 1999" });
  });

  it("passes everything on whole where the host did not ask for pages", async () => {
    await using gate = await listening(false);
    await using one = await agent(gate.url);
    const { tools } = await one.client.listTools();
    expect(tools.some(({ name }) => name === "get_artifact_field")).toBe(false);
    expect(tools.filter(({ outputSchema }) => outputSchema)).toHaveLength(Object.keys(answers).length);
    expect(await call(one, "srv__rows")).toEqual(answers["rows"]);
  });
});
