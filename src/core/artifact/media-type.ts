/** Pure: what bytes are, by their first ones (WHATWG MIME Sniffing, section 6, and the formats' own marks). */

const latin1 = (bytes: Uint8Array, from: number, to: number): string =>
  String.fromCharCode(...bytes.subarray(from, Math.min(to, bytes.length)));

/** Mark at offset 0, and the type it means. Longer marks first where two begin alike. */
const marks: ReadonlyArray<readonly [mark: string, type: string]> = [
  ["\x89PNG\r\n\x1a\n", "image/png"],
  ["\xff\xd8\xff", "image/jpeg"],
  ["GIF87a", "image/gif"],
  ["GIF89a", "image/gif"],
  ["II*\0", "image/tiff"],
  ["MM\0*", "image/tiff"],
  ["%PDF-", "application/pdf"],
  ["PK\x03\x04", "application/zip"],
  ["PK\x05\x06", "application/zip"],
  ["\x1f\x8b", "application/gzip"],
  ["OggS", "audio/ogg"],
  ["fLaC", "audio/flac"],
  ["ID3", "audio/mpeg"],
  ["\xff\xfb", "audio/mpeg"],
  ["\xff\xf3", "audio/mpeg"],
  ["\x1aE\xdf\xa3", "video/webm"],
];

const riff: Readonly<Record<string, string>> = { WAVE: "audio/wav", WEBP: "image/webp", "AVI ": "video/avi" };

const boxes: Readonly<Record<string, string>> = {
  avif: "image/avif",
  heic: "image/heic",
  "M4A ": "audio/mp4",
  "qt  ": "video/quicktime",
};

/** The type the first bytes tell; `undefined` when they tell none. */
export const sniffType = (bytes: Uint8Array): string | undefined => {
  const head = latin1(bytes, 0, 16);
  if (head.startsWith("RIFF")) return riff[head.slice(8, 12)];
  if (head.slice(4, 8) === "ftyp") return boxes[head.slice(8, 12)] ?? "video/mp4";
  return marks.find(([mark]) => head.startsWith(mark))?.[1];
};

/** Other names of a sniffed type, and formats that are built on it. */
const family: Readonly<Record<string, RegExp>> = {
  "image/jpeg": /^image\/p?jpe?g$/,
  "image/png": /^image\/(x-|a)?png$/,
  "image/tiff": /^image\//,
  "image/heic": /^image\/hei[cf]/,
  "application/zip": /zip|openxmlformats|opendocument|epub|java-archive|android|\.macroenabled|x-xpinstall|3mf|usdz/,
  "application/gzip": /gzip|tar|tgz|gz$/,
  "application/pdf": /pdf|illustrator/,
  "audio/ogg": /^(audio|video|application)\/(x-)?(ogg|opus|vorbis|speex)/,
  "audio/flac": /flac/,
  "audio/mpeg": /^(audio|video)\/(x-)?(mpeg|mp3|mpeg3|mpg)/,
  "audio/wav": /^audio\/(x-|vnd\.)?(wav|wave|pn-wav)/,
  "audio/mp4": /^(audio|video)\/(x-)?(mp4|m4a|aac|m4b)/,
  "video/mp4": /^(audio|video)\/(x-)?(mp4|m4a|m4v|quicktime|3gpp2?)|^image\/(avif|hei[cf])/,
  "video/quicktime": /^video\/(quicktime|mp4)/,
  "video/avi": /avi|msvideo/,
  "video/webm": /webm|matroska|mkv|mka/,
};

/** True when a declared type may have bytes of the sniffed one. */
export const agrees = (declared: string, sniffed: string): boolean => {
  const essence = declared.split(";")[0]!.trim().toLowerCase();
  return essence === sniffed || (family[sniffed]?.test(essence) ?? false);
};
