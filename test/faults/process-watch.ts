/** What happens in the host's own process while worlds come and go: faults nobody caught, handles, memory. */
import process from "node:process";
import { pulse } from "./pulse.ts";
import { childrenOf } from "../support/stdio-pids.ts";

const faults = ["unhandledRejection", "uncaughtException", "warning"] as const;

const inWords = (fault: unknown): string =>
  fault instanceof Error ? `${fault.name}: ${fault.message}\n${fault.stack ?? ""}`.slice(0, 1500) : String(fault);

/** Collects until it is stopped. Faults seen so are reported, and do not end the process. */
export class ProcessWatch implements Disposable {
  readonly #seen: Array<string> = [];
  readonly #listeners = faults.map((event) => {
    const listener = (fault: unknown): void => {
      // Only the leak of listeners: other warnings, say of an experimental feature, are no fault.
      if (event === "warning" && !/MaxListeners/.test(String((fault as Error)?.name))) return;
      this.#seen.push(`${event}: ${inWords(fault)}`);
    };
    process.on(event as "warning", listener);
    return [event, listener] as const;
  });

  /** What was seen since the last time. */
  take(): ReadonlyArray<string> {
    return [
      ...this.#seen.splice(0).map((fault) => `nobody hears of a fault in the host: ${fault}`),
      ...pulse.blocked().map((turn) => `the host is never kept from its other work: ${turn}`),
    ];
  }

  [Symbol.dispose](): void {
    for (const [event, listener] of this.#listeners) process.off(event, listener);
  }
}

/** How many of each kind of handle keep the process going, where the runtime can tell. */
const handles = (): ReadonlyMap<string, number> => {
  const counts = new Map<string, number>();
  const kinds = (process as { getActiveResourcesInfo?: () => ReadonlyArray<string> }).getActiveResourcesInfo?.() ?? [];
  for (const kind of kinds) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  return counts;
};

const collectGarbage = (): void => {
  const { gc, Bun } = globalThis as { gc?: () => void; Bun?: { gc: (force: boolean) => void } };
  gc?.();
  Bun?.gc(true);
};

export interface Level {
  readonly handles: ReadonlyMap<string, number>;
  readonly children: ReadonlyArray<number>;
  /** Bytes of live objects, once garbage is collected, where that can be had. */
  readonly heap: number;
  readonly rss: number;
  readonly collected: boolean;
}

/** Where the process stands now. */
export const level = (): Level => {
  collectGarbage();
  const { heapUsed, rss } = process.memoryUsage();
  const { gc, Bun } = globalThis as { gc?: unknown; Bun?: unknown };
  return { handles: handles(), children: childrenOf(process.pid), heap: heapUsed, rss, collected: Boolean(gc ?? Bun) };
};

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`;

/** Memory that a level may lie above an earlier one: compiled code and caches still grow a little. */
const heapGrowth = 12e6;
const rssGrowth = 150e6;

/** What was opened since and is still open. */
export const openSince = (before: Level, after: Level): ReadonlyArray<string> => [
  ...[...after.handles]
    .filter(([kind, count]) => count > (before.handles.get(kind) ?? 0))
    .map(([kind, count]) => `handles are left: ${count} of ${kind} instead of ${before.handles.get(kind) ?? 0}`),
  ...after.children.filter((pid) => !before.children.includes(pid)).map((pid) => `a child process is left: ${pid}`),
];

/** Memory that did not come back. */
export const grownSince = (before: Level, after: Level): ReadonlyArray<string> => [
  ...(after.collected && after.heap > before.heap + heapGrowth
    ? [`the heap grew from ${megabytes(before.heap)} to ${megabytes(after.heap)}`]
    : []),
  ...(after.rss > before.rss + rssGrowth ? [`RSS grew from ${megabytes(before.rss)} to ${megabytes(after.rss)}`] : []),
];
