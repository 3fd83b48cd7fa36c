/** `import`: what the hosts on this machine have configured, as one mcp.json. */
import * as Effect from "effect/Effect";
import { InvalidConfig } from "../../core/errors.ts";
import { parseJsonc } from "../../plugins/endpoints/jsonc.ts";
import { privateFiles } from "../../plugins/stores/private-files.ts";
import { attempt } from "../attempt.ts";
import { exitCodes } from "../exit-code.ts";
import { type HostConfig, hostConfigs } from "../host-configs.ts";
import type { Command } from "../session.ts";

type Json = Readonly<Record<string, unknown>>;

export interface ImportInput {
  /** Where to write. Without it nothing is written. */
  readonly write: string | undefined;
  /** Another home folder to look at. */
  readonly home: string | undefined;
}

interface Source {
  readonly host: string;
  readonly path: string;
  readonly servers: Json;
  readonly fault?: string;
}

const files = () => import("node:fs/promises");

const readSource = async ({ host, path, read }: HostConfig): Promise<ReadonlyArray<Source>> => {
  const { readFile } = await files();
  try {
    return [{ host, path, servers: read(await readFile(path, "utf8")) }];
  } catch (cause) {
    const { code, message } = cause as { readonly code?: string; readonly message: string };
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    return [{ host, path, servers: {}, fault: code === undefined ? message : `it cannot be read (${code})` }];
  }
};

/** A host that is connected to this gateway already: taken over, the gateway would start itself. */
const isOurs = (entry: unknown): boolean => /\bnucleo-mcp\b[^]*\b(connect|serve)\b/.test(JSON.stringify(entry));

/** One server under each name; another one of the same name gets its host's name beside it. */
const merge = (sources: ReadonlyArray<Source>): { readonly servers: Json; readonly renamed: ReadonlyArray<string> } => {
  const servers = new Map<string, unknown>();
  const renamed: Array<string> = [];
  const same = (name: string, entry: unknown): boolean => JSON.stringify(servers.get(name)) === JSON.stringify(entry);
  for (const { host, servers: own } of sources) {
    for (const [name, entry] of Object.entries(own)) {
      if (isOurs(entry)) continue;
      let free = name;
      for (let n = 1; servers.has(free) && !same(free, entry); n++)
        free = `${name}-${host.toLowerCase().replace(/[^a-z]+/g, "-")}${n > 1 ? `-${n}` : ""}`;
      if (free !== name && !servers.has(free)) renamed.push(`'${name}' of ${host} differs and is '${free}' here`);
      servers.set(free, entry);
    }
  }
  return { servers: Object.fromEntries(servers), renamed };
};

/** Replaces the file whole; what was there is kept beside it. Answers where, if anything was. */
const replace = async (path: string, text: string): Promise<string | undefined> => {
  const { copyFile, constants } = await files();
  const { basename, dirname } = await import("node:path");
  let backup: string | undefined;
  for (let n = 1; backup === undefined; n++) {
    const free = `${path}.bak${n > 1 ? n : ""}`;
    try {
      await copyFile(path, free, constants.COPYFILE_EXCL);
      backup = free;
    } catch (cause) {
      const { code } = cause as { readonly code?: string };
      if (code === "ENOENT") break;
      if (code !== "EEXIST") throw cause;
    }
  }
  // The servers' secrets are in it.
  await privateFiles(dirname(path)).replace(basename(path), text, { durable: true });
  return backup;
};

/** The target as it is: its servers come first and are never lost. */
const readTarget = async (path: string): Promise<{ readonly root: Json; readonly source: ReadonlyArray<Source> }> => {
  const { readFile } = await files();
  const text = await readFile(path, "utf8").catch((cause: { readonly code?: string }) => {
    if (cause.code === "ENOENT") return undefined;
    throw cause;
  });
  if (text === undefined) return { root: {}, source: [] };
  let root: unknown;
  try {
    root = parseJsonc(text);
  } catch (cause) {
    const reason = `is no JSON: ${(cause as Error).message}`;
    throw new InvalidConfig({ source: path, field: "(file)", reason, fix: "Mend it, or write to another file." });
  }
  const { servers, mcpServers, ...rest } = root as Json;
  return { root: rest, source: [{ host: "own", path, servers: { ...(servers as Json), ...(mcpServers as Json) } }] };
};

/** The merged configuration goes to stdout, where it came from to stderr. */
export const importCommand: Command<ImportInput> = ({ write, home }, { output }) =>
  Effect.gen(function* () {
    const { homedir } = yield* attempt("import", () => import("node:os"));
    const places = hostConfigs({
      platform: process.platform,
      home: home ?? homedir(),
      project: process.cwd(),
      environment: home === undefined ? process.env : {},
    });
    const found = (yield* attempt("import", () => Promise.all(places.map(readSource)))).flat();
    const target = write === undefined ? { root: {}, source: [] } : yield* attempt("import", () => readTarget(write));
    for (const { host, path, servers, fault } of found) {
      const names = Object.keys(servers).join(", ") || "no servers";
      yield* fault === undefined
        ? output.note(`${host}: ${path}: ${names}`)
        : output.warn(`${host}: ${path}: ${fault}; it is left out`);
    }
    const { servers, renamed } = merge([...target.source, ...found]);
    for (const line of renamed) yield* output.warn(line);

    const text = JSON.stringify({ ...target.root, mcpServers: servers }, null, 2);
    if (write !== undefined) {
      const backup = yield* attempt("import", () => replace(write, `${text}\n`));
      yield* output.note(`Written to ${write}.${backup === undefined ? "" : ` The old file is ${backup}.`}`);
    } else yield* output.text(text);
    yield* output.document({ sources: found, mcpServers: servers });
    return exitCodes.fine;
  });
