/** Runs worlds by seed, several at a time; shrinks what breaks and keeps how to repeat it. */
import * as fc from "fast-check";
import { play } from "./callers.ts";
import { breaksOf } from "./invariants.ts";
import { type Load, loads } from "./load.ts";
import { grownSince, type Level, level, openSince, ProcessWatch } from "./process-watch.ts";
import type { FaultTransport } from "./world.ts";

/** One world and what is done to it. */
export interface FaultCase<Program = any> {
  readonly program: Program;
  readonly load: Load;
}

export interface FaultRunOptions {
  readonly seed: number;
  readonly runs: number;
  /** Worlds at a time. Default 6. Lane `n` has the seed `seed + n`. */
  readonly lanes?: number | undefined;
  /** Replays one case: the path that a break was printed with. Implies one lane. */
  readonly path?: string | undefined;
  /** Longest time spent on making a broken case smaller, ms. Default 60 s. */
  readonly shrink?: number | undefined;
  /** Called after each world. */
  readonly onWorld?: ((done: number) => void) | undefined;
}

export interface FaultBreak {
  readonly seed: number;
  readonly path: string;
  readonly breaks: ReadonlyArray<string>;
  readonly case: FaultCase;
}

export interface FaultReport {
  readonly worlds: number;
  /** How callers' promises ended, by tag of the error; `answered` else. */
  readonly outcomes: ReadonlyMap<string, number>;
  readonly broken: ReadonlyArray<FaultBreak>;
  /** What the process has not given back after all worlds. */
  readonly left: ReadonlyArray<string>;
  readonly levels: { readonly before: Level; readonly after: Level };
}

export class InvariantBroken extends Error {
  readonly breaks: ReadonlyArray<string>;
  constructor(breaks: ReadonlyArray<string>) {
    super(breaks.join("\n"));
    this.breaks = breaks;
  }
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** Plays one case and answers what it broke. */
export const playCase = async (
  transport: FaultTransport,
  { program, load }: FaultCase,
  watch: ProcessWatch,
  count: (ending: string) => void = () => {},
): Promise<ReadonlyArray<string>> => {
  const world = await transport.start(program);
  try {
    const recording = await play(world, load);
    for (const { state, error } of recording.outcomes)
      count(state === "failed" ? String((error as { _tag?: string })?._tag ?? "aborted") : state);
    await turns();
    return [...breaksOf(recording), ...watch.take()];
  } finally {
    await world.stop();
  }
};

/** Part of the runs after which the level is taken that later ones are held to. */
const warmUp = 0.2;

export const runFaults = async (transport: FaultTransport, options: FaultRunOptions): Promise<FaultReport> => {
  const lanes = options.path === undefined ? Math.min(options.lanes ?? 6, options.runs) : 1;
  const outcomes = new Map<string, number>();
  const count = (ending: string): void => void outcomes.set(ending, (outcomes.get(ending) ?? 0) + 1);
  let worlds = 0;
  using watch = new ProcessWatch();

  const lane = async (seed: number, numRuns: number): Promise<ReadonlyArray<FaultBreak>> => {
    let giveUpAt = Infinity;
    const property = fc.asyncProperty(fc.record({ program: transport.programs, load: loads }), async (given) => {
      // Passing ends the shrinking: what is left untried counts as sound.
      if (performance.now() > giveUpAt) return;
      const breaks = await playCase(transport, given, watch, count);
      worlds += 1;
      options.onWorld?.(worlds);
      if (breaks.length === 0) return;
      giveUpAt = Math.min(giveUpAt, performance.now() + (options.shrink ?? 60_000));
      throw new InvariantBroken(breaks);
    });
    const { path } = options;
    const details = await fc.check(property, { seed, numRuns, ...(path !== undefined && { path }) });
    if (!details.failed) return [];
    const error = details.errorInstance;
    const breaks = error instanceof InvariantBroken ? error.breaks : [String((error as Error)?.stack ?? error)];
    return [{ seed, path: details.counterexamplePath ?? "", breaks, case: details.counterexample![0] }];
  };

  /** All lanes side by side; each has its share of the runs. */
  const round = async (from: number, runs: number): Promise<ReadonlyArray<FaultBreak>> => {
    const shares = Array.from({ length: lanes }, (_, n) => Math.ceil((runs - n) / lanes));
    return (await Promise.all(shares.map((share, n) => (share > 0 ? lane(from + n, share) : [])))).flat();
  };

  if (options.path !== undefined) {
    const before = level();
    const broken = await round(options.seed, 1);
    return { worlds, outcomes, broken, left: [], levels: { before, after: level() } };
  }
  const start = level();
  const first = Math.ceil(options.runs * warmUp);
  const broken = [...(await round(options.seed, first))];
  const before = level();
  if (broken.length === 0) broken.push(...(await round(options.seed + lanes, options.runs - first)));
  const after = level();
  const left = [...openSince(start, after), ...grownSince(before, after)];
  return { worlds, outcomes, broken, left, levels: { before, after } };
};
