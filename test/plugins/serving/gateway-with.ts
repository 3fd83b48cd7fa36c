/** Gateways in front of scripted servers, and real SDK clients in front of gateways. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { ClientCapabilities } from "@modelcontextprotocol/sdk/types.js";
import { type McpConnector, StdioEndpoint } from "../../../src/mod.ts";
import { createGateway, type Gateway, type GatewayOptions, type HttpOptions } from "../../../src/serve.ts";
import { readLog, scriptedStdio, type StdioProgram } from "../../support/scripted-stdio.ts";

export const folder: string = mkdtempSync(join(tmpdir(), "nucleo-mcp-gateway-"));
export const at = (name: string): string => join(folder, name);

export const echoTool: { readonly name: string } & Record<string, unknown> = {
  name: "echo",
  description: "Answers its arguments.",
  inputSchema: { type: "object" },
};

/** Attaches a scripted server under a handle; its pids go to `<handle>.pids`, its log to `<handle>.log`. */
export const attach = (gateway: Gateway, handle: string, program: StdioProgram = {}): Promise<McpConnector> => {
  const files = { pidFile: at(`${handle}.pids`), log: at(`${handle}.log`) };
  return gateway.runtime.attach(
    handle,
    new StdioEndpoint({ name: handle, ...scriptedStdio({ ...files, ...program }) }),
  );
};

/** How many messages with this method reached the server of a handle. */
export const seen = (handle: string, method: string): number =>
  readLog(at(`${handle}.log`)).filter((line) => line.kind === "message" && line.message["method"] === method).length;

export interface ListeningGateway extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly url: string;
  readonly port: number;
}

/** A gateway that listens, and how to reach it. */
export const listening = async (options: GatewayOptions = {}, http: HttpOptions = {}): Promise<ListeningGateway> => {
  const gateway = await createGateway(options);
  const { url, port } = await gateway.listen(http);
  return { gateway, url, port, [Symbol.asyncDispose]: gateway.close };
};

export interface Agent extends AsyncDisposable {
  readonly client: Client;
  readonly transport: StreamableHTTPClientTransport;
}

/** A client of the SDK over Streamable HTTP. */
export const agent = async (
  url: string,
  capabilities: ClientCapabilities = {},
  prepare: (client: Client) => void = () => {},
  headers: Record<string, string> = {},
): Promise<Agent> => {
  const client = new Client({ name: "agent", version: "1.0.0" }, { capabilities });
  prepare(client);
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport as unknown as Transport);
  return { client, transport, [Symbol.asyncDispose]: () => client.close() };
};

/** The text of a result's first block. */
export const textOf = (result: unknown): string =>
  (result as { readonly content: ReadonlyArray<{ readonly text: string }> }).content[0]!.text;
