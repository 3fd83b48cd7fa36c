import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import type { HttpEndpoint, StdioEndpoint } from "../../../src/core/endpoint.ts";
import { InvalidConfig } from "../../../src/core/errors.ts";
import {
  inspectMcpJson,
  type LoadedEndpoint,
  mcpJsonLoader,
  parseMcpJson,
} from "../../../src/plugins/endpoints/mcp-json.ts";

const environment = { TOKEN: "s3cr3t", NAME: "n a m e", TWO: "${TOKEN}", LINES: "a\r\nX-Evil: 1", workspace: "/w" };
const options = { source: "/p/mcp.json", environment, directory: "/p" };
const parse = (file: unknown) => parseMcpJson(JSON.stringify(file), options);
const inspect = (file: unknown) => inspectMcpJson(JSON.stringify(file), options);
const one = (entry: unknown) => parse({ mcpServers: { srv: entry } })[0]!.endpoint;
const fault = (entry: unknown): InvalidConfig => {
  const { faults } = inspect({ mcpServers: { srv: entry } });
  expect(faults).toHaveLength(1);
  expect(faults[0]!.handle).toBe("srv");
  return faults[0]!.error;
};
const thrown = (run: () => unknown): InvalidConfig => {
  try {
    run();
  } catch (error) {
    if (error instanceof InvalidConfig) return error;
  }
  throw new Error("no InvalidConfig was thrown");
};

describe("mcp.json", () => {
  it("passes `pin` on, and takes nothing for it but true and false", () => {
    const entry = (pin: unknown) => ({ mcpServers: { srv: { command: "x", pin } } });
    expect([undefined, false, true].map((pin) => parse(entry(pin))[0]!.pin)).toEqual([undefined, undefined, true]);
    for (const pin of ["true", 1, null, {}]) {
      const error = fault({ command: "x", pin });
      expect([error.field, error.reason]).toEqual(["mcpServers.srv.pin", "is neither true nor false"]);
    }
  });

  it("reads local and remote servers, in both known forms", () => {
    const entries = {
      local: {
        command: "npx",
        args: ["-y", "srv"],
        env: { A: "1", PORT: 80, UNSET: null },
        cwd: "/x",
        extra: { x: 1 },
      },
      remote: { url: "https://h/mcp", headers: { "X-Key": "k" } },
      typed: { type: "stdio", command: "node" },
    };
    for (const key of ["mcpServers", "servers"]) {
      const servers = parse({ [key]: entries, inputs: [] });
      expect(servers.map(({ handle }) => handle)).toEqual(["local", "remote", "typed"]);
      const local = servers[0]!.endpoint as StdioEndpoint;
      expect([local.name, local.command, local.args, local.cwd]).toEqual(["local", "npx", ["-y", "srv"], "/x"]);
      expect(local.env).toEqual({ A: "1", PORT: "80" });
      const remote = servers[1]!.endpoint as HttpEndpoint;
      expect([remote.name, remote.url, remote.headers, remote.flavor]).toEqual([
        "remote",
        "https://h/mcp",
        { "X-Key": "k" },
        "auto",
      ]);
    }
  });

  it.each([
    [undefined, "auto"],
    ["http", "auto"],
    ["streamable-http", "streamable-http"],
    ["sse", "sse"],
  ])("type %s is the flavor %s", (type, flavor) => {
    expect((one({ type, url: "http://localhost/mcp" }) as HttpEndpoint).flavor).toBe(flavor);
  });

  it("reads comments and trailing commas", () => {
    const text = '{ // mine\n "servers": { "a": { "command": "x", /* none */ "args": [], }, }, }';
    expect(parseMcpJson(text, options).map(({ handle }) => handle)).toEqual(["a"]);
  });

  it("leaves out disabled servers, whatever is wrong with them", () => {
    const { servers, faults, disabled } = inspect({
      mcpServers: { on: { command: "x", disabled: false }, off: { command: "${NOPE}", disabled: true } },
    });
    expect([servers.map(({ handle }) => handle), faults, disabled]).toEqual([["on"], [], ["off"]]);
  });

  it("C-085: expands variables in every field, once, and without a shell", () => {
    const local = one({
      command: "${NAME}",
      args: ["${TOKEN}", "$TOKEN", "$$", "${TWO}", "--k=${NONE:-d}", "$${TOKEN}"],
      env: { T: "Bearer ${env:TOKEN}" },
      cwd: "${workspace}/x",
    }) as StdioEndpoint;
    expect(local.command).toBe("n a m e");
    expect(local.args).toEqual(["s3cr3t", "$TOKEN", "$$", "${TOKEN}", "--k=d", "${TOKEN}"]);
    expect(local.env).toEqual({ T: "Bearer s3cr3t" });
    expect(local.cwd).toBe("/w/x");
    const remote = one({
      url: "https://h/${NONE:-mcp}",
      headers: { Authorization: "Bearer ${TOKEN}" },
    }) as HttpEndpoint;
    expect([remote.url, remote.headers]).toEqual(["https://h/mcp", { Authorization: "Bearer s3cr3t" }]);
  });

  it("C-085: a missing variable names file, field and variable, and shows no value", () => {
    const { faults } = inspect({
      mcpServers: {
        "my server": {
          command: "${A}",
          args: ["ok", "${TOKEN}${B}"],
          env: { "X.Y": "${C}" },
          cwd: "${D}",
        },
        web: { url: "https://${E}", headers: { Auth: "${F} ${TOKEN}" } },
      },
    });
    expect(faults.map(({ error }) => [error.field, error.reason.match(/'(.)'/)?.[1]])).toEqual([
      ['mcpServers["my server"].command', "A"],
      ['mcpServers["my server"].args[1]', "B"],
      ['mcpServers["my server"].env["X.Y"]', "C"],
      ['mcpServers["my server"].cwd', "D"],
      ["mcpServers.web.url", "E"],
      ["mcpServers.web.headers.Auth", "F"],
    ]);
    for (const { error } of faults) {
      expect(error.message).toContain("/p/mcp.json");
      expect(error.message).toContain(error.field);
      expect(error.message).not.toContain("s3cr3t");
    }
  });

  it("C-085: a line break in a header value is refused, without showing it", () => {
    const error = fault({ url: "https://h/mcp", headers: { "X-Key": "${LINES}" } });
    expect(error.field).toBe("mcpServers.srv.headers.X-Key");
    expect(error.message).not.toContain("Evil");
  });

  it("resolves a relative cwd, and ${workspaceFolder}, against the project", () => {
    const cwd = (path: string) => (one({ command: "x", cwd: path }) as StdioEndpoint).cwd;
    expect([".", "./", "sub", "./sub", "../up", "/abs", "~/x", "C:\\x", "${workspaceFolder}/s"].map(cwd)).toEqual([
      "/p",
      "/p",
      "/p/sub",
      "/p/sub",
      "/p/../up",
      "/abs",
      "~/x",
      "C:\\x",
      "/p/s",
    ]);
    expect((one({ command: "x" }) as StdioEndpoint).cwd).toBeUndefined();
  });

  it.each([
    [{}, "mcpServers.srv", "neither 'command' nor 'url'"],
    ["npx srv", "mcpServers.srv", "no object"],
    [null, "mcpServers.srv", "no object"],
    [{ command: "" }, "mcpServers.srv.command", "empty"],
    [{ type: "stdio" }, "mcpServers.srv.command", "empty"],
    [{ command: ["npx"] }, "mcpServers.srv.command", "no string"],
    [{ command: "x", args: "-y" }, "mcpServers.srv.args", "no list"],
    [{ command: "x", args: ["-p", 80] }, "mcpServers.srv.args[1]", "no string"],
    [{ command: "x", env: ["A=1"] }, "mcpServers.srv.env", "no object"],
    [{ command: "x", env: { A: { b: 1 } } }, "mcpServers.srv.env.A", "no string"],
    [{ command: "x", cwd: "" }, "mcpServers.srv.cwd", "not a path"],
    [{ command: "x", url: "http://h" }, "mcpServers.srv.type", "both 'command' and 'url'"],
    [{ type: "websocket", url: "ws://h" }, "mcpServers.srv.type", "'websocket' is unknown"],
    [{ type: "__proto__", url: "http://h" }, "mcpServers.srv.type", "unknown"],
    [{ type: 1, command: "x" }, "mcpServers.srv.type", "no string"],
    [{ type: "http" }, "mcpServers.srv.url", "not a URL"],
    [{ url: "localhost:80/mcp" }, "mcpServers.srv.url", "scheme"],
    [{ url: "http://h", headers: { "a b": "c" } }, 'mcpServers.srv.headers."a b"', "no header name"],
    [{ url: "http://h", headers: "x" }, "mcpServers.srv.headers", "no object"],
  ])("bad input: %j is a fault of %s", (entry, field, reason) => {
    const error = fault(entry);
    expect(error.field).toBe(field);
    expect(error.reason).toMatch(new RegExp(reason));
    expect(error.fix).not.toBe("");
  });

  it("one bad server hides no good one, and all faults come at once", () => {
    const file = { mcpServers: { good: { command: "x" }, bad: { args: [1] }, worse: { command: "${X}", args: [2] } } };
    expect(inspect(file).servers.map(({ handle }) => handle)).toEqual(["good"]);
    const error = thrown(() => parse(file));
    expect(error.field).toBe("mcpServers.bad");
    for (const field of ["mcpServers.worse.command", "mcpServers.worse.args[0]"])
      expect(error.message).toContain(field);
  });

  it.each([
    ["{", "line 1, column 2"],
    ["[]", "no 'mcpServers'"],
    ["{}", "no 'mcpServers'"],
    ['{"mcpServers":[]}', "'mcpServers' is no object"],
    ['{"mcpServers":{"":{"command":"x"}}}', "no name"],
    ['{"mcpServers":{"a":{"command":"x"}},"servers":{"a":{"command":"y"}}}', "both sections"],
    ['{"mcpServers":{"a":{"command":"x"},"a":{"command":"y"}}}', "second time"],
  ])("bad input: the file %j is a fault that says %s", (text, message) => {
    expect(thrown(() => parseMcpJson(text, options)).message).toContain(message);
  });

  it("an empty list of servers is fine", () => {
    expect(parse({ mcpServers: {} })).toEqual([]);
  });

  it("nothing inherited counts as a variable", () => {
    for (const name of ["toString", "__proto__", "constructor"])
      expect(fault({ command: `\${${name}}` }).reason).toContain(name);
  });
});

describe("the mcp-json loader", () => {
  let folder = "";
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "nucleo-mcp-loader-"));
    await mkdir(join(folder, ".vscode"));
    await writeFile(join(folder, ".vscode", "mcp.json"), '{ "servers": { "a": { "command": "x", "cwd": "sub" } } }');
    await writeFile(join(folder, "bad.json"), '{ "mcpServers": { "a": {}, "b": {} } }');
  });
  afterAll(() => rm(folder, { recursive: true }));

  it("reads a file; the project of a file in .vscode is the directory above", async () => {
    const servers = (await mcpJsonLoader.load(join(folder, ".vscode", "mcp.json"))) as ReadonlyArray<LoadedEndpoint>;
    expect((servers[0]!.endpoint as StdioEndpoint).cwd).toBe(`${folder}/sub`);
  });

  it.each(["missing.json", ".vscode"])("bad input: %s cannot be read", async (name) => {
    const path = join(folder, name);
    const error = await Promise.resolve(mcpJsonLoader.load(path)).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(InvalidConfig);
    expect((error as InvalidConfig).message).toContain(path);
    expect((error as InvalidConfig).reason).toMatch(/does not exist|is a directory/);
  });

  it("bad input: rejects with every fault of the file", async () => {
    const error = await Promise.resolve(mcpJsonLoader.load(join(folder, "bad.json"))).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(InvalidConfig);
    for (const field of ["mcpServers.a", "mcpServers.b"]) expect((error as InvalidConfig).message).toContain(field);
  });
});
