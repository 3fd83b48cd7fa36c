/** Pure: one server of an mcp.json, from its JSON to an endpoint, or every fault in it. */
import { isRecord } from "../../core/artifact/json.ts";
import { HttpEndpoint, type McpEndpoint, StdioEndpoint } from "../../core/endpoint.ts";
import { InvalidConfig } from "../../core/errors.ts";
import { expandVariables, type Lookup } from "./expand-variables.ts";

/** What the reading of one file shares. */
export interface EntryContext {
  /** The file, for messages. */
  readonly source: string;
  readonly lookup: Lookup;
  /** Absolute; a relative `cwd` starts here. */
  readonly directory: string | undefined;
}

type Json = Readonly<Record<string, unknown>>;

/** `mcpServers.github`, `mcpServers["my server"]`. */
export const fieldPath = (parent: string, key: string): string =>
  /^[A-Za-z_$][\w$-]*$/.test(key) ? `${parent}.${key}` : `${parent}[${JSON.stringify(key)}]`;

const flavors: Readonly<Record<string, "auto" | "streamable-http" | "sse">> = {
  http: "auto",
  "streamable-http": "streamable-http",
  sse: "sse",
};
const isAbsolute = (path: string): boolean => /^(?:[/\\~]|[A-Za-z]:[/\\])/.test(path);

/** A relative path, put below the directory. */
const within = (directory: string | undefined, path: string | undefined): string | undefined => {
  if (!directory || !path || isAbsolute(path)) return path;
  const rest = path.replace(/^\.(?:[/\\]+|$)/, "");
  return rest === "" ? directory : `${directory}/${rest}`;
};

/** The fields of one entry, expanded; what is wrong with them is collected, not thrown. */
const makeReader = (entry: Json, path: string, context: EntryContext) => {
  const faults: Array<InvalidConfig> = [];
  const fault = (field: string, reason: string, fix: string): void => {
    faults.push(new InvalidConfig({ source: context.source, field, reason, fix }));
  };

  const expand = (value: unknown, field: string): string => {
    if (typeof value !== "string") {
      fault(field, "is no string", "Put the value in double quotes.");
      return "";
    }
    const expanded = expandVariables(value, context.lookup);
    if (typeof expanded === "string") return expanded;
    for (const { reason, fix } of expanded) fault(field, reason, fix);
    return "";
  };

  const text = (key: string): string | undefined =>
    entry[key] === undefined ? undefined : expand(entry[key], fieldPath(path, key));

  const list = (key: string): ReadonlyArray<string> | undefined => {
    const value = entry[key];
    const field = fieldPath(path, key);
    if (value === undefined) return undefined;
    if (Array.isArray(value)) return value.map((item, i) => expand(item, `${field}[${i}]`));
    fault(field, "is no list", "Give every argument as one string of a list.");
    return undefined;
  };

  /** VS Code allows numbers as values, and null for "not set". */
  const map = (key: string): Record<string, string> | undefined => {
    const value = entry[key];
    const field = fieldPath(path, key);
    if (value === undefined) return undefined;
    if (!isRecord(value)) {
      fault(field, "is no object", "Give names and string values.");
      return undefined;
    }
    const given = Object.entries(value).filter(([, item]) => item !== null);
    return Object.fromEntries(
      given.map(([name, item]) => [
        name,
        expand(typeof item === "number" ? String(item) : item, fieldPath(field, name)),
      ]),
    );
  };

  return { faults, fault, text, list, map };
};

const readType = (entry: Json): "stdio" | "http" | { readonly field: string; readonly reason: string } => {
  const { type, command, url } = entry;
  if (type === "stdio") return "stdio";
  if (typeof type === "string" && Object.hasOwn(flavors, type)) return "http";
  if (type !== undefined)
    return { field: "type", reason: typeof type === "string" ? `'${type}' is unknown` : "is no string" };
  if (command !== undefined && url !== undefined)
    return { field: "type", reason: "is missing, and there are both 'command' and 'url'" };
  if (command !== undefined) return "stdio";
  return url !== undefined ? "http" : { field: "", reason: "has neither 'command' nor 'url'" };
};

/** The endpoint of one entry, or its faults. Unknown keys are passed over. */
export const readEntry = (
  name: string,
  path: string,
  entry: unknown,
  context: EntryContext,
): McpEndpoint | ReadonlyArray<InvalidConfig> => {
  if (!isRecord(entry)) {
    const fix = 'Give an object such as { "command": "npx", "args": ["-y", "a-server"] }.';
    return [new InvalidConfig({ source: context.source, field: path, reason: "is no object", fix })];
  }
  const { faults, fault, text, list, map } = makeReader(entry, path, context);
  const type = readType(entry);
  if (typeof type === "object") {
    const fix = `Give 'command' for a local server, 'url' for a remote one; 'type' is one of stdio, ${Object.keys(flavors).join(", ")}.`;
    fault(type.field === "" ? path : fieldPath(path, type.field), type.reason, fix);
    return faults;
  }
  const endpoint =
    type === "stdio"
      ? new StdioEndpoint({
          name,
          command: text("command") ?? "",
          args: list("args"),
          env: map("env"),
          cwd: within(context.directory, text("cwd")),
        })
      : new HttpEndpoint({
          name,
          url: text("url") ?? "",
          headers: map("headers"),
          flavor: flavors[String(entry["type"] ?? "http")],
        });
  const invalid = faults.length === 0 ? endpoint.validate() : undefined;
  // The endpoint names a header itself; the rest of its fields are keys of the entry.
  if (invalid) fault(`${path}.${invalid.field}`, invalid.reason, invalid.fix);
  return faults.length > 0 ? faults : endpoint;
};
