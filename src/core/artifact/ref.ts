/** Pure: artifact refs, `artifact:<alias>~<short id>`, and aliases, which are colon hierarchies. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { isRecord } from "./json.ts";

const aliasPattern = /^[A-Za-z0-9_.-]+(:[A-Za-z0-9_.-]+)*$/;
const refPattern = /^artifact:([A-Za-z0-9_.-]+(?::[A-Za-z0-9_.-]+)*)~[A-Za-z0-9_-]{1,64}$/;

export const isAlias = (alias: string): boolean => alias.length <= 128 && aliasPattern.test(alias);

/** The alias a ref carries; `undefined` when the value is no ref. */
export const aliasOf = (ref: unknown): string | undefined =>
  typeof ref === "string" && ref.length <= 256 ? refPattern.exec(ref)?.[1] : undefined;

/** The ref a payload carries in its field `artifact_ref`; `undefined` when it carries none. */
export const carriedRef = (payload: unknown): string | undefined => {
  if (!isRecord(payload) || !Object.hasOwn(payload, "artifact_ref")) return undefined;
  const ref = payload["artifact_ref"];
  return aliasOf(ref) === undefined ? undefined : (ref as string);
};

/** A ref whose short id is a digest of the content, given in pieces: equal content, equal ref. 48 bits. */
export const mintRef = (alias: string, content: Iterable<string>): string => {
  const hash = sha256.create();
  let batch = "";
  for (const piece of content) {
    batch += piece;
    if (batch.length < 65_536) continue;
    hash.update(utf8ToBytes(batch));
    batch = "";
  }
  hash.update(utf8ToBytes(batch));
  return `artifact:${alias}~${bytesToHex(hash.digest()).slice(0, 12)}`;
};

/** The alias and its ancestors, nearest first: `a:b:c`, `a:b`, `a`. */
export const aliasLadder = (alias: string): ReadonlyArray<string> => {
  const segments = alias.split(":");
  return segments.map((_, dropped) => segments.slice(0, segments.length - dropped).join(":"));
};
