/** Pure: the words a model reads for the parts of a tool result. */
import type { ContentBlock, RawToolResult } from "../contracts.ts";
import { isRecord, jsonText, parseJson, sameJson } from "./json.ts";
import { base64Problem, encodedSize } from "./media.ts";

/** Without control and format characters, which could forge lines or hide text. */
const shown = (value: unknown): string =>
  typeof value === "string" ? value.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "") : "";
const clip = (value: unknown): string => shown(value).slice(0, 200);
const words = (...parts: ReadonlyArray<string>): string => `[${parts.filter((part) => part !== "").join(" ")}]`;

const binary = (kind: string, name: unknown, type: unknown, data: unknown): string => {
  const problem = base64Problem(data);
  return problem === undefined
    ? words(kind, clip(name), clip(type), `${encodedSize(data as string)} bytes`)
    : words(kind, clip(name), clip(type), problem);
};

const resourceText = (resource: unknown): string => {
  if (!isRecord(resource)) return "[resource without content]";
  if (typeof resource["text"] === "string") return resource["text"];
  return binary("resource", resource["uri"], resource["mimeType"], resource["blob"]);
};

/** What a model reads of one content block: its text, or a placeholder that names what it is. */
export const blockText = (block: ContentBlock): string => {
  switch (block.type) {
    case "text":
      return String(block["text"]);
    case "image":
    case "audio":
      return binary(block.type, "", block["mimeType"], block["data"]);
    case "resource":
      return resourceText(block["resource"]);
    case "resource_link":
      return words(
        "resource_link",
        clip(block["title"] ?? block["name"]),
        clip(block["uri"]),
        clip(block["description"]),
      );
    default:
      return `[content of unknown type '${clip(block.type)}']`;
  }
};

/** True when the text says no more and no less than the value: its JSON, or the sole value of `{ result }` as it is. */
export const repeats = (text: string, value: unknown): boolean => {
  if (typeof value === "string" && text === value) return true;
  if (isRecord(value) && Object.keys(value).length === 1 && value["result"] === text) return true;
  if (typeof value === "object" && text.trimStart()[0] !== (Array.isArray(value) ? "[" : "{")) return false;
  const parsed = parseJson(text);
  return parsed !== undefined && sameJson(parsed, value);
};

export const isBlank = (block: ContentBlock): boolean => block.type === "text" && String(block["text"]).trim() === "";

const textRepeats = (block: ContentBlock | undefined, value: unknown): boolean =>
  block?.type === "text" && repeats(String(block["text"]), value);

/** True when `structuredContent` is there and the text blocks do not already hold it: one of them whole, or each one item of `{ result }`. */
export const addsStructure = (result: RawToolResult): boolean => {
  const { content, structuredContent } = result;
  if (structuredContent === undefined) return false;
  if (content.some((block) => textRepeats(block, structuredContent))) return false;
  const items =
    isRecord(structuredContent) && Object.keys(structuredContent).length === 1 && structuredContent["result"];
  if (!Array.isArray(items) || items.length !== content.length) return true;
  return !content.every((block, i) => textRepeats(block, items[i]));
};

/** The one thing a result says, where it says just one: its structured content, or its only block that is not blank. */
export const solePart = (
  result: RawToolResult,
): { readonly structured: unknown } | { readonly block: ContentBlock } | undefined => {
  const blocks = result.content.filter((block) => !isBlank(block));
  if (result.structuredContent === undefined) return blocks.length === 1 ? { block: blocks[0]! } : undefined;
  const says = blocks.length === 0 || (blocks.every((block) => block.type === "text") && !addsStructure(result));
  return says ? { structured: result.structuredContent } : undefined;
};

/** All a result says, as text: its blocks, then the JSON of `structuredContent` unless text repeats it. May be empty. */
export const contentText = (
  result: RawToolResult,
  textOf: (block: ContentBlock, index: number) => string = blockText,
): string => {
  const first = result.content[0];
  if (result.content.length === 1 && first?.type === "text" && result.structuredContent === undefined)
    return String(first["text"]);
  const parts = result.content.map(textOf);
  if (addsStructure(result)) parts.push(jsonText(result.structuredContent));
  return parts.filter((part) => part.trim() !== "").join("\n");
};

/** What a model reads where a result says nothing at all. */
export const silence = (isError: boolean): string =>
  isError ? "The tool reported an error and gave no details." : "The tool answered with no content.";
