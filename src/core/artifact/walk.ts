/** Pure: finds the large parts of a JSON value. No I/O, no registry, no recursion; the value itself is never changed. */
import { childAt, cursorOf, type Cursor, frameSize, keyAt, scalarSize } from "./json.ts";
import { McpArtifact } from "./mcp-artifact.ts";
import { isMedia } from "./media.ts";
import { formatPointer } from "./pointer.ts";
import { carriedRef } from "./ref.ts";
import { summarize, type Summary } from "./summary.ts";

/** Sizes are bytes as JSON text. */
export interface WalkBudgets {
  /** A text above this gets a summary. Default 1,024. */
  readonly leaf: number;
  /** An object or list that still shows more than this gets a summary. Default 2,048. */
  readonly subtree: number;
  /** An object or list that still shows more than this becomes an artifact of its own. Default 8,192. */
  readonly promotion: number;
  /** Levels looked into; what lies deeper is summarised whole. Default 32. */
  readonly depth: number;
  /** Values looked at; beyond, the whole gets one summary. Default 1,000,000. */
  readonly nodes: number;
  /** Bytes of a summary's head. Default 200. */
  readonly head: number;
}

export const walkBudgets: WalkBudgets = {
  leaf: 1024,
  subtree: 2048,
  promotion: 8192,
  depth: 32,
  nodes: 1_000_000,
  head: 200,
};

export interface WalkSource {
  readonly mcpHandle: string;
  readonly toolName: string;
}

/** A finding: a summary, or an artifact of its own, and the keys that lead to it from the root. */
interface Finding {
  readonly path: ReadonlyArray<string | number>;
  readonly summary?: Summary;
  readonly nested?: McpArtifact;
}

interface Frame extends Cursor {
  /** Bytes as JSON, and bytes as shown. */
  size: number;
  shown: number;
  holdsContainers: boolean;
  /** Findings made before this frame was entered. */
  readonly before: number;
}

const isContainer = (value: unknown): value is object => typeof value === "object" && value !== null;

/**
 * Makes an artifact of a JSON value, by two rules. (a) A text, object or list over its
 * budget gets a summary in the cache, at its pointer. (b) An object or list that
 * carries an `artifact_ref`, or is over the promotion budget, becomes a nested artifact
 * with a cache of its own, whose pointers start at its own root. The root is never
 * summarised: serializers show as much of it as their budget holds.
 */
export const walk = (data: unknown, source: WalkSource, given: Partial<WalkBudgets> = {}): McpArtifact => {
  const budgets = { ...walkBudgets, ...given };
  const findings: Array<Finding> = [];
  const stack: Array<Frame> = [];
  let nodes = 0;

  const build = (value: unknown, size: number, found: ReadonlyArray<Finding>, depth: number): McpArtifact => {
    const at = (finding: Finding): string => formatPointer(finding.path.slice(depth));
    return new McpArtifact({
      ...source,
      data: value,
      size,
      summaries: new Map(
        found.flatMap((finding) => (finding.summary ? [[at(finding), finding.summary] as const] : [])),
      ),
      nested: new Map(found.flatMap((finding) => (finding.nested ? [[at(finding), finding.nested] as const] : []))),
    });
  };

  const enter = (value: object): void => {
    const cursor = cursorOf(value);
    const size = frameSize(cursor);
    stack.push({ ...cursor, size, shown: size, holdsContainers: false, before: findings.length });
  };
  /** The keys from the root to the child the top frame is at. */
  const path = (): ReadonlyArray<string | number> => stack.map((frame) => keyAt(frame, frame.at));

  const leaf = (frame: Frame, value: unknown): void => {
    const size = scalarSize(value);
    frame.size += size;
    const isBinary = typeof value === "string" && keyAt(frame, frame.at) === "data" && isMedia(frame.value);
    if (stack.length > budgets.depth || !(isBinary || (typeof value === "string" && size > budgets.leaf))) {
      frame.shown += size;
      return;
    }
    add({ summary: isBinary ? summarize(frame.value, 0) : summarize(value, budgets.head) }, frame);
  };

  const add = (found: Pick<Finding, "summary" | "nested">, parent: Frame): void => {
    const finding = { ...found, path: path() };
    findings.push(finding);
    parent.shown += 220 + budgets.head + finding.path.length * 8;
  };

  /** Rules (a) and (b) for the container that was just left; `parent.at` is still its place. */
  const leave = (frame: Frame, parent: Frame): void => {
    parent.holdsContainers = true;
    parent.size += frame.size;
    const depth = stack.length;
    const tooDeep = depth === budgets.depth && frame.holdsContainers;
    const promoted = carriedRef(frame.value) !== undefined || (frame.shown > budgets.promotion && !tooDeep);
    if (depth > budgets.depth || !(promoted || tooDeep || frame.shown > budgets.subtree)) {
      parent.shown += frame.shown;
      return;
    }
    const inner = findings.splice(frame.before);
    add(
      promoted
        ? { nested: build(frame.value, frame.size, inner, depth) }
        : { summary: summarize(frame.value, budgets.head, frame.size) },
      parent,
    );
  };

  if (!isContainer(data)) return build(data, scalarSize(data), [], 0);
  enter(data);
  for (let frame = stack.at(-1)!; ; frame = stack.at(-1)!) {
    if (frame.at < frame.count) {
      if (++nodes > budgets.nodes)
        return new McpArtifact({ ...source, data, summaries: new Map([["", summarize(data, budgets.head)]]) });
      const child = childAt(frame, frame.at);
      if (isContainer(child)) enter(child);
      else {
        leaf(frame, child);
        frame.at++;
      }
      continue;
    }
    stack.pop();
    const parent = stack.at(-1);
    if (!parent) return build(data, frame.size, findings, 0);
    leave(frame, parent);
    parent.at++;
  }
};
