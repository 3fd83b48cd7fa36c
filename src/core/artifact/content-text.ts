/** Pure: the words a model reads for the parts of a tool result. */
import type { ContentBlock, RawToolResult } from "../contracts.ts";
import { isRecord, jsonText, parseJson, sameJson } from "./json.ts";

/** Without control and format characters, which could forge lines or hide text. */
const shown = (value: unknown): string =>
  typeof value === "string" ? value.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "") : "";
const clip = (value: unknown): string => shown(value).slice(0, 200);
const words = (...parts: ReadonlyArray<string>): string => `[${parts.filter((part) => part !== "").join(" ")}]`;

/** Bytes behind a Base64 text, told from its length alone. */
export const encodedSize = (base64: string): number =>
  Math.floor((base64.length * 3) / 4) - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);

const binary = (kind: string, name: unknown, type: unknown, data: unknown): string =>
  typeof data === "string"
    ? words(kind, clip(name), clip(type), `${encodedSize(data)} bytes`)
    : words(kind, clip(name), clip(type), "without data");

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

/** True when `structuredContent` is there and no text block already holds it. */
export const addsStructure = (result: RawToolResult): boolean =>
  result.structuredContent !== undefined &&
  !result.content.some((block) => block.type === "text" && repeats(String(block["text"]), result.structuredContent));

/** All a result says, as text: its blocks, then the JSON of `structuredContent` unless a block repeats it. May be empty. */
export const contentText = (result: RawToolResult): string => {
  const first = result.content[0];
  if (result.content.length === 1 && first?.type === "text" && result.structuredContent === undefined)
    return String(first["text"]);
  const parts = result.content.map(blockText);
  if (addsStructure(result)) parts.push(jsonText(result.structuredContent));
  return parts.filter((part) => part.trim() !== "").join("\n");
};
