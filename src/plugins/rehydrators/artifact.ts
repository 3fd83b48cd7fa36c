/** Rebuilds typed artifacts that another process of this kind served. Nothing is negotiated: the ref carries the alias. */
import { type Artifact, ListArtifact } from "../../core/artifact/artifact.ts";
import { TypeAliasRegistry } from "../../core/artifact/alias.ts";
import { parseJson } from "../../core/artifact/json.ts";
import { carriedRef } from "../../core/artifact/ref.ts";
import type { ArtifactRehydrator, RawToolResult, ResultSource } from "../../core/contracts.ts";

const noTypes = new TypeAliasRegistry();

/** The root of a result: its structured content, else its only block's JSON. */
const rootOf = (result: RawToolResult): unknown => {
  if (result.structuredContent !== undefined) return result.structuredContent;
  const block = result.content[0];
  const text = result.content.length === 1 && block?.type === "text" ? String(block["text"]) : "";
  return text.includes('"artifact_ref"') ? parseJson(text) : undefined;
};

/**
 * Answers an artifact when the root of the result carries an `artifact_ref`, a
 * `ListArtifact` when the root is a list of such; else `undefined`, so that the generic
 * path takes the result whole. Error results are never artifacts.
 */
export const artifactRehydrator: ArtifactRehydrator = {
  rehydrate: (result: RawToolResult, source: ResultSource): Artifact | undefined => {
    if (result.isError) return undefined;
    const root = rootOf(result);
    const about = { mcpHandle: source.handle, toolName: source.tool };
    const revive = (payload: unknown): Artifact => (source.types ?? noTypes).revive(payload, about, source.diagnose);
    if (carriedRef(root) !== undefined) return revive(root);
    if (!Array.isArray(root) || root.length === 0) return undefined;
    return root.every((item) => carriedRef(item) !== undefined) ? new ListArtifact(root.map(revive)) : undefined;
  },
};
