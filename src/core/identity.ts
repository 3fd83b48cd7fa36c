/** Pure: endpoint ids. Two endpoints share a client exactly when their ids are equal. */
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/** Lower-case hex SHA-256 of a text, cut to `length` characters. */
export const digest = (text: string, length = 16): string => bytesToHex(sha256(utf8ToBytes(text))).slice(0, length);

/**
 * Digest of a string map: over the entries sorted by key, in an encoding in which
 * no two different maps look alike. Values never leave it.
 */
export const digestEntries = (entries: Readonly<Record<string, string>>): string =>
  digest(JSON.stringify(Object.entries(entries).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0))));

/** Quotes a word where it holds anything that could make two argument lists look alike. */
const quote = (word: string): string => (/^[^\s"'\\#]+$/.test(word) ? word : JSON.stringify(word));

export interface StdioIdentity {
  readonly command: string;
  readonly args?: ReadonlyArray<string> | undefined;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

/** Command and arguments joined by blanks, `#cwd:<path>`, `#env:<digest>`; the label is no part of it. */
export const stdioId = (endpoint: StdioIdentity): string => {
  const words = [endpoint.command, ...(endpoint.args ?? [])].map(quote).join(" ");
  const cwd = endpoint.cwd === undefined ? "" : `#cwd:${quote(endpoint.cwd)}`;
  const env = endpoint.env && Object.keys(endpoint.env).length > 0 ? `#env:${digestEntries(endpoint.env)}` : "";
  return words + cwd + env;
};

/**
 * An endpoint id without what is made of secrets: environment, headers, query, userinfo.
 * Secrets are renewed, and the server is the same; the user it is used as stays.
 */
export const withoutSecretParts = (endpointId: string): string =>
  endpointId.replace(/#(?:env|headers|userinfo):[0-9a-f]{16}|\?[0-9a-f]{16}(?=#|$)/g, "");

export interface HttpIdentity {
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly flavor?: string | undefined;
  readonly user?: string | undefined;
}

/** A URL fit for ids, messages and health: no userinfo, no fragment, query values as a digest. */
export const normalizeUrl = (url: string | URL): string => {
  const parsed = URL.canParse(String(url)) ? new URL(url) : undefined;
  if (!parsed) return String(url);
  const secretPart = `${parsed.username}:${parsed.password}`;
  parsed.username = "";
  parsed.password = "";
  parsed.hash = "";
  const query = parsed.search;
  parsed.search = "";
  const marks = (query ? `?${digest(query)}` : "") + (secretPart === ":" ? "" : `#userinfo:${digest(secretPart)}`);
  return parsed.href + marks;
};

/** The URL, `#as:<user>`, `#headers:<digest>`, and the flavor when it is not `auto`. */
export const httpId = (endpoint: HttpIdentity): string => {
  const user = endpoint.user === undefined ? "" : `#as:${encodeURIComponent(endpoint.user)}`;
  const lower = Object.fromEntries(Object.entries(endpoint.headers ?? {}).map(([k, v]) => [k.toLowerCase(), v]));
  const headers = Object.keys(lower).length > 0 ? `#headers:${digestEntries(lower)}` : "";
  const flavor = endpoint.flavor === undefined || endpoint.flavor === "auto" ? "" : `#flavor:${endpoint.flavor}`;
  return normalizeUrl(endpoint.url) + user + headers + flavor;
};
