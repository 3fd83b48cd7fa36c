import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { existsSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import { readLog, scriptedStdio, type StdioProgram } from "../support/scripted-stdio.ts";
import { isAlive, readPids, until } from "../support/stdio-pids.ts";
import { start } from "./run-command.ts";

const tools = [{ name: "work", inputSchema: { type: "object" } }];

/** The start of a runtime on a busy machine, ms. */
const patience = 25_000;

let folder = "";
const at = (name: string): string => join(folder, name);

/** Writes a configuration with one scripted server; its pids and its log go to files of its name. */
const configure = async (name: string, program: StdioProgram): Promise<void> => {
  const server = scriptedStdio({ tools, pidFile: at(`${name}.pids`), log: at(`${name}.log`), ...program });
  await writeFile(at(`${name}.json`), JSON.stringify({ mcpServers: { srv: server } }));
};

/** The methods that the server has seen. */
const seen = (name: string): ReadonlyArray<string> =>
  readLog(at(`${name}.log`)).flatMap((line) => (line.kind === "message" ? [String(line.message["method"])] : []));

const alive = (name: string): ReadonlyArray<number> => readPids(at(`${name}.pids`)).filter(isAlive);

beforeAll(async () => {
  folder = realpathSync(await mkdtemp(join(tmpdir(), "nucleo-mcp-process-")));
});
afterAll(() => rm(folder, { recursive: true }));

describe("the command as a process", () => {
  it("C-085: finds the configuration of the project, and the server gets expanded values", async () => {
    await mkdir(at(".vscode"));
    const { command, args } = scriptedStdio({ tools, on: { "tools/call": [{ about: true }] } });
    const server = {
      type: "stdio",
      command,
      args: [...args, "${NUCLEO_TEST_VALUE}", "$NUCLEO_TEST_VALUE", "${NUCLEO_TEST_NONE:-a b}"],
      env: { GIVEN: "<${env:NUCLEO_TEST_VALUE}>" },
      cwd: "${workspaceFolder}/.vscode",
    };
    const text = `{ /* a comment */ "servers": { "srv": ${JSON.stringify(server)}, }, }`;
    await writeFile(at(".vscode/mcp.json"), text);
    const value = `it's "5" $HOME \${B}`;
    const { outcome } = start(["call", "srv", "work"], { cwd: folder, env: { NUCLEO_TEST_VALUE: value } });
    const { code, stdout, stderr } = await outcome;
    expect([code, stderr]).toEqual([0, ""]);
    const { argv, env, cwd } = JSON.parse(stdout);
    expect(argv.slice(-3)).toEqual([value, "$NUCLEO_TEST_VALUE", "a b"]);
    expect(env.GIVEN).toBe(`<${value}>`);
    expect(env.NUCLEO_TEST_VALUE).toBeUndefined();
    expect(cwd).toBe(at(".vscode"));
  });

  it("bad input: no configuration at all is usage, as JSON too", async () => {
    await mkdir(at("empty"));
    const { code, stdout } = await start(["tools", "--json"], { cwd: at("empty") }).outcome;
    expect(code).toBe(2);
    expect(JSON.parse(stdout).error.message).toContain("mcp.json, .mcp.json, .vscode/mcp.json");
  });

  it("Ctrl-C cancels the call, tells the server, leaves no process, and is exit code 130", async () => {
    await configure("hanging", { on: { "tools/call": [{ never: true }] } });
    const { kill, outcome } = start(["call", "srv", "work", "--json", "-c", at("hanging.json")]);
    await until("the call arrived", () => seen("hanging").includes("tools/call"), patience);
    kill("SIGINT");
    const { code, stdout } = await outcome;
    expect(code).toBe(130);
    expect(JSON.parse(stdout).error.tag).toBe("Cancelled");
    expect(seen("hanging")).toContain("notifications/cancelled");
    expect(alive("hanging")).toEqual([]);
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("%s while a server does not answer leaves no process, and is exit code %i", async (signal, expected) => {
    const name = `silent-${signal}`;
    await configure(name, { on: { initialize: [{ never: true }] } });
    const { kill, outcome } = start(["doctor", "-c", at(`${name}.json`)]);
    await until("the server was asked", () => seen(name).includes("initialize"), patience);
    kill(signal);
    expect((await outcome).code).toBe(expected);
    expect(alive(name)).toEqual([]);
  });

  it.each([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)("%s is how serve ends: no error, no process, exit code %i", async (signal, expected) => {
    const name = `served-${signal}`;
    await configure(name, {});
    const record = at(`${name}.record`);
    const { kill, outcome } = start(["serve", "--http", "127.0.0.1:0", "--record", record, "-c", at(`${name}.json`)]);
    await until("it serves", () => existsSync(record), patience);
    kill(signal);
    const { code, stderr } = await outcome;
    expect([code, stderr]).toEqual([expected, expect.stringMatching(/^1 servers of .*\n$/)]);
    expect(alive(name)).toEqual([]);
  });

  it("a second Ctrl-C exits at once", async () => {
    await configure("stubborn", { ignoreStdinEnd: true, on: { "tools/call": [{ never: true }] } });
    const env = { NUCLEO_MCP_CLOSE_GRACE: "1 minute" };
    const { kill, outcome } = start(["call", "srv", "work", "-c", at("stubborn.json")], { env });
    await until("the call arrived", () => seen("stubborn").includes("tools/call"), patience);
    kill("SIGINT");
    await until("its stdin ended", () => readLog(at("stubborn.log")).some(({ kind }) => kind === "stdin-end"));
    kill("SIGINT");
    expect((await outcome).code).toBe(130);
    for (const pid of alive("stubborn")) process.kill(pid, "SIGKILL");
  });

  it("a reader that goes away breaks nothing", async () => {
    const description = "x".repeat(1_000_000);
    await configure("large", { tools: [{ name: "work", description, inputSchema: { type: "object" } }] });
    const { stopReading, outcome } = start(["tools", "--json", "-c", at("large.json")]);
    stopReading();
    const { code, stderr } = await outcome;
    expect([code, stderr]).toEqual([0, ""]);
    expect(alive("large")).toEqual([]);
  });
});
