/** What a soaked process says of itself, and the verdict on it. */

export interface Levels {
  /** Bytes. */
  readonly rss: number;
  /** Bytes, after garbage collection. */
  readonly heap: number;
  /** Open file descriptors. */
  readonly handles: number | undefined;
  /** Child processes. */
  readonly children: number | undefined;
  /** What keeps the event loop alive, by name. */
  readonly resources: Readonly<Record<string, number>>;
}

export type SoakReport =
  | { readonly kind: "levels"; readonly part: number; readonly calls: number; readonly levels: Levels }
  | {
      readonly kind: "end";
      readonly calls: number;
      readonly seconds: number;
      readonly done: Readonly<Record<string, number>>;
      readonly failures: Readonly<Record<string, number>>;
      /** After the end of the runtime. */
      readonly levels: Levels;
    };

const megabytes = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MB`;

/** Least-squares slope of RSS over calls, in bytes a call. */
const slopeOf = (samples: ReadonlyArray<{ readonly calls: number; readonly levels: Levels }>): number => {
  const mean = (values: ReadonlyArray<number>): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(samples.map(({ calls }) => calls));
  const y = mean(samples.map(({ levels }) => levels.rss));
  const over = samples.reduce((sum, { calls, levels }) => sum + (calls - x) * (levels.rss - y), 0);
  return over / samples.reduce((sum, { calls }) => sum + (calls - x) ** 2, 0);
};

export interface Verdict {
  readonly lines: ReadonlyArray<string>;
  readonly faults: ReadonlyArray<string>;
}

/** Judges by the levels at a tenth of the run and at its end, both at rest. */
export const judge = (reports: ReadonlyArray<SoakReport>): Verdict => {
  const samples = reports.filter((report) => report.kind === "levels");
  const end = reports.find((report) => report.kind === "end");
  const first = samples.find(({ part }) => part >= 0.1);
  const last = samples.at(-1);
  if (!end || !first || !last) return { lines: [], faults: ["it did not come to its end"] };
  const growth = last.levels.rss / first.levels.rss - 1;
  const show = ({ rss, heap, handles, children, resources }: Levels): string =>
    `RSS ${megabytes(rss)}, heap ${megabytes(heap)}, ${handles} handles, ${children} children, ${JSON.stringify(resources)}`;
  const faults = Object.entries(end.failures).map(([what, count]) => `${count} times ${what}`);
  if (growth > 0.1) faults.push(`RSS grew by ${(100 * growth).toFixed(1)} %`);
  // Fewer is no fault: a runtime keeps idle sockets for a while, and a tenth may be early for some.
  for (const key of ["handles", "children"] as const)
    if ((last.levels[key] ?? 0) > (first.levels[key] ?? 0))
      faults.push(`${key} left: ${first.levels[key]} at a tenth, ${last.levels[key]} at the end`);
  if ((end.levels.children ?? 0) > 0) faults.push(`${end.levels.children} child processes outlive the runtime`);
  return {
    lines: [
      `${end.calls} calls in ${end.seconds.toFixed(0)} s: ${Object.entries(end.done)
        .map(([name, count]) => `${name} ${count}`)
        .join(", ")}`,
      `at a tenth: ${show(first.levels)}`,
      `at the end: ${show(last.levels)}`,
      `closed:     ${show(end.levels)}`,
      `RSS ${(100 * growth).toFixed(1)} %, slope ${slopeOf(samples.filter(({ part }) => part >= 0.1)).toFixed(1)} bytes a call`,
    ],
    faults,
  };
};
