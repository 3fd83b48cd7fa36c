/** What benches share: medians of interleaved runs, and a verdict per target. */

export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export type Run = () => number | Promise<number>;

/**
 * Runs two tasks in turn, `rounds` times each, after three unmeasured rounds,
 * and changes which goes first, so that drift of the machine meets both alike.
 */
export const interleave = async (
  rounds: number,
  ours: Run,
  theirs: Run,
): Promise<{ readonly ours: number; readonly theirs: number }> => {
  const results: { ours: Array<number>; theirs: Array<number> } = { ours: [], theirs: [] };
  for (let round = -3; round < rounds; round++) {
    for (const side of round % 2 === 0 ? (["ours", "theirs"] as const) : (["theirs", "ours"] as const)) {
      const value = await (side === "ours" ? ours() : theirs());
      if (round >= 0) results[side].push(value);
    }
  }
  return { ours: median(results.ours), theirs: median(results.theirs) };
};

export const line = (what: string, figure: string): void => console.log(`  ${what.padEnd(58)} ${figure}`);

/** Prints a figure with its target; a missed one makes the process exit with 1. */
export const target = (
  what: string,
  value: number,
  relation: "at most" | "at least",
  bound: number,
  unit = "",
): void => {
  const met = relation === "at most" ? value <= bound : value >= bound;
  if (!met) process.exitCode = 1;
  line(what, `${value.toFixed(2)}${unit}  target ${relation} ${bound}${unit}: ${met ? "met" : "MISSED"}`);
};
