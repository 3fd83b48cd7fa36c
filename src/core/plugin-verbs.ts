/** Pure: what a plugin lacks of its contract. */
import { isRecord } from "./artifact/json.ts";
import type { Port } from "./ports.ts";

const missing = (verbs: ReadonlyArray<string>): string => verbs.map((verb) => `no function '${verb}'`).join(" and ");

/** Follows the path; answers what is wrong on the way. What is absent is fine. */
const oddVerb = (plugin: Readonly<Record<string, unknown>>, path: string): string | undefined => {
  const parts = path.split(".");
  let at: unknown = plugin;
  for (const [i, part] of parts.entries()) {
    at = (at as Readonly<Record<string, unknown>>)[part];
    if (at === undefined) return undefined;
    const last = i === parts.length - 1;
    if (last ? typeof at !== "function" : !isRecord(at))
      return `has '${parts.slice(0, i + 1).join(".")}', which is no ${last ? "function" : "object"}`;
  }
  return undefined;
};

/** The faults of a plugin, each in words that follow its name. Methods of a class count. */
export const verbFaults = (port: Port<any>, plugin: unknown): ReadonlyArray<string> => {
  const own = isRecord(plugin) ? plugin : {};
  const absent = port.verbs.filter((verb) => typeof own[verb] !== "function");
  if (absent.length > 0) return [`has ${missing(absent)}`];
  if (!isRecord(plugin)) return ["is no object"];
  return [...new Set(port.optionalVerbs.flatMap((path) => oddVerb(plugin, path) ?? []))];
};
