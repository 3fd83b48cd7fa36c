/** Pure: names that somebody may have meant. */

const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next[j] = Math.min(row[j]! + 1, next[j - 1]! + 1, replaced);
    }
    row = next;
  }
  return row[b.length]!;
};

/** The nearest, at most three: few letters apart, or one a part of the other. */
export const similarNames = (name: string, known: ReadonlyArray<string>): ReadonlyArray<string> => {
  const wanted = name.toLowerCase();
  const score = (other: string): number => {
    const lower = other.toLowerCase();
    const part = wanted.length > 2 && lower.includes(wanted);
    const whole = lower.length > 2 && wanted.includes(lower);
    return part || whole ? 0 : distance(wanted, lower);
  };
  const near = known
    .map((other) => ({ other, far: score(other) }))
    .filter(({ far }) => far <= Math.max(2, wanted.length / 3));
  const nearest = Math.min(...near.map(({ far }) => far));
  return near
    .filter(({ far }) => far === nearest)
    .slice(0, 3)
    .map(({ other }) => other);
};
