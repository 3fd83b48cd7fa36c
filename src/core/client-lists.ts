/** The four lists of a server, whole and cached. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { EngineSession, ServerCapabilities } from "./contracts.ts";
import type { RequestError } from "./errors.ts";
import { type CachedList, makeCachedList, readAllPages } from "./listing.ts";
import type { Requests } from "./requests.ts";
import type { McpSettings } from "./settings.ts";

export type ListKind = "tools" | "resources" | "resourceTemplates" | "prompts";

export interface Lists {
  readonly get: (kind: ListKind) => Effect.Effect<ReadonlyArray<unknown>, RequestError>;
  /** A notification arrived; a list_changed makes the list stale. */
  readonly notified: (method: string) => void;
}

const METHODS: Readonly<Record<ListKind, string>> = {
  tools: "tools/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
  prompts: "prompts/list",
};

const CHANGED: Readonly<Record<string, ReadonlyArray<ListKind>>> = {
  "notifications/tools/list_changed": ["tools"],
  "notifications/resources/list_changed": ["resources", "resourceTemplates"],
  "notifications/prompts/list_changed": ["prompts"],
};

/**
 * Whether to ask for a list. What is not advertised is not asked for, except that a
 * server which advertises nothing at all is asked for its tools: many simple ones forget.
 */
const worthAsking = (capabilities: ServerCapabilities, kind: ListKind): boolean => {
  const group = kind === "resourceTemplates" ? "resources" : kind;
  return capabilities[group] !== undefined || (group === "tools" && Object.keys(capabilities).length === 0);
};

export const makeLists = (
  session: EngineSession,
  request: Requests["request"],
  settings: McpSettings,
  diagnose: (message: string) => void,
  lost: () => RequestError,
): Effect.Effect<Lists, never, Scope.Scope> =>
  Effect.gen(function* () {
    const read = (kind: ListKind) =>
      Effect.suspend(() => {
        if (!worthAsking(session.capabilities, kind)) return Effect.succeed({ value: [], ttl: undefined });
        const page = (cursor: string | undefined) =>
          request(METHODS[kind], cursor === undefined ? undefined : { cursor });
        const listed = readAllPages({ page, field: kind, settings, diagnose });
        return Effect.map(listed, ({ items, ttl }) => ({ value: items, ttl }));
      });
    const cached = (kind: ListKind): Effect.Effect<CachedList<ReadonlyArray<unknown>>, never, Scope.Scope> =>
      makeCachedList<ReadonlyArray<unknown>>(read(kind), settings.listChangedDebounce, lost);
    const lists: Readonly<Record<ListKind, CachedList<ReadonlyArray<unknown>>>> = {
      tools: yield* cached("tools"),
      resources: yield* cached("resources"),
      resourceTemplates: yield* cached("resourceTemplates"),
      prompts: yield* cached("prompts"),
    };
    return {
      get: (kind) => lists[kind].get,
      notified: (method) => {
        for (const kind of CHANGED[method] ?? []) lists[kind].changed();
      },
    };
  });
