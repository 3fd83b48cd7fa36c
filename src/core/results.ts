/** Tool results: any answer of tools/call made safe, and what programs and models read of it. */
import { blockText, contentText, silence } from "./artifact/content-text.ts";
import { isRecord, jsonText } from "./artifact/json.ts";
import type { ContentBlock, RawToolResult } from "./contracts.ts";

export { modelText } from "./artifact/model-text.ts";

/** A safe result, and what had to be mended in the answer. */
export interface SafeResult {
  readonly result: RawToolResult;
  readonly diagnostics: ReadonlyArray<string>;
}

const none: ReadonlyArray<string> = [];

/** A block of the right shape: an object with a type, and a text that is a string. */
const isSound = (block: unknown): block is ContentBlock =>
  typeof block === "object" &&
  block !== null &&
  typeof (block as ContentBlock).type === "string" &&
  ((block as ContentBlock).type !== "text" || typeof (block as ContentBlock)["text"] === "string");

const mendBlock = (block: unknown): ContentBlock => {
  if (isSound(block)) return block;
  if (typeof block === "string") return { type: "text", text: block };
  if (!isRecord(block)) return { type: "unknown", value: block };
  if (block["type"] !== "text") return { type: "unknown", value: block };
  return { ...block, type: "text", text: block["text"] == null ? "" : jsonText(block["text"]) };
};

const mendContent = (content: unknown, note: (problem: string) => void): ReadonlyArray<ContentBlock> => {
  if (content == null) {
    note("content is missing");
    return [];
  }
  if (!Array.isArray(content)) note("content is no list");
  const blocks: ReadonlyArray<unknown> = Array.isArray(content) ? content : [content];
  const bad = blocks.findIndex((block) => !isSound(block));
  if (bad >= 0 && Array.isArray(content)) note(`content block ${bad} has no type or no text`);
  return blocks.map(mendBlock);
};

const mend = (answer: unknown): SafeResult => {
  const diagnostics: Array<string> = [];
  const note = (problem: string): void => void diagnostics.push(`tools/call result: ${problem}`);
  if (!isRecord(answer)) {
    note("the answer is no object");
    return { result: { content: answer == null ? [] : mendContent(answer, note), isError: false }, diagnostics };
  }
  // Protocol version 2024-10-07 answered with `toolResult` alone.
  const old = answer["content"] === undefined && answer["toolResult"] !== undefined;
  const structured = answer["structuredContent"] ?? (old ? answer["toolResult"] : undefined);
  const content = old ? [] : mendContent(answer["content"], note);
  const flag = answer["isError"];
  if (flag !== undefined && typeof flag !== "boolean") note(`isError is ${typeof flag}, not a boolean`);
  const result = {
    content,
    isError: flag === true || flag === 1 || (typeof flag === "string" && flag.trim().toLowerCase() === "true"),
    ...(structured === undefined || structured === null ? {} : { structuredContent: structured }),
    ...(isRecord(answer["_meta"]) ? { _meta: answer["_meta"] } : {}),
  };
  return { result, diagnostics };
};

/**
 * Makes any answer of tools/call safe: `content` is always a list of objects with a
 * string `type`, and a text block's `text` is always a string. Never throws.
 *
 * Gotchas: `structuredContent: null` counts as absent. An `isError` that is no boolean
 * is malformed: the string "true" and the number 1 mean true, all else false, and a
 * diagnostic says so. Nothing is guessed from the wording of a text.
 */
export const toRawResult = (answer: unknown): SafeResult => {
  try {
    if (isRecord(answer) && Array.isArray(answer["content"])) {
      const { content, structuredContent, isError, _meta } = answer as Record<string, any>;
      if (
        structuredContent == null &&
        _meta === undefined &&
        (isError === undefined || typeof isError === "boolean") &&
        content.every(isSound)
      )
        return { result: { content, isError: isError === true }, diagnostics: none };
    }
    return mend(answer);
  } catch (cause) {
    const problem = `tools/call result: it cannot be read: ${cause instanceof Error ? cause.message : typeof cause}`;
    return { result: { content: [], isError: false }, diagnostics: [problem] };
  }
};

/** What one tool call gave: the parts for programs, and `resultArtifact` for models. */
export class McpToolResult {
  /** JSON that the tool declares as its structured result; `undefined` when there is none. */
  readonly structuredContent: unknown;
  /** The tool itself reports a failure. A result to read, not an exception. */
  readonly isError: boolean;
  /** What a model sees. */
  readonly resultArtifact: unknown;
  readonly #raw: RawToolResult;

  constructor(raw: RawToolResult, resultArtifact: unknown) {
    this.#raw = raw;
    this.structuredContent = raw.structuredContent;
    this.isError = raw.isError;
    this.resultArtifact = resultArtifact;
  }

  /** The content blocks as the server sent them, for programs. Not part of the JSON form. */
  get content(): ReadonlyArray<ContentBlock> {
    return this.#raw.content;
  }

  /** The whole result as the server sent it, made safe. */
  get raw(): RawToolResult {
    return this.#raw;
  }

  /** `_meta` of the result. */
  get meta(): Readonly<Record<string, unknown>> | undefined {
    return this.#raw._meta;
  }

  /** Text of the first text block that is not blank; without one, all the result says as text. Empty only for an empty success. */
  get textContent(): string {
    const first = this.#raw.content.find((block) => block.type === "text" && blockText(block).trim() !== "");
    return first ? blockText(first) : this.#fallback();
  }

  /** All text blocks, joined by line breaks; without one, as `textContent`. */
  get allTextContent(): string {
    const texts = this.#raw.content.filter((block) => block.type === "text").map(blockText);
    const all = texts.length === 1 ? texts[0]! : texts.join("\n");
    return all.trim() === "" ? this.#fallback() : all;
  }

  #fallback(): string {
    return contentText(this.#raw) || (this.isError ? silence(true) : "");
  }

  toJSON(): Readonly<Record<string, unknown>> {
    return {
      isError: this.isError,
      ...(this.structuredContent === undefined ? {} : { structuredContent: this.structuredContent }),
      resultArtifact: this.resultArtifact,
      ...(this.meta === undefined ? {} : { _meta: this.meta }),
    };
  }
}

export const makeToolResult = (raw: RawToolResult, resultArtifact: unknown): McpToolResult =>
  new McpToolResult(raw, resultArtifact);
