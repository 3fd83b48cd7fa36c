/** `nucleo-mcp connect` for hosts of 2026-07-28: stdio in front, the shared gateway behind. */
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, type ClientOptions } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import { createRuntime, StdioEndpoint } from "../../../src/mod.ts";
import { readLog, scriptedStdio } from "../../support/scripted-stdio.ts";
import { isAlive, readPids, until } from "../../support/stdio-pids.ts";
import { nodeBinary } from "../../support/node-binary.ts";
import { textOf } from "./gateway-with.ts";
import { automatic, pinned, revision } from "./modern-agents.ts";

const main = fileURLToPath(new URL("../../../src/cli/main.ts", import.meta.url));
const asking = fileURLToPath(new URL("../../support/asking-server.ts", import.meta.url));
const patience = 60_000;

let folder = "";
let shim: { readonly command: string; readonly args: Array<string>; readonly env: Record<string, string> };
const at = (name: string): string => join(folder, name);

const gateways = async (): Promise<ReadonlyArray<number>> => {
  const directory = at("nucleo-mcp/gateways");
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".json"));
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(directory, name), "utf8")).pid));
};

const host = async (options: ClientOptions, prepare: (client: Client) => void = () => {}): Promise<Client> => {
  const client = new Client({ name: "host", version: "2.0.0" }, options);
  prepare(client);
  await client.connect(new StdioClientTransport({ ...shim, stderr: "inherit" }), { timeout: patience });
  return client;
};

const seen = (method: string): number =>
  readLog(at("srv.log")).filter((line) => line.kind === "message" && line.message["method"] === method).length;
const echo = (client: Client, n: number) =>
  client.callTool({ name: "srv__echo", arguments: { n } }, { timeout: patience });

beforeAll(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "nucleo-mcp-shim-")));
  const srv = scriptedStdio({
    pidFile: at("srv.pids"),
    log: at("srv.log"),
    resources: [{ uri: "s:///a", name: "a" }],
    on: {
      "resources/subscribe": [{ reply: {} }],
      "tools/call": [[{ echo: true }], [{ echo: true }], [{ never: true }], [{ never: true }]],
    },
  });
  const asks = { command: nodeBinary, args: [asking] };
  await writeFile(at("mcp.json"), JSON.stringify({ mcpServers: { srv, asks } }));
  const words = ["connect", "--config", at("mcp.json")];
  shim = {
    command: process.execPath,
    args: [...("Deno" in globalThis ? ["run", "-A"] : []), main, ...words],
    env: { ...(process.env as Record<string, string>), XDG_STATE_HOME: folder },
  };
});
afterAll(async () => {
  for (const pid of await gateways()) if (isAlive(pid)) process.kill(pid, "SIGTERM");
  await until("no server is left", () => readPids(at("srv.pids")).every((pid) => !isAlive(pid)));
  await rm(folder, { recursive: true, force: true });
});

describe("connect, for hosts of 2026-07-28", () => {
  it("hosts share the gateway; questions, cancelling and listening come through; a killed gateway is replaced", async () => {
    const heard: Array<string> = [];
    const one = await host({ ...pinned, capabilities: { elicitation: {} } }, (client) => {
      client.setRequestHandler("elicitation/create", () => ({ action: "accept", content: { name: "Eve" } }));
      client.setNotificationHandler("notifications/resources/updated", ({ params }) => void heard.push(params.uri));
      client.setNotificationHandler("notifications/tools/list_changed", () => void heard.push("tools"));
    });
    const two = await host(automatic);
    expect([one, two].map((client) => client.getNegotiatedProtocolVersion())).toEqual([revision, revision]);
    expect(textOf(await echo(one, 1))).toBe('{"n":1}');
    expect(textOf(await echo(two, 2))).toBe('{"n":2}');
    expect(readPids(at("srv.pids"))).toHaveLength(1);
    expect(textOf(await one.callTool({ name: "asks__once" }))).toBe("Eve");
    await expect(one.callTool({ name: "srv__echo", arguments: [] as never })).rejects.toThrow();
    const filter = { toolsListChanged: true, resourceSubscriptions: ["s:///a"] };
    const stream = await one.listen(filter);
    expect(stream.honoredFilter).toEqual(filter);

    const stop = new AbortController();
    const cancelled = two.callTool({ name: "srv__echo" }, { signal: stop.signal });
    cancelled.catch(() => {});
    await until("the call arrived", () => seen("tools/call") === 3, patience);
    stop.abort();
    await until("the server was told", () => seen("notifications/cancelled") === 1, patience);

    const lost = expect(two.callTool({ name: "srv__echo" }, { timeout: patience })).rejects.toThrow("was lost");
    await until("the call arrived", () => seen("tools/call") === 4, patience);
    const [gateway] = await gateways();
    process.kill(gateway!, "SIGKILL");
    await lost;
    expect(heard).toEqual([]);
    // The next request joins another gateway, and the stream goes on there.
    expect((await one.listTools(undefined, { timeout: patience })).tools.length).toBeGreaterThan(1);
    await until("told that all may have changed", () => heard.length >= 2, patience);
    expect(heard.toSorted()).toEqual(["s:///a", "tools"]);
    expect(seen("resources/subscribe")).toBe(2);
    await one.close();
    await two.close();
  }, 120_000);

  it("our own runtime is such a host", async () => {
    await using runtime = await createRuntime({ settings: { connectTimeout: "60 seconds" } });
    await using client = await runtime.client(new StdioEndpoint({ name: "shim", ...shim, era: "modern" }));
    expect([client.era, client.protocolVersion]).toEqual(["modern", revision]);
    expect((await client.listTools()).map(({ name }) => name)).toContain("srv__echo");
    await expect(client.request("x/y")).rejects.toMatchObject({ code: -32601 });
  }, 120_000);
});
