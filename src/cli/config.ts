/** Finds and reads the configuration, and picks servers from it. */
import * as Effect from "effect/Effect";
import { InvalidConfig } from "../core/errors.ts";
import { type LoadedEndpoint, type McpJson, mergeFaults, readMcpJson } from "../plugins/endpoints/mcp-json.ts";
import type { Output } from "./output.ts";
import { similarNames } from "./suggestions.ts";

/** Looked for in the working directory, in this order, without `--config`. */
export const configPlaces: ReadonlyArray<string> = ["mcp.json", ".mcp.json", ".vscode/mcp.json"];

const findConfig: Effect.Effect<string, InvalidConfig> = Effect.gen(function* () {
  const { access } = yield* Effect.promise(() => import("node:fs/promises"));
  for (const path of configPlaces) {
    const found = yield* Effect.promise(() =>
      access(path).then(
        () => true,
        () => false,
      ),
    );
    if (found) return path;
  }
  return yield* new InvalidConfig({
    source: process.cwd(),
    field: "(file)",
    reason: `is missing: there is none of ${configPlaces.join(", ")}`,
    fix: "Give one with --config <file>.",
  });
});

/** Reads the file; a fault of one server does not fail it. */
export const openConfig = (given: string | undefined): Effect.Effect<McpJson, InvalidConfig> =>
  Effect.gen(function* () {
    const path = given ?? (yield* findConfig);
    const read = yield* Effect.tryPromise({
      try: () => readMcpJson(path),
      catch: (cause) => cause as InvalidConfig,
    });
    if (read.servers.length === 0 && read.faults.some(({ handle }) => handle === undefined))
      return yield* mergeFaults(read.faults);
    return read;
  });

/** Warns of each fault that the command can do without. */
export const warnOfFaults = (config: McpJson, output: Output): Effect.Effect<void> =>
  Effect.forEach(config.faults, ({ error }) => output.warn(error.message), { discard: true });

/** The server of that name, or what keeps it from being used. */
export const pickServer = (config: McpJson, name: string): Effect.Effect<LoadedEndpoint, InvalidConfig> =>
  Effect.suspend(() => {
    const server = config.servers.find(({ handle }) => handle === name);
    if (server) return Effect.succeed(server);
    const faults = config.faults.filter(({ handle }) => handle === name);
    if (faults.length > 0) return Effect.fail(mergeFaults(faults));
    if (config.disabled.includes(name))
      return Effect.fail(fault(config, name, "is disabled", "Remove its 'disabled' to use it."));
    const known = [...new Set([...config.servers, ...config.faults].flatMap(({ handle }) => handle ?? []))];
    const similar = similarNames(name, known);
    const fix =
      similar.length > 0 ? `Did you mean ${similar.join(" or ")}?` : `Servers: ${known.join(", ") || "none"}.`;
    return Effect.fail(fault(config, name, "is no server there", fix));
  });

const fault = (config: McpJson, field: string, reason: string, fix: string): InvalidConfig =>
  new InvalidConfig({ source: config.source, field, reason, fix });
