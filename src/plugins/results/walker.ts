/** The default result normalizer: a result becomes a generic artifact whose large parts have summaries. */
import { isBlank, solePart } from "../../core/artifact/content-text.ts";
import { isRecord, parseJson } from "../../core/artifact/json.ts";
import { makeMedia } from "../../core/artifact/media.ts";
import type { McpArtifact } from "../../core/artifact/mcp-artifact.ts";
import { walk, type WalkBudgets } from "../../core/artifact/walk.ts";
import type { ContentBlock, RawToolResult, ResultNormalizer, ResultSource } from "../../core/contracts.ts";

export interface ResultWalkerOptions {
  readonly budgets?: Partial<WalkBudgets> | undefined;
  /** Binary content above this is kept as it came, not decoded. Bytes. Default 64 MiB. */
  readonly mediaMax?: number | undefined;
}

/** Numbers that JavaScript may not hold exactly: parsing them would change the result. */
const inexact = /[[:,\s]-?(\d{16,}|\d+\.\d{18,}|[\d.]+[eE]\+?\d{3,})/;

/** Text that holds a JSON object or list, parsed; any other text as it is. */
const parsed = (text: string): unknown => {
  const first = text.trimStart()[0];
  if ((first !== "{" && first !== "[") || inexact.test(text)) return text;
  return parseJson(text) ?? text;
};

/**
 * Pure: equal results give equal artifacts with equal refs. Text that holds JSON is
 * parsed; binary content is checked and gets its true type, size, hash and a safe name.
 * `data` is the structured content or the only block where the result says one thing,
 * else `{ content, structuredContent }` with the blocks at their own index.
 */
export class ResultWalker implements ResultNormalizer {
  readonly #budgets: Partial<WalkBudgets>;
  readonly #mediaMax: number;

  constructor(options: ResultWalkerOptions = {}) {
    this.#budgets = options.budgets ?? {};
    this.#mediaMax = options.mediaMax ?? 64 * 1024 * 1024;
  }

  normalize(result: RawToolResult, source: ResultSource): McpArtifact {
    const diagnose = source.diagnose ?? (() => {});
    return walk(this.#data(result, diagnose), { mcpHandle: source.handle, toolName: source.tool }, this.#budgets);
  }

  #data(result: RawToolResult, diagnose: (problem: string) => void): unknown {
    const sole = solePart(result);
    if (sole) return "structured" in sole ? sole.structured : this.#block(sole.block, diagnose);
    if (result.structuredContent === undefined && result.content.every(isBlank)) return "";
    const content = result.content.map((block) => this.#block(block, diagnose));
    return result.structuredContent === undefined
      ? { content }
      : { content, structuredContent: result.structuredContent };
  }

  #block(block: ContentBlock, diagnose: (problem: string) => void): unknown {
    if (block.type === "text") return parsed(String(block["text"]));
    if (block.type === "image" || block.type === "audio")
      return makeMedia(
        { type: block.type, data: block["data"], mimeType: block["mimeType"] },
        this.#mediaMax,
        diagnose,
      );
    const resource = block["resource"];
    if (block.type !== "resource" || !isRecord(resource) || !("blob" in resource)) return block;
    const { blob, mimeType, uri } = resource;
    return makeMedia({ type: "resource", data: blob, mimeType, uri }, this.#mediaMax, diagnose);
  }
}
