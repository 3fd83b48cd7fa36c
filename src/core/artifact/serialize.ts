/** What models read of artifacts: within a budget, and with how to read the rest. Nothing is cut that no registry keeps. */
import { Artifact } from "./artifact.ts";
import { sizeWithin, textEnd, utf8Size } from "./json.ts";
import { McpArtifact, type Shown, shownDepth } from "./mcp-artifact.ts";
import { takePage } from "./page.ts";
import { childPointer } from "./pointer.ts";
import { summarize } from "./summary.ts";

/** Where a model-facing text may be cut: only where the rest can be read by its ref. */
export interface ModelView {
  /** Knows which artifacts are kept. Default: none, so nothing is cut. */
  readonly artifacts?: { readonly has: (artifact: Artifact) => boolean } | undefined;
  /** Bytes of the text of one result, UTF-8, at least 600. Default 8,192. */
  readonly budget?: number | undefined;
}

export const modelBudget = 8192;

const hint = "read on with get_artifact_field";

/** The beginning of a text, its whole size, and where the rest is. At most `budget` bytes. */
export const cutText = (text: string, ref: string, budget: number, size: number = utf8Size(text)): string => {
  const footer = (shown: number): string => `\n[cut: ${shown} of ${size} bytes shown; ${hint}, ref ${ref}]`;
  const room = Math.max(0, budget - footer(size).length);
  const head = text.slice(0, textEnd(text, 0, room, room, false)).replace(/\p{Surrogate}/gu, "\uFFFD");
  return head + footer(utf8Size(head));
};

/** JSON of an artifact within a budget: whole where it fits, else as many entries as fit and how to read the rest. */
export const artifactText = (artifact: Artifact, budget: number = modelBudget): string => {
  const root = artifact.root();
  if (typeof root === "string") {
    const size = utf8Size(root);
    return size <= budget ? root : cutText(root, artifact.ref, budget, size);
  }
  const generic = artifact instanceof McpArtifact ? artifact : undefined;
  if (sizeWithin(generic ? generic.data : root, budget, shownDepth) !== undefined) {
    const whole = JSON.stringify(artifact);
    if (utf8Size(whole) <= budget) return whole;
  }
  const show = generic
    ? (key: string | number, entry: unknown, maxBytes: number): Shown | undefined =>
        generic.shown(childPointer("", key), entry, maxBytes)
    : undefined;
  const size = generic ? generic.size : sizeWithin(root, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  const page = takePage(root, { maxBytes: budget - 300 - artifact.ref.length, show });
  const whole = page.next === undefined && page.cut === undefined;
  const { value, ...about } = page;
  const text = JSON.stringify({
    artifact_ref: artifact.ref,
    ...(size === undefined ? {} : { size }),
    ...about,
    ...(whole ? {} : { rest: hint }),
    data: value,
  });
  return utf8Size(text) <= budget ? text : outline(artifact, size);
};

/** The least that can be said of an artifact: its ref, kind and size. */
const outline = (artifact: Artifact, size: number | undefined): string =>
  JSON.stringify({ artifact_ref: artifact.ref, ...summarize(artifact.root(), 40, size), rest: hint });

/**
 * JSON text of any host value. An artifact in it that the registry keeps is shown whole
 * within a quarter of the budget, else by its ref, kind, size and beginning. All else is whole.
 */
export const modelJson = (value: unknown, view: ModelView = {}): string => {
  const budget = (view.budget ?? modelBudget) / 4;
  const short = (artifact: Artifact): unknown =>
    sizeWithin(artifact.root(), budget, shownDepth) === undefined
      ? { artifact_ref: artifact.ref, ...summarize(artifact.root(), 200) }
      : artifact.toJSON();
  const text = JSON.stringify(value, function (this: Record<string, unknown>, key, json: unknown) {
    const original = this[key];
    return original instanceof Artifact && view.artifacts?.has(original) ? short(original) : json;
  }) as string | undefined;
  return text ?? "null";
};
