import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import { readLog, scriptedStdio } from "../support/scripted-stdio.ts";
import { isAlive, readPids, until } from "../support/stdio-pids.ts";

const main = fileURLToPath(new URL("../../src/cli/main.ts", import.meta.url));
const runner = "Deno" in globalThis ? ["run", "-A", main] : [main];
const patience = 60_000;

let folder = "";
let env: Record<string, string> = {};
const at = (name: string): string => join(folder, name);
const started: Array<ChildProcess> = [];

/** The gateways that left a record. */
const gateways = async (): Promise<ReadonlyArray<{ readonly pid: number }>> => {
  const directory = at("nucleo-mcp/gateways");
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.endsWith(".json"));
  return Promise.all(names.map(async (name) => JSON.parse(await readFile(join(directory, name), "utf8"))));
};

interface Host {
  readonly client: Client;
  /** The process that joins the host to the gateway. */
  readonly pid: number;
}

const joinGateway = async (): Promise<Host> => {
  const client = new Client({ name: "agent", version: "1.0.0" });
  const args = [...runner, "connect", "--config", at("mcp.json")];
  const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: "inherit" });
  await client.connect(transport, { timeout: patience });
  return { client, pid: transport.pid! };
};

/** How often the server `hang`, which never answers a call, has seen a method. */
const seen = (method: string): number =>
  readLog(at("hang.log")).filter((line) => line.kind === "message" && line.message["method"] === method).length;

const hang = ({ client }: Host): Promise<unknown> =>
  client.callTool({ name: "hang__echo" }, undefined, { timeout: patience });

const call = async ({ client }: Pick<Host, "client">, n: number): Promise<unknown> => {
  const result = await client.callTool({ name: "srv__echo", arguments: { n } }, undefined, { timeout: patience });
  return result.content;
};
const answer = (n: number) => [{ type: "text", text: `{"n":${n}}` }];

beforeAll(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "nucleo-mcp-connect-")));
  env = { ...(process.env as Record<string, string>), XDG_STATE_HOME: folder };
  const srv = scriptedStdio({ pidFile: at("srv.pids") });
  const hang = scriptedStdio({ log: at("hang.log"), on: { "tools/call": [{ never: true }] } });
  await writeFile(at("mcp.json"), JSON.stringify({ mcpServers: { srv, hang } }));
});
afterAll(async () => {
  for (const { pid } of await gateways()) if (isAlive(pid)) process.kill(pid, "SIGTERM");
  for (const child of started) child.kill("SIGKILL");
  await until("no server is left", () => readPids(at("srv.pids")).every((pid) => !isAlive(pid)));
  await rm(folder, { recursive: true, force: true });
});

describe("connect", () => {
  it("ten that start at once share one gateway and one server; a killed gateway is replaced, and leaves no server", async () => {
    const agents = await Promise.all(Array.from({ length: 10 }, joinGateway));
    expect(await Promise.all(agents.map((agent, n) => call(agent, n)))).toEqual(agents.map((_, n) => answer(n)));
    const [gateway, ...others] = await gateways();
    expect(others).toEqual([]);
    const [server, ...more] = readPids(at("srv.pids"));
    expect(more).toEqual([]);
    await Promise.all(agents.slice(3).map(({ client }) => client.close()));

    const [stays, loses, dies] = agents as [Host, Host, Host];
    // A host that is killed takes its calls with it, and nothing else.
    hang(dies).catch(() => {});
    await until("its call arrived", () => seen("tools/call") === 1, patience);
    process.kill(dies.pid, "SIGKILL");
    await until("its call was cancelled", () => seen("notifications/cancelled") === 1, patience);
    const lost = expect(hang(loses)).rejects.toThrow("The gateway was lost");
    await until("the call arrived", () => seen("tools/call") === 2, patience);

    process.kill(gateway!.pid, "SIGKILL");
    await until("its server is gone", () => !isAlive(server!), patience);
    await lost;
    // A new host, and one that was there before.
    const fresh = await joinGateway();
    expect(await call(fresh, 21)).toEqual(answer(21));
    expect(await call(stays, 22)).toEqual(answer(22));
    expect(readPids(at("srv.pids"))).toHaveLength(2);
    expect((await gateways()).map(({ pid }) => pid)).not.toContain(gateway!.pid);
    await Promise.all([fresh, stays, loses].map(({ client }) => client.close()));
  }, 120_000);
});

/** Starts `serve`; settles when it says where. */
const serve = (...words: ReadonlyArray<string>): Promise<{ readonly child: ChildProcess; readonly url: string }> => {
  const child = spawn(process.execPath, [...runner, "serve", "--config", at("mcp.json"), ...words], {
    env: { ...env, NUCLEO_MCP_GATEWAY_TOKEN: "t0ken" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  return new Promise((resolve, reject) => {
    child.stdout!.once("data", (data) => resolve({ child, url: String(data).trim() }));
    child.once("exit", (code) => reject(new Error(`exit code ${code}`)));
  });
};

describe("serve", () => {
  it("--http serves with the token of the environment, and ends when idle", async () => {
    const { child, url } = await serve("--http", "127.0.0.1:0", "--until-idle", "2s");
    const ended = new Promise((resolve) => child.once("exit", resolve));
    const client = new Client({ name: "agent", version: "1.0.0" });
    const requestInit = { headers: { authorization: "Bearer t0ken" } };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
    await client.connect(transport as unknown as Transport);
    expect(await call({ client }, 1)).toEqual(answer(1));
    await transport.terminateSession();
    await client.close();
    expect(await ended).toBe(0);
  }, 60_000);

  it("--artifacts keeps what it cut: its clients read on after it was killed and started again", async () => {
    const words = ["--http", "127.0.0.1:0", "--artifacts", at("artifacts")];
    const open = async (url: string): Promise<Client> => {
      const client = new Client({ name: "agent", version: "1.0.0" });
      const requestInit = { headers: { authorization: "Bearer t0ken" } };
      await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }) as unknown as Transport);
      return client;
    };
    const ask = async (client: Client, name: string, args: Readonly<Record<string, unknown>>): Promise<string> => {
      const result = await client.callTool({ name, arguments: args }, undefined, { timeout: patience });
      return (result.content as ReadonlyArray<{ readonly text: string }>)[0]!.text;
    };
    const first = await serve(...words);
    const long = "x".repeat(20_000) + "the end";
    const shown = await ask(await open(first.url), "srv__echo", { long });
    expect(shown.length).toBeLessThanOrEqual(8_192);
    const ref = /artifact:mcp~[0-9a-f]{12}/.exec(shown)![0];
    await until(
      "it is written",
      () => existsSync(at("artifacts")) && readdirSync(at("artifacts")).some((name) => name.endsWith(".json")),
    );
    const killed = new Promise((resolve) => first.child.once("exit", resolve));
    first.child.kill("SIGKILL");
    await killed;
    const second = await serve(...words);
    const client = await open(second.url);
    const page = JSON.parse(await ask(client, "get_artifact_field", { ref, pointer: "/long", offset: 20_000 }));
    expect(page.value).toBe("the end");
    await client.close();
    second.child.kill("SIGTERM");
  }, 60_000);

  it("--stdio serves the program that started it, and ends with it", async () => {
    const client = new Client({ name: "agent", version: "1.0.0" });
    const args = [...runner, "serve", "--stdio", "--config", at("mcp.json")];
    const transport = new StdioClientTransport({ command: process.execPath, args, env, stderr: "ignore" });
    await client.connect(transport, { timeout: patience });
    expect(await call({ client }, 1)).toEqual(answer(1));
    const { pid } = transport;
    await client.close();
    await until("it is gone", () => !isAlive(pid!));
    expect(isAlive(readPids(at("srv.pids")).at(-1)!)).toBe(false);
  }, 60_000);
});
