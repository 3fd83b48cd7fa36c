/** Pure: what of a tool changed, in lines that hide nothing from whoever reviews it. */
import { digest } from "../core/identity.ts";
import { canonicalJson, type PinnedDefinition, type PinnedField } from "../core/pinning/fingerprint.ts";
import type { QuarantinedTool } from "../core/pinning/quarantine.ts";

export interface ChangeLine {
  readonly kind: "same" | "removed" | "added" | "field";
  readonly text: string;
}

/** Shows what a terminal or a font would not: controls, marks of direction, blanks without width, tags, variants. */
export const visible = (text: string): string =>
  text.replace(
    /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u115F\u1160\u3164\uFFA0]|\p{Variation_Selector}|(?! )\p{Zs}/gu,
    (hidden) => `\\u{${hidden.codePointAt(0)!.toString(16)}}`,
  );

const linesOf = (value: unknown): ReadonlyArray<string> => {
  if (value === undefined) return [];
  const text = typeof value === "string" ? value : JSON.stringify(JSON.parse(canonicalJson(value)), null, 2);
  return text.split("\n").map(visible);
};

/** Lines before and after the change that are shown. */
const around = 2;

const difference = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ReadonlyArray<ChangeLine> => {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head++;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail++;
  const lines = (kind: ChangeLine["kind"], texts: ReadonlyArray<string>) => texts.map((text) => ({ kind, text }));
  return [
    ...lines("same", before.slice(Math.max(0, head - around), head)),
    ...lines("removed", before.slice(head, before.length - tail)),
    ...lines("added", after.slice(head, after.length - tail)),
    ...lines("same", after.slice(after.length - tail, after.length - tail + around)),
  ];
};

/** Field by field, what was approved against what is offered. Of a new tool, all of it. */
export const changeLines = ({ approved = {}, offered }: QuarantinedTool): ReadonlyArray<ChangeLine> => {
  const fields = [...new Set([...Object.keys(approved), ...Object.keys(offered)])] as ReadonlyArray<PinnedField>;
  return fields.flatMap((field) => {
    const [before, after]: ReadonlyArray<PinnedDefinition> = [approved, offered];
    const lines = difference(linesOf(before?.[field]), linesOf(after?.[field]));
    const changed = lines.some(({ kind }) => kind !== "same");
    return changed ? [{ kind: "field" as const, text: field }, ...lines] : [];
  });
};

/** Stands for exactly these changes. */
export const markOf = (tools: ReadonlyArray<QuarantinedTool>): string =>
  digest(canonicalJson(tools.map(({ tool, digest: offered }) => [tool, offered]).toSorted()), 12);
