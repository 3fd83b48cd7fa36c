/**
 * Endpoints from an mcp.json, the file that MCP hosts share: `mcpServers` as Claude,
 * Cursor and others write it, or VS Code's `servers`. Comments and trailing commas are
 * allowed, unknown keys passed over. See `expand-variables.ts` for `${…}`.
 *
 * An entry is local (`command`, `args`, `env`, `cwd`) or remote (`url`, `headers`).
 * `type` is `stdio`, `http` (Streamable HTTP with SSE as fallback, as without a type),
 * `streamable-http` or `sse`. `disabled: true` leaves the entry out; `pin: true` holds
 * back tools that change.
 *
 * A relative `cwd` starts at the project: the directory of the file, or the one above
 * where the file lies in a directory such as `.vscode` or `.cursor`. `${workspaceFolder}`
 * is the project too. Without `cwd` a server runs where the host runs.
 */
import { isRecord } from "../../core/artifact/json.ts";
import type { EndpointLoader, LoadedEndpoint } from "../../core/contracts.ts";
import type { McpEndpoint } from "../../core/endpoint.ts";
import { InvalidConfig } from "../../core/errors.ts";
import { JsoncError, parseJsonc } from "./jsonc.ts";
import { type EntryContext, fieldPath, readEntry } from "./server-entry.ts";

export interface McpJsonOptions {
  /** The file, for messages. */
  readonly source: string;
  /** Values of variables, for example `process.env`. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the project: what a relative `cwd` and `${workspaceFolder}` refer to. */
  readonly directory?: string | undefined;
}

export type { LoadedEndpoint };

/** A file's good servers and all its faults. */
export interface McpJson {
  readonly source: string;
  readonly servers: ReadonlyArray<LoadedEndpoint>;
  /** Faults of a server carry its name; a fault of the whole file carries none. */
  readonly faults: ReadonlyArray<{ readonly handle: string | undefined; readonly error: InvalidConfig }>;
  /** Names of servers with `disabled: true`. */
  readonly disabled: ReadonlyArray<string>;
}

const sections = ["mcpServers", "servers"] as const;

/** Reads a file's text. Never throws: one bad server hides no good one. */
export const inspectMcpJson = (text: string, options: McpJsonOptions): McpJson => {
  const { source, environment, directory } = options;
  const servers: Array<LoadedEndpoint> = [];
  const faults: Array<McpJson["faults"][number]> = [];
  const disabled: Array<string> = [];
  const fault = (field: string, reason: string, fix: string, handle?: string): void => {
    faults.push({ handle, error: new InvalidConfig({ source, field, reason, fix }) });
  };
  const done: McpJson = { source, servers, faults, disabled };

  let root: unknown;
  try {
    root = parseJsonc(text);
  } catch (cause) {
    fault("(file)", `is no JSON: ${(cause as JsoncError).message}`, "Mend it there and try again.");
    return done;
  }
  const present = sections.filter((section) => isRecord(root) && root[section] !== undefined);
  if (!isRecord(root) || present.length === 0) {
    fault("(file)", "has no 'mcpServers'", 'Give { "mcpServers": { "name": { "command": "…" } } }.');
    return done;
  }
  const context: EntryContext = {
    source,
    directory,
    lookup: (name) => {
      const value = Object.hasOwn(environment, name) ? environment[name] : undefined;
      return value === undefined && name === "workspaceFolder" ? directory : value;
    },
  };
  const seen = new Set<string>();
  for (const section of present) {
    const entries = root[section];
    if (!isRecord(entries)) {
      fault(section, "is no object", "Give each server under its name.");
      continue;
    }
    for (const [handle, entry] of Object.entries(entries)) {
      const path = fieldPath(section, handle);
      if (isRecord(entry) && entry["disabled"] === true) {
        disabled.push(handle);
        continue;
      }
      if (handle.trim() === "" || seen.has(handle)) {
        fault(path, seen.has(handle) ? "stands in both sections" : "has no name", "Give it another name.", handle);
        continue;
      }
      seen.add(handle);
      const pin = isRecord(entry) ? entry["pin"] : undefined;
      if (pin !== undefined && typeof pin !== "boolean") {
        fault(`${path}.pin`, "is neither true nor false", "Give true to hold back tools that change.", handle);
        continue;
      }
      const read = readEntry(handle, path, entry, context);
      if (Array.isArray(read)) faults.push(...read.map((error: InvalidConfig) => ({ handle, error })));
      else servers.push({ handle, endpoint: read as McpEndpoint, ...(pin && { pin }) });
    }
  }
  return done;
};

/** Faults, at least one, as one error: the fields of the first, the others in its fix. */
export const mergeFaults = (faults: McpJson["faults"]): InvalidConfig => {
  const [first, ...rest] = faults.map(({ error }) => error);
  const { source, field, reason, fix } = first!;
  const others = rest.map((error) => `\n'${error.field}' ${error.reason}. ${error.fix}`).join("");
  return new InvalidConfig({ source, field, reason, fix: others === "" ? fix : `${fix} Further faults:${others}` });
};

/** The servers of a file's text. Throws `InvalidConfig` with every fault at once. */
export const parseMcpJson = (text: string, options: McpJsonOptions): ReadonlyArray<LoadedEndpoint> => {
  const { servers, faults } = inspectMcpJson(text, options);
  if (faults.length > 0) throw mergeFaults(faults);
  return servers;
};

const unreadable: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  EACCES: "may not be read by this user",
  EISDIR: "is a directory",
};

/** Reads a file, with the environment of the process. Rejects with `InvalidConfig` when it cannot be read. */
export const readMcpJson = async (path: string): Promise<McpJson> => {
  const { readFile } = await import("node:fs/promises");
  const { basename, dirname, resolve } = await import("node:path");
  const source = resolve(path);
  const folder = dirname(source);
  const text = await readFile(source, "utf8").catch((cause: { readonly code?: string }) => {
    const reason = unreadable[cause.code ?? ""] ?? `cannot be read (${cause.code ?? "unknown error"})`;
    throw new InvalidConfig({ source, field: "(file)", reason, fix: "Give the path of an mcp.json." }, cause);
  });
  const directory = basename(folder).startsWith(".") ? dirname(folder) : folder;
  return inspectMcpJson(text, { source, environment: process.env, directory });
};

/** Loads every server of an mcp.json; rejects with `InvalidConfig`, every fault at once. */
export const mcpJsonLoader: EndpointLoader = {
  kind: "mcp-json",
  load: async (path) => {
    const { servers, faults } = await readMcpJson(path);
    if (faults.length > 0) throw mergeFaults(faults);
    return servers;
  },
};
