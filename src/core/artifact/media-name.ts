/** Pure: file names that are safe on every system, from whatever a server sends. */

const extensions: Readonly<Record<string, string>> = {
  "image/png": ".png",
  "image/jpeg": ".jpg",
  "image/gif": ".gif",
  "image/webp": ".webp",
  "image/svg+xml": ".svg",
  "audio/wav": ".wav",
  "audio/mpeg": ".mp3",
  "audio/ogg": ".ogg",
  "audio/flac": ".flac",
  "audio/mp4": ".m4a",
  "video/mp4": ".mp4",
  "application/pdf": ".pdf",
  "application/zip": ".zip",
  "application/gzip": ".gz",
};

export const extensionOf = (mimeType: string): string => extensions[mimeType] ?? ".bin";

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Names Windows keeps for devices, with any extension. */
const reserved = /^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

/**
 * The last path segment of a URI as a file name: no separators, no control or format
 * characters, no leading dots, no device names, at most 100 characters. `undefined`
 * when nothing usable is left.
 */
export const safeName = (uri: unknown): string | undefined => {
  if (typeof uri !== "string") return undefined;
  const path = decoded(uri.split(/[?#]/)[0]!.slice(-1000)).replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/*/, "");
  const last = path.split(/[/\\]/).findLast((segment) => /[\p{L}\p{N}]/u.test(segment)) ?? "";
  const clean = last
    .normalize("NFC")
    .replace(/[\p{C}\p{Z}<>:"|?*]+/gu, "_")
    .replace(/^[._]+|[._]+$/g, "");
  const short = clean.length <= 100 ? clean : Array.from(clean.slice(0, 90)).slice(0, -1).join("") + shortEnd(clean);
  return short === "" ? undefined : reserved.test(short) ? `file-${short}` : short;
};

/** The extension of a long name, where it has a short one. */
const shortEnd = (name: string): string => /\.[A-Za-z0-9]{1,9}$/.exec(name)?.[0] ?? "";
