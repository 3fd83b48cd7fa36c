import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import { type ScriptedHttp, startScriptedHttp } from "../../src/testing/servers/http.ts";
import { scriptedStdio } from "../support/scripted-stdio.ts";
import { isAlive, readPids } from "../support/stdio-pids.ts";
import { within } from "./run-command.ts";

const tools = [
  {
    name: "echo",
    title: "Echo",
    description: "\n  Answers its arguments.\nAnd more.",
    inputSchema: {
      type: "object",
      properties: { count: { type: "integer" }, text: { type: "string" }, list: { type: "array" } },
      required: ["count", "text"],
    },
    annotations: { readOnlyHint: true },
  },
  { name: "fail", inputSchema: { type: "object" } },
  { name: "broken", inputSchema: { type: "string" } },
];

let folder = "";
let pidFile = "";
let closed: ScriptedHttp;
const at = (name: string): string => join(folder, name);

const failure = { content: [{ type: "text", text: "it did not work" }], isError: true };

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "nucleo-mcp-commands-"));
  pidFile = at("pids");
  closed = await startScriptedHttp(({ text }) => text(401, "no"));
  const good = scriptedStdio({ tools, pidFile });
  const failing = scriptedStdio({ tools, pidFile, on: { "tools/call": [{ reply: failure }] } });
  const silent = scriptedStdio({ pidFile, on: { initialize: [{ never: true }] } });
  const unset = { command: "${NUCLEO_TEST_UNSET}", args: ["${NUCLEO_TEST_UNSET_TOO}"] };
  const files = {
    "good.json": { good },
    "mixed.json": {
      good,
      failing,
      missing: { command: at("no-such-command") },
      unset,
      closed: { url: `${closed.url}` },
      off: { command: "x", disabled: true },
    },
    "silent.json": { silent },
    "unset.json": { good, unset },
  };
  for (const [name, mcpServers] of Object.entries(files)) await writeFile(at(name), JSON.stringify({ mcpServers }));
});

afterAll(async () => {
  await closed[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const json = (text: string): any => JSON.parse(text);

describe("tools", () => {
  it("lists names, first lines of descriptions, required arguments; other servers are left alone", async () => {
    const before = readPids(pidFile).length;
    const { code, stdout, stderr } = await within("tools", "good", "-c", at("mixed.json"));
    expect(stdout).toBe("good (2 tools)\n  echo count=<integer> text=<string>\n      Answers its arguments.\n  fail\n");
    expect(stderr).toMatch(/^warning: good: tool 'broken' is left out: .*object\n$/);
    expect(code).toBe(0);
    expect(readPids(pidFile)).toHaveLength(before + 1);
  });

  it("with --json is one document: tools, skipped tools, errors", async () => {
    const { code, stdout } = await within("tools", "--json", "-c", at("mixed.json"));
    const document = json(stdout);
    expect(document.tools).toContainEqual({
      server: "good",
      name: "echo",
      exposedName: "good__echo",
      title: "Echo",
      description: tools[0]!.description,
      inputSchema: tools[0]!.inputSchema,
      annotations: { readOnlyHint: true },
    });
    expect(document.tools).toHaveLength(4);
    expect(document.skipped).toContainEqual({ server: "good", tool: "broken", reason: expect.any(String) });
    const errors = document.errors.map(({ server, tag }: any) => [server, tag]);
    expect(errors.toSorted()).toEqual([
      ["closed", "Unauthorized"],
      ["missing", "ConnectFailed"],
      ["unset", "InvalidConfig"],
      ["unset", "InvalidConfig"],
    ]);
    expect(code).toBe(4);
  });

  it("one bad entry is a warning, and the rest is listed", async () => {
    const { code, stdout, stderr } = await within("tools", "-c", at("unset.json"));
    expect(stdout).toContain("echo");
    expect(stderr).toContain("mcpServers.unset.command' uses the variable 'NUCLEO_TEST_UNSET'");
    expect(stderr).toContain("mcpServers.unset.args[0]' uses the variable 'NUCLEO_TEST_UNSET_TOO'");
    expect(code).toBe(2);
  });
});

const call = (...words: ReadonlyArray<string>) => within("call", ...words, "-c", at("mixed.json"));

describe("call", () => {
  it("turns key=value into what the schema wants, and writes the text of the result", async () => {
    const { code, stdout, stderr } = await call("good", "echo", "count=5", "text=5", 'list=["a"]');
    expect([code, json(stdout), stderr]).toEqual([0, { count: 5, text: "5", list: ["a"] }, ""]);
  });

  it("takes JSON arguments, and writes the whole result with --json; the exposed name works too", async () => {
    const { code, stdout } = await call("good", "good__echo", "--json", '{"count":1,"text":"x"}', "--json");
    expect(json(stdout)).toEqual({ content: [{ type: "text", text: '{"count":1,"text":"x"}' }], isError: false });
    expect(code).toBe(0);
  });

  it("a failure that the tool reports is exit code 1: on stderr, or in the document", async () => {
    const text = await call("failing", "fail");
    expect([text.code, text.stdout, text.stderr]).toEqual([1, "", "it did not work\n"]);
    const document = await call("failing", "fail", "--json");
    expect([document.code, json(document.stdout).isError]).toEqual([1, true]);
  });

  it.each([
    [["goood", "echo"], 2, /Did you mean good\?/],
    [["nowhere", "echo"], 2, /Servers: good, failing, missing, closed, unset\./],
    [["off", "echo"], 2, /'off' is disabled/],
    [["good", "ech"], 2, /no tool 'ech'\. Similar: echo\./],
    [["good", "broken"], 2, /'broken' cannot be used: .*object/],
    [["good", "echo", "count=many", "text=x"], 2, /\/count/],
    [["good", "echo", "text=x"], 2, /count/],
    [["good", "echo", "oops"], 2, /^error: 'oops' is not of the form key=value.*\nSee nucleo-mcp call --help\.\n$/],
    [["good", "echo", "count=1", "count=2"], 2, /^error: 'count' is given twice/],
    [["good__echo", "count=1"], 2, /^error: .* two words: nucleo-mcp call good echo, then arguments\.\n$/],
    [["good", "echo", "--json", "{"], 2, /^error: the text after --json is no JSON object\n/],
    [["unset", "x"], 2, /NUCLEO_TEST_UNSET'[\s\S]*NUCLEO_TEST_UNSET_TOO'/],
    [["missing", "x"], 3, /no-such-command' does not exist/],
    [["closed", "x"], 4, /wants credentials/],
  ])("bad input: %j is exit code %i", async (words, code, message) => {
    const outcome = await call(...words);
    expect(outcome.stderr).toMatch(message);
    expect([outcome.code, outcome.stdout]).toEqual([code, ""]);
  });

  it("bad input: with --json the error is the document", async () => {
    const unknown = await call("goood", "echo", "--json");
    expect([unknown.code, json(unknown.stdout).error.tag]).toEqual([2, "InvalidConfig"]);
    const usage = await within("call", "good", "--json");
    expect([usage.code, json(usage.stdout).error.tag, usage.stderr]).toEqual([2, "UsageError", ""]);
    const file = await within("tools", "--json", "-c", at("no.json"));
    expect([file.code, json(file.stdout).error.source]).toEqual([2, at("no.json")]);
  });

  it("--timeout bounds the connection", async () => {
    const { code, stderr } = await within("tools", "--timeout", "300ms", "-c", at("silent.json"));
    expect([code, stderr]).toEqual([3, expect.stringContaining("phase handshake")]);
  });

  it("--verbose tells on stderr what happens", async () => {
    const { stdout, stderr } = await within("tools", "--verbose", "-c", at("good.json"));
    expect(stderr).toMatch(/INFO MCP server 'good' connected/);
    expect(stdout).toMatch(/^good \(2 tools\)/);
  });
});

describe("health and doctor", () => {
  it("health connects every server and shows the snapshot", async () => {
    const { code, stdout } = await within("health", "--json", "-c", at("mixed.json"));
    const { endpoints, connectors, gates } = json(stdout);
    const states = Object.fromEntries(endpoints.map(({ server, state }: any) => [server, state]));
    expect(states).toEqual({ good: "ready", failing: "ready", missing: "broken", closed: "idle" });
    expect(connectors).toContainEqual(expect.objectContaining({ handle: "good", tools: 2, skipped: 1 }));
    expect(gates).toContainEqual(expect.objectContaining({ name: "mcp:stdio", used: 0 }));
    expect(code).toBe(4);
    const text = await within("health", "-c", at("good.json"));
    expect(text.stdout).toMatch(/^Servers\ngood {2}ready {2}stdio {2}pid \d+ {2}[\d-]+ {2}2 tools\n\nGates\n/);
    expect(text.code).toBe(0);
    const mixed = await within("health", "-c", at("mixed.json"));
    expect(mixed.stdout).toMatch(/^missing {2}.*broken .*no-such-command' does not exist/m);
    expect(mixed.stdout).toMatch(/^closed .*idle .*wants credentials/m);
  });

  it("doctor tells each server's state, what is wrong, and how to mend it", async () => {
    const { code, stdout } = await within("doctor", "-c", at("mixed.json"));
    const line = (start: string) => stdout.split("\n").find((one) => one.startsWith(start)) ?? "";
    expect(line("FAIL unset [config]")).toContain("Set NUCLEO_TEST_UNSET in the environment");
    expect(line("ok   good [tools]")).toMatch(/scripted 1\.0\.0, protocol [\d-]+, 2 tools, connected in \d+ ms$/);
    expect(line("warn good [tools]")).toContain("tool 'broken' is left out");
    expect(line("FAIL missing [connect]")).toContain("Correct the path in 'command'");
    expect(line("FAIL closed [connect]")).toContain("Check the endpoint's headers or credential");
    expect(stdout).toContain("off is disabled.\n");
    expect(stdout).toMatch(/\d of \d findings need mending\.\n$/);
    expect(code).toBe(4);
  });

  it("doctor with --json is one document; a skipped tool alone is exit code 1", async () => {
    const { code, stdout } = await within("doctor", "--json", "-c", at("good.json"));
    expect(json(stdout)).toMatchObject({
      fine: false,
      findings: [
        { server: "good", state: "fine" },
        { server: "good", state: "warning", message: expect.stringContaining("broken") },
      ],
    });
    expect(code).toBe(1);
  });

  it("doctor --dialect says what a provider makes of the schemas", async () => {
    const { stdout } = await within("doctor", "--dialect", "openai-strict", "-c", at("good.json"));
    expect(stdout).toMatch(
      /ok {3}good \[schemas\] openai-strict takes \d of 2 tools as they are; its dialect rewrites \d/,
    );
    expect((await within("doctor", "--dialect", "klingon", "-c", at("good.json"))).code).toBe(2);
  });

  it("leaves no process behind", () => {
    const pids = readPids(pidFile);
    expect(pids.length).toBeGreaterThan(5);
    expect(pids.filter(isAlive)).toEqual([]);
  });
});
