/** Pure: where MCP hosts keep their servers, and their entries in the terms of mcp.json. */
import * as Result from "effect/Result";
import * as Toml from "effect/encoding/Toml";
import { isRecord } from "../core/artifact/json.ts";
import { parseJsonc } from "../plugins/endpoints/jsonc.ts";

type Json = Readonly<Record<string, unknown>>;

/** What the places depend on. */
export interface Places {
  readonly platform: string;
  readonly home: string;
  /** The working directory: hosts have configurations of a project too. */
  readonly project: string;
  /** Moves some of the places; empty where another home is looked at. */
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface HostConfig {
  readonly host: string;
  readonly path: string;
  /** The servers of a file's text. Throws when it cannot be read as what it should be. */
  readonly read: (text: string) => Json;
}

const section = (root: unknown, key: string): Json => {
  const found = isRecord(root) ? root[key] : undefined;
  return isRecord(found) ? found : {};
};

/** All strings in a value, changed. */
const mapText = (value: unknown, change: (text: string) => string): unknown => {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapText(item, change));
  return isRecord(value)
    ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapText(item, change)]))
    : value;
};

const kept = ["command", "args", "env", "cwd", "type", "url", "headers", "disabled"] as const;

/** Only what mcp.json knows. Hosts' own settings, such as timeouts and approvals, stay with them. */
const plain = (entry: Json): Json =>
  Object.fromEntries(kept.flatMap((key) => (entry[key] === undefined ? [] : [[key, entry[key]]])));

const each = (servers: Json, change: (entry: Json) => Json = (entry) => entry): Json =>
  Object.fromEntries(
    Object.entries(servers).flatMap(([name, entry]) => (isRecord(entry) ? [[name, plain(change(entry))]] : [])),
  );

const jsonServers =
  (key: string, change?: (entry: Json) => Json): HostConfig["read"] =>
  (text) =>
    each(section(parseJsonc(text), key), change);

const claudeCode =
  (project: string): HostConfig["read"] =>
  (text) => {
    const root = parseJsonc(text);
    const ofProject = section(section(root, "projects"), project);
    return { ...each(section(root, "mcpServers")), ...each(section(ofProject, "mcpServers")) };
  };

/** `url` is SSE there, `httpUrl` Streamable HTTP; `$NAME` stands for a variable. */
const gemini = (entry: Json): Json => {
  const { httpUrl, url, type } = entry;
  const remote = httpUrl === undefined ? url !== undefined && { type: type ?? "sse" } : { url: httpUrl, type: "http" };
  return mapText({ ...entry, ...remote }, (text) => text.replace(/\$(?=[A-Za-z_])(\w+)/g, "${$1}")) as Json;
};

const windsurf = (entry: Json): Json => ({ ...entry, url: entry["serverUrl"] ?? entry["url"] });

const codex: HostConfig["read"] = (text) => {
  const parsed = Toml.parse(text);
  // The parser's message may quote the text, which may be a secret.
  if (Result.isFailure(parsed)) throw new Error("it is no TOML");
  return each(section(parsed.success, "mcp_servers"), (entry) => {
    const { bearer_token_env_var: bearer, env_http_headers: fromEnv, http_headers, env_vars, enabled } = entry;
    const variables = Object.entries(isRecord(fromEnv) ? fromEnv : {}).map(([name, variable]) => [
      name,
      `\${${variable}}`,
    ]);
    const headers = {
      ...(isRecord(http_headers) ? http_headers : {}),
      ...Object.fromEntries(variables),
      ...(bearer !== undefined && { Authorization: `Bearer \${${String(bearer)}}` }),
    };
    const passed = (Array.isArray(env_vars) ? env_vars : []).map((name) => [String(name), `\${${String(name)}}`]);
    const env = { ...Object.fromEntries(passed), ...(isRecord(entry["env"]) ? entry["env"] : {}) };
    return {
      ...entry,
      env: Object.keys(env).length > 0 ? env : undefined,
      headers: Object.keys(headers).length > 0 ? headers : undefined,
      type: undefined,
      ...(enabled === false && { disabled: true }),
    };
  });
};

/** `command` is a whole command line there, variables are written `{env:NAME}`. */
const opencode: HostConfig["read"] = (text) => {
  const mcp = section(parseJsonc(text), "mcp");
  return each({ ...mcp, ...section(mcp, "servers") }, (entry) => {
    const { type, command, environment, enabled, disabled } = entry;
    const [program, ...args] = Array.isArray(command) ? command : [command];
    const known = { url: entry["url"], headers: entry["headers"], cwd: entry["cwd"] };
    const local = { command: program, ...(args.length > 0 && { args }), env: environment ?? entry["env"] };
    const changed = {
      ...known,
      ...(type !== "remote" && local),
      ...((enabled === false || disabled === true) && { disabled: true }),
    };
    return mapText(changed, (value) => value.replace(/\{env:(\w+)\}/g, "${$1}")) as Json;
  });
};

/** Every file that may be there, the user's own before the project's. */
export const hostConfigs = ({ platform, home, project, environment }: Places): ReadonlyArray<HostConfig> => {
  const configHome = environment["XDG_CONFIG_HOME"] ?? `${home}/.config`;
  const applications =
    platform === "darwin"
      ? `${home}/Library/Application Support`
      : platform === "win32"
        ? (environment["APPDATA"] ?? `${home}/AppData/Roaming`)
        : configHome;
  const common = jsonServers("mcpServers");
  const of = (host: string, path: string, read: HostConfig["read"]): HostConfig => ({ host, path, read });
  return [
    of("Claude Desktop", `${applications}/Claude/claude_desktop_config.json`, common),
    of("Claude Code", `${home}/.claude.json`, claudeCode(project)),
    of("Claude Code", `${project}/.mcp.json`, common),
    of("Cursor", `${home}/.cursor/mcp.json`, common),
    of("Cursor", `${project}/.cursor/mcp.json`, common),
    of("VS Code", `${applications}/Code/User/mcp.json`, jsonServers("servers")),
    of("VS Code", `${project}/.vscode/mcp.json`, jsonServers("servers")),
    of("Codex", `${environment["CODEX_HOME"] ?? `${home}/.codex`}/config.toml`, codex),
    of("Codex", `${project}/.codex/config.toml`, codex),
    of("Gemini CLI", `${home}/.gemini/settings.json`, jsonServers("mcpServers", gemini)),
    of("Gemini CLI", `${project}/.gemini/settings.json`, jsonServers("mcpServers", gemini)),
    of("Windsurf", `${home}/.codeium/windsurf/mcp_config.json`, jsonServers("mcpServers", windsurf)),
    ...["opencode.json", "opencode.jsonc"].map((name) => of("opencode", `${configHome}/opencode/${name}`, opencode)),
    ...["opencode.json", "opencode.jsonc"].map((name) => of("opencode", `${project}/${name}`, opencode)),
  ];
};
