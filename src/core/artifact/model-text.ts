/** What a model reads of a tool result. */
import type { ContentBlock, RawToolResult } from "../contracts.ts";
import { Artifact } from "./artifact.ts";
import { blockText, contentText, silence, solePart } from "./content-text.ts";
import { isRecord, sizeWithin, utf8Size } from "./json.ts";
import { McpArtifact, shownDepth } from "./mcp-artifact.ts";
import { isMedia } from "./media.ts";
import { artifactText, cutText, modelBudget, modelJson, type ModelView } from "./serialize.ts";

/** The parts of a result that its text is made of. */
export interface Presented {
  readonly raw: RawToolResult;
  readonly isError: boolean;
  readonly resultArtifact: unknown;
}

/** Text of one block, with what the artifact knows of its bytes. */
const described =
  (data: unknown) =>
  (block: ContentBlock, index: number): string => {
    if (block.type === "text") return blockText(block);
    const list = isRecord(data) ? data["content"] : undefined;
    const part: unknown = Array.isArray(list) ? list[index] : data;
    return isMedia(part)
      ? `[${part.type} ${part.mimeType} ${part.size} bytes, sha256 ${part.sha256}, name ${part.name}]`
      : blockText(block);
  };

const holdsBinary = (block: ContentBlock): boolean =>
  typeof block["data"] === "string" || (isRecord(block["resource"]) && typeof block["resource"]["blob"] === "string");

const isShort = (raw: RawToolResult, budget: number): boolean =>
  raw.content.reduce((units, block) => units + (block.type === "text" ? String(block["text"]).length : 0), 0) <=
    budget &&
  (raw.structuredContent === undefined || sizeWithin(raw.structuredContent, budget, shownDepth) !== undefined);

/** A generic artifact that is kept: the result's own text where it fits, else its beginning. */
const genericText = (raw: RawToolResult, artifact: McpArtifact, budget: number): string => {
  const textOf = described(artifact.data);
  if (isShort(raw, budget)) {
    const footer = raw.content.some(holdsBinary) ? `\n[kept as ${artifact.ref}; get_artifact_field reads it]` : "";
    const text = contentText(raw, textOf) + footer;
    if (utf8Size(text) <= budget) return text;
  }
  const sole = solePart(raw);
  const isJson = sole !== undefined && ("structured" in sole || sole.block.type === "text");
  return isJson && typeof artifact.data !== "string"
    ? artifactText(artifact, budget)
    : cutText(contentText(raw, textOf), artifact.ref, budget);
};

/**
 * What a model reads of a result; never empty. Blocks in order, then the JSON of
 * `structuredContent` unless text repeats it. Where the view's registry keeps the
 * artifact, the text stays within the budget and says how to read the rest; without
 * a registry nothing is cut.
 */
export const modelText = (result: Presented, view: ModelView = {}): string => {
  const { raw, resultArtifact } = result;
  const budget = view.budget ?? modelBudget;
  const kept = resultArtifact instanceof Artifact && view.artifacts?.has(resultArtifact) === true;
  const text = (): string => {
    if (typeof resultArtifact === "string") return resultArtifact;
    if (resultArtifact === raw || resultArtifact === undefined) return contentText(raw);
    if (!(resultArtifact instanceof Artifact)) return modelJson(resultArtifact, view);
    if (resultArtifact instanceof McpArtifact)
      return kept ? genericText(raw, resultArtifact, budget) : contentText(raw);
    return kept ? artifactText(resultArtifact, budget) : JSON.stringify(resultArtifact);
  };
  const answer = text();
  return answer.trim() === "" ? silence(result.isError) : answer;
};
