/** The tools that clients are shown, page by page, and what becomes of slow servers' lists. */
import * as Duration from "effect/Duration";
import type { HostTool, ServedRuntime, ServingOptions } from "./served-runtime.ts";
import { rpcError, type Wire, wireTool } from "./wire.ts";

export interface ServedTools {
  /** One page of `tools/list`. */
  readonly page: (cursor: unknown, signal: AbortSignal) => Promise<Wire>;
  readonly hostTool: (name: string) => HostTool | undefined;
  /** The handle of a tool that was listed; undefined for others. */
  readonly handleOf: (name: string) => string | undefined;
  /** The same, or what the name of a tool that was not listed looks like. */
  readonly likelyHandleOf: (name: string) => string | undefined;
}

const names = (tools: ReadonlyArray<{ readonly name: string }>): string => tools.map(({ name }) => name).join(" ");

/** Where a page begins, how long it is, and whether its list has all there is. */
export interface PageOptions {
  readonly cursor: unknown;
  /** Default 1,000. */
  readonly pageSize: number | undefined;
  readonly complete: boolean;
}

/**
 * One page of a list, as `…/list` methods answer it; one that lacks something may not be
 * kept. An unknown cursor is refused with -32602.
 */
export const paged = (field: string, items: ReadonlyArray<Wire>, options: PageOptions): Wire => {
  const { cursor, pageSize = 1_000, complete } = options;
  const from =
    cursor === undefined
      ? 0
      : Number(/^from:(\d{1,9})$/.exec(typeof cursor === "string" ? cursor : "")?.[1] ?? Number.NaN);
  if (!(from <= items.length)) throw rpcError(-32602, "Invalid cursor");
  const next = from + pageSize;
  return {
    [field]: items.slice(from, next),
    ...(next < items.length && { nextCursor: `from:${next}` }),
    ...(!complete && { ttlMs: 0 }),
  };
};

/** Calls `onChanged` when a list that had to be answered in part is complete. */
export const makeServedTools = (
  runtime: ServedRuntime,
  options: ServingOptions,
  onChanged: () => void,
): ServedTools => {
  const own = new Map((options.tools ?? []).map((tool) => [tool.name, tool]));
  const patience = Duration.toMillis(Duration.fromInputUnsafe(options.listPatience ?? "5 seconds"));
  let handles: ReadonlyMap<string, string> = new Map();
  let late: Promise<unknown> | undefined;

  const attached = async (signal: AbortSignal) => {
    const whole = runtime.tools();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const tooLong = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, patience, undefined)));
    const inTime = await Promise.race([whole, tooLong]).finally(() => clearTimeout(timer));
    const listed = inTime ?? (await runtime.tools({ within: 1, signal }));
    if (inTime === undefined)
      late ??= whole
        .then((tools) => {
          if (names(tools) !== names(listed)) onChanged();
        })
        .catch(() => {})
        .finally(() => (late = undefined));
    handles = new Map(listed.map(({ name, handle }) => [name, handle]));
    return { tools: listed.filter(({ name }) => !own.has(name)), complete: inTime !== undefined };
  };

  return {
    hostTool: (name) => own.get(name),
    handleOf: (name) => handles.get(name),
    likelyHandleOf: (name) =>
      handles.get(name) ?? runtime.connectors().find(({ handle }) => name.startsWith(`${handle}__`))?.handle,
    page: async (cursor, signal) => {
      const { tools, complete } = await attached(signal);
      const { pageSize } = options;
      return paged("tools", [...own.values(), ...tools].map(wireTool), { cursor, pageSize, complete });
    },
  };
};
