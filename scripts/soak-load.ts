/**
 * The process that a soak watches: `soak-load.ts '{ "urls", "calls" | "duration" }'`. Puts one
 * runtime under mixed load from several lanes, rests at twenty points to measure itself,
 * and prints what it found as JSON lines.
 */
import { readdirSync, readFileSync } from "node:fs";
import { createRuntime } from "../src/mod.ts";
import { makeDeeds } from "./soak-deeds.ts";
import { residents, type SoakUrls } from "./soak-endpoints.ts";
import type { Levels, SoakReport } from "./soak-report.ts";

const { urls, calls, duration } = JSON.parse(process.argv[2]!) as {
  readonly urls: SoakUrls;
  /** Ends after so many calls, or after so many ms. */
  readonly calls?: number;
  readonly duration?: number;
};
const lanes = 6;
const points = 20;
/** How often each deed is done before anything is counted. */
const warmUps = 40;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const print = (report: SoakReport): void => void process.stdout.write(`${JSON.stringify(report)}\n`);

const collect = async (): Promise<void> => {
  const { gc, Bun: bun } = globalThis as { gc?: () => void; Bun?: { gc: (force: boolean) => void } };
  for (let turn = 0; turn < 3; turn++) {
    gc?.();
    bun?.gc(true);
    await pause(20);
  }
};

const childrenOf = (parent: number): number =>
  readdirSync("/proc").filter((name) => {
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "latin1");
      const [state, ppid] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
      return Number(ppid) === parent && state !== "Z";
    } catch {
      return false;
    }
  }).length;

const measure = (): Levels => {
  const { rss, heapUsed } = process.memoryUsage();
  const linux = process.platform === "linux";
  const resources: Record<string, number> = {};
  for (const name of process.getActiveResourcesInfo?.() ?? []) resources[name] = (resources[name] ?? 0) + 1;
  return {
    rss,
    heap: heapUsed,
    handles: linux ? readdirSync("/proc/self/fd").length : undefined,
    children: linux ? childrenOf(process.pid) : undefined,
    resources,
  };
};

/** Measures when idle clients are reaped and idle sockets closed: when it falls no more for two seconds. */
const measureAtRest = async (): Promise<Levels> => {
  let best = measure();
  for (let since = performance.now(); performance.now() - since < 7000; await pause(100)) {
    const now = measure();
    if ((now.handles ?? 0) + (now.children ?? 0) < (best.handles ?? 0) + (best.children ?? 0))
      since = performance.now();
    best = now;
  }
  await collect();
  return measure();
};

const runtime = await createRuntime({
  settings: {
    stdioProcessMax: 8,
    idleTimeout: 1500,
    closeGrace: 100,
    minUptime: 1,
    breakerCooldown: 1,
    listChangedDebounce: 10,
    connectTimeout: 60_000,
    requestTimeout: 60_000,
    // Full within the first tenth, so that what is kept by design does not look like a leak.
    artifactsMax: 200,
    artifactBytesMax: 2 * 1024 * 1024,
  },
});
for (const [handle, endpoint] of Object.entries(residents(urls))) await runtime.attach(handle, endpoint);
await runtime.tools({ within: 60_000 });

const deeds = makeDeeds(runtime, urls);
const weights = deeds.reduce((sum, [weight]) => sum + weight, 0);
const done: Record<string, number> = {};
const failures: Record<string, number> = {};
let total = 0;

const choose = () => {
  let at = Math.random() * weights;
  return deeds.find(([weight]) => (at -= weight) < 0) ?? deeds[0]!;
};

const perform = async ([, name, deed]: (typeof deeds)[number]): Promise<void> => {
  try {
    const made = await deed();
    total += made;
    done[name] = (done[name] ?? 0) + made;
  } catch (error) {
    const { _tag, message } = error as { _tag?: string; message?: string };
    const what = `${name}: ${_tag ?? "untyped"}: ${String(message).slice(0, 300)}`;
    failures[what] = (failures[what] ?? 0) + 1;
  }
};

/** All lanes do what comes next until nothing does, and are at rest then. */
const work = async (next: () => (typeof deeds)[number] | undefined): Promise<void> => {
  const lane = async (): Promise<void> => {
    for (let deed = next(); deed; deed = next()) await perform(deed);
  };
  await Promise.all(Array.from({ length: lanes }, lane));
};

// The rare deeds too must have had their largest memory before it is first looked at.
const warming = Array.from({ length: warmUps * deeds.length }, (_, at) => deeds[at % deeds.length]!);
await work(() => warming.pop());
total = 0;

const startedAt = performance.now();
const progress = (): number => (calls ? total / calls : (performance.now() - startedAt) / duration!);
for (let point = 1; point <= points; point++) {
  await work(() => (progress() >= point / points ? undefined : choose()));
  await collect();
  const atRest = point === points / 10 || point === points;
  print({ kind: "levels", part: point / points, calls: total, levels: atRest ? await measureAtRest() : measure() });
}
await runtime.close();
await collect();
print({
  kind: "end",
  calls: total,
  seconds: (performance.now() - startedAt) / 1000,
  done,
  failures,
  levels: measure(),
});
