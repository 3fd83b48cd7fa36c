/**
 * Which era an HTTP request belongs to, told without loading either: by the revision in
 * its header, or by the envelope that only requests of 2026-07-28 and later carry.
 */
import { isRecord } from "../../core/artifact/json.ts";

const FIRST_MODERN = "2026-07-28";
const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";

/** Revisions are dates, so their order is that of texts. */
export const namesModern = (revision: string | null): boolean =>
  revision !== null && /^\d{4}-\d\d-\d\d$/.test(revision) && revision >= FIRST_MODERN;

const claims = (message: unknown): boolean => {
  const params = isRecord(message) ? message["params"] : undefined;
  const meta = isRecord(params) ? params["_meta"] : undefined;
  return isRecord(meta) && Object.hasOwn(meta, PROTOCOL_VERSION);
};

/** Whether a parsed message, or one of a batch, says that it is of the modern era. */
export const claimsModern = (message: unknown): boolean =>
  Array.isArray(message) ? message.some(claims) : claims(message);

/** The body as text; undefined when it is larger than `max` bytes. */
export const readBody = async (request: Request, max: number): Promise<string | undefined> => {
  const parts: Array<Uint8Array> = [];
  let size = 0;
  const reader = request.body?.getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader!.read()) {
    size += part.value.byteLength;
    if (size > max) {
      await reader!.cancel();
      return undefined;
    }
    parts.push(part.value);
  }
  return new Blob(parts as Array<Uint8Array<ArrayBuffer>>).text();
};
