/** Pure: binary content of results. It stays Base64 text, beside its true type, size, hash and a safe name. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";
import * as Base64 from "effect/encoding/Base64";
import { isRecord } from "./json.ts";
import { extensionOf, safeName } from "./media-name.ts";
import { agrees, sniffType } from "./media-type.ts";

/** Where binary content came from. */
export type MediaKind = "image" | "audio" | "resource";

/** Binary content, checked. Plain JSON, so it travels and is paged like any other value. */
export interface Media {
  readonly type: MediaKind;
  /** What the bytes are; the declared type where the bytes do not tell. */
  readonly mimeType: string;
  /** What the server called it, where that is something else. */
  readonly declaredType?: string | undefined;
  /** Bytes. */
  readonly size: number;
  /** SHA-256 of the bytes, lower-case hex. */
  readonly sha256: string;
  /** Safe to use as a file name on any system. */
  readonly name: string;
  readonly uri?: string | undefined;
  /** The bytes as Base64 (RFC 4648 section 4). */
  readonly data: string;
}

/** Content that claims to be binary and is not usable as such; kept as it came. */
export interface BrokenMedia {
  readonly type: MediaKind;
  readonly problem: string;
  readonly mimeType?: string | undefined;
  readonly uri?: string | undefined;
  readonly data: unknown;
}

export const isMedia = (value: unknown): value is Media =>
  isRecord(value) &&
  typeof value["data"] === "string" &&
  typeof value["size"] === "number" &&
  typeof value["sha256"] === "string" &&
  /^[0-9a-f]{64}$/.test(value["sha256"]);

/** Bytes behind a Base64 text, told from its length alone. */
export const encodedSize = (base64: string): number =>
  Math.floor((base64.length * 3) / 4) - (base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0);

/** Why a text is no standard Base64, or `undefined` when it is. Nothing is decoded. */
export const base64Problem = (text: unknown): string | undefined => {
  if (typeof text !== "string") return "has no data";
  const bad = /[^A-Za-z0-9+/=]|=(?!=?$)/.exec(text);
  if (bad) return `is no Base64: unexpected ${JSON.stringify(bad[0])} at ${bad.index}`;
  return text.length % 4 === 0 ? undefined : `is no Base64: its length ${text.length} is no multiple of 4`;
};

/** The bytes of a media value. */
export const mediaBytes = (media: Media): Uint8Array => {
  const decoded = Base64.decode(media.data);
  return decoded._tag === "Success" ? decoded.success : new Uint8Array();
};

export interface MediaSource {
  readonly type: MediaKind;
  readonly data: unknown;
  readonly mimeType: unknown;
  readonly uri?: unknown;
}

/**
 * Checks binary content: standard Base64 only, size by the encoded length before
 * anything is decoded, type by the first bytes, hash. `diagnose` hears what is odd.
 */
export const makeMedia = (
  source: MediaSource,
  maxBytes: number,
  diagnose: (problem: string) => void,
): Media | BrokenMedia => {
  const claim = typeof source.mimeType === "string" ? source.mimeType : undefined;
  const declared = claim === "application/octet-stream" ? undefined : claim;
  const uri = typeof source.uri === "string" ? { uri: source.uri } : {};
  const broken = (problem: string): BrokenMedia => {
    diagnose(`${source.type} content ${problem}`);
    return {
      type: source.type,
      problem,
      ...(declared === undefined ? {} : { mimeType: declared }),
      ...uri,
      data: source.data,
    };
  };
  if (typeof source.data === "string" && encodedSize(source.data) > maxBytes)
    return broken(`has ${encodedSize(source.data)} bytes, more than ${maxBytes}, and was not decoded`);
  const problem = base64Problem(source.data);
  if (problem !== undefined) return broken(problem);
  const data = source.data as string;
  const decoded = Base64.decode(data);
  if (decoded._tag === "Failure") return broken("is no Base64");
  const bytes = decoded.success;
  const hash = bytesToHex(sha256(bytes));
  const sniffed = sniffType(bytes);
  const honest = sniffed === undefined || (declared !== undefined && agrees(declared, sniffed));
  const mimeType = (honest ? declared : sniffed) ?? "application/octet-stream";
  const lying = !honest && declared !== undefined;
  if (lying) diagnose(`${source.type} content is declared as ${JSON.stringify(declared)} and is ${sniffed}`);
  return {
    type: source.type,
    mimeType,
    ...(lying ? { declaredType: declared } : {}),
    size: bytes.length,
    sha256: hash,
    name: safeName(source.uri) ?? `${source.type}-${hash.slice(0, 8)}${extensionOf(mimeType)}`,
    ...uri,
    data,
  };
};
