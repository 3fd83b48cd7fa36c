import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import { hostConfigs } from "../../src/cli/host-configs.ts";
import { within } from "./run-command.ts";

let folder = "";
const at = (name: string): string => join(folder, name);
const put = async (home: string, files: Readonly<Record<string, unknown>>): Promise<void> => {
  for (const [name, content] of Object.entries(files)) {
    const path = join(at(home), name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === "string" ? content : JSON.stringify(content));
  }
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "nucleo-mcp-import-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** Below the home, as this platform has it. */
const applications =
  process.platform === "darwin"
    ? "Library/Application Support"
    : process.platform === "win32"
      ? "AppData/Roaming"
      : ".config";

const placesOf = (platform: string, environment = {}): ReadonlyArray<string> =>
  hostConfigs({ platform, home: "/h", project: "/p", environment }).map(({ path }) => path);

describe("import", () => {
  it("reads all hosts in their own words, and prints one mcp.json", async () => {
    await put("all", {
      [`${applications}/Claude/claude_desktop_config.json`]: {
        globalShortcut: "x",
        mcpServers: { files: { command: "npx", args: ["files", "/a"], env: { A: "1" } } },
      },
      ".claude.json": {
        mcpServers: { web: { type: "http", url: "https://web.example/mcp", headers: { K: "v" } } },
        projects: {
          [process.cwd()]: { mcpServers: { here: { command: "here" } } },
          "/elsewhere": { mcpServers: { there: { command: "there" } } },
        },
      },
      ".cursor/mcp.json": `{ // comments are allowed\n "mcpServers": { "files": { "command": "npx", "args": ["files", "/b"] }, } }`,
      [`${applications}/Code/User/mcp.json`]: {
        inputs: [],
        servers: { code: { type: "stdio", command: "code-server" } },
      },
      ".codex/config.toml": `
model = "o9"
[mcp_servers.codex]
command = "uvx"
args = ["a-server"]
env_vars = ["HOME_TOKEN"]
[mcp_servers.codex.env]
B = "2"
[mcp_servers.remote]
url = "https://remote.example/mcp"
bearer_token_env_var = "REMOTE_TOKEN"
http_headers = { X = "y" }
enabled = false
`,
      ".gemini/settings.json": {
        mcpServers: {
          gemini: { command: "g", env: { T: "$MY_TOKEN", U: "${OTHER}" }, trust: true, timeout: 5 },
          events: { url: "https://events.example/sse" },
          stream: { httpUrl: "https://stream.example/mcp" },
        },
      },
      ".codeium/windsurf/mcp_config.json": {
        mcpServers: { surf: { serverUrl: "https://surf.example/mcp", disabled: true } },
      },
      ".config/opencode/opencode.jsonc": {
        mcp: {
          open: { type: "local", command: ["bun", "x", "open"], environment: { K: "{env:KEY}" }, enabled: true },
          far: { type: "remote", url: "https://far.example/mcp", enabled: false },
        },
      },
    });
    const { code, stdout, stderr } = await within("import", "--home", at("all"));
    expect(code).toBe(0);
    const { mcpServers } = JSON.parse(stdout);
    expect(mcpServers).toMatchObject({
      files: { command: "npx", args: ["files", "/a"], env: { A: "1" } },
      web: { type: "http", url: "https://web.example/mcp", headers: { K: "v" } },
      here: { command: "here" },
      "files-cursor": { command: "npx", args: ["files", "/b"] },
      code: { type: "stdio", command: "code-server" },
      codex: { command: "uvx", args: ["a-server"], env: { B: "2", HOME_TOKEN: "${HOME_TOKEN}" } },
      remote: {
        url: "https://remote.example/mcp",
        headers: { X: "y", Authorization: "Bearer ${REMOTE_TOKEN}" },
        disabled: true,
      },
      gemini: { command: "g", env: { T: "${MY_TOKEN}", U: "${OTHER}" } },
      events: { type: "sse", url: "https://events.example/sse" },
      stream: { type: "http", url: "https://stream.example/mcp" },
      surf: { url: "https://surf.example/mcp", disabled: true },
      open: { command: "bun", args: ["x", "open"], env: { K: "${KEY}" } },
      far: { url: "https://far.example/mcp", disabled: true },
    });
    expect(mcpServers).not.toHaveProperty("there");
    expect(mcpServers.gemini).not.toHaveProperty("trust");
    expect(stderr).toContain("Cursor");
    expect(stderr).toContain("'files' of Cursor differs and is 'files-cursor' here");
    // Nothing was written anywhere.
    expect((await readdir(at("all"))).toSorted()).not.toContain("mcp.json");
  });

  it("what it writes is a configuration that the other commands read", async () => {
    await put("usable", { ".cursor/mcp.json": { mcpServers: { a: { command: "no-such-command" } } } });
    const path = at("usable/mcp.json");
    expect((await within("import", "--home", at("usable"), "--write", path)).code).toBe(0);
    const { stdout } = await within("tools", "--json", "--config", path);
    expect(JSON.parse(stdout).errors).toMatchObject([{ server: "a", tag: "ConnectFailed" }]);
  });

  it("--write keeps the old file and its servers, again and again", async () => {
    await put("kept", {
      ".cursor/mcp.json": { mcpServers: { a: { command: "new-a" }, b: { command: "b" } } },
      "mcp.json": { note: "mine", mcpServers: { a: { command: "my-a", timeout: 7 } } },
    });
    const path = at("kept/mcp.json");
    const before = await readFile(path, "utf8");
    const { code, stderr } = await within("import", "--home", at("kept"), "--write", path);
    expect(code).toBe(0);
    expect(stderr).toContain(`${path}.bak`);
    const expected = {
      note: "mine",
      mcpServers: { a: { command: "my-a", timeout: 7 }, "a-cursor": { command: "new-a" }, b: { command: "b" } },
    };
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual(expected);
    expect(await readFile(`${path}.bak`, "utf8")).toBe(before);
    // Servers' secrets are its owner's alone.
    if (process.platform !== "win32") expect((await stat(path)).mode & 0o77).toBe(0);
    await within("import", "--home", at("kept"), "--write", path);
    expect(JSON.parse(await readFile(path, "utf8"))).toEqual(expected);
    expect(await readFile(`${path}.bak`, "utf8")).toBe(before);
    expect((await readdir(at("kept"))).filter((name) => name.startsWith("mcp.json"))).toHaveLength(3);
  });

  it("bad input: a broken file hides no other, is not quoted, and our own gateway is not taken over", async () => {
    await put("broken", {
      ".cursor/mcp.json": `{ "mcpServers": { "s": s3cret } }`,
      ".codex/config.toml": `x = s3cret`,
      ".gemini/settings.json": `[]`,
      ".codeium/windsurf/mcp_config.json": {
        mcpServers: { good: { command: "good" }, odd: 7, us: { command: "npx", args: ["nucleo-mcp", "connect"] } },
      },
    });
    const { code, stdout, stderr } = await within("import", "--home", at("broken"));
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ mcpServers: { good: { command: "good" } } });
    expect(stderr.match(/it is left out/g)).toHaveLength(2);
    expect(stderr).not.toContain("s3cret");
    const path = at("broken/.cursor/mcp.json");
    const refused = await within("import", "--home", at("broken"), "--write", path);
    expect(refused.code).toBe(2);
    expect(await readFile(path, "utf8")).toContain("s3cret");
  });

  it("looks where each platform keeps its files", () => {
    expect(placesOf("darwin")).toContain("/h/Library/Application Support/Claude/claude_desktop_config.json");
    expect(placesOf("linux")).toContain("/h/.config/Code/User/mcp.json");
    expect(placesOf("win32", { APPDATA: "C:/A" })).toContain("C:/A/Claude/claude_desktop_config.json");
    expect(placesOf("linux", { CODEX_HOME: "/c" })).toContain("/c/config.toml");
    expect(placesOf("linux")).toContain("/p/.vscode/mcp.json");
  });
});
