/** Pure: which URLs may carry credentials, and when two of them mean the same. */

const isLoopback = (hostname: string): boolean =>
  hostname === "localhost" || hostname === "[::1]" || /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/.test(hostname);

/** https, or http to this machine (OAuth 2.1 section 1.5). Nothing secret is sent anywhere else. */
export const isSecure = (url: string): boolean => {
  if (!URL.canParse(url)) return false;
  const { protocol, hostname } = new URL(url);
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
};

/** Whether a redirect URI belongs to an application on the user's own machine (RFC 8252 section 7). */
export const isNative = (redirectUri: string): boolean => {
  const { protocol, hostname } = new URL(redirectUri);
  return protocol !== "https:" && (protocol !== "http:" || isLoopback(hostname));
};

/** A URL fit for messages: no user, query or fragment. */
export const shown = (url: string): string => {
  if (!URL.canParse(url)) return "(not a URL)";
  const { origin, pathname } = new URL(url);
  return origin + pathname;
};

/**
 * The resource indicator of a server that publishes none: its URL without user,
 * query and fragment, and without a slash that stands for an empty path.
 */
export const resourceOf = (serverUrl: string): string => {
  const { origin, pathname } = new URL(serverUrl);
  return pathname === "/" ? origin : origin + pathname;
};

const slashed = (url: URL): string => url.pathname.replace(/\/?$/, "/");

/**
 * Whether a published resource covers the server's URL: the same origin, and the
 * same path or a parent of it at a segment border (RFC 9728 sections 3.3 and 7.3).
 */
export const covers = (resource: string, serverUrl: string): boolean => {
  if (!URL.canParse(resource)) return false;
  const [outer, inner] = [new URL(resource), new URL(serverUrl)];
  return outer.origin === inner.origin && outer.hash === "" && slashed(inner).startsWith(slashed(outer));
};

const canonical = (text: string): string => {
  const url = new URL(text);
  return url.origin + url.pathname + url.search;
};

/**
 * Issuer comparison. Spelling of scheme, host and default port does not matter, and
 * an empty path equals "/" (RFC 3986 sections 6.2.2.1 and 6.2.3). Any other path has to be
 * the advertised one, letter by letter (RFC 8414 section 3.3).
 */
export const sameIssuer = (a: string, b: string): boolean => {
  if (!URL.canParse(a) || !URL.canParse(b)) return a === b;
  return canonical(a) === canonical(b);
};

const wellKnown = (base: string, suffix: string, path: string): string =>
  `${new URL(base).origin}/.well-known/${suffix}${path}`;

const pathOf = (url: string): string => new URL(url).pathname.replace(/\/$/, "");

/** Where protected resource metadata may be: with the server's path, then at the root (RFC 9728 section 3.1). */
export const resourceMetadataUrls = (serverUrl: string): ReadonlyArray<string> => {
  const name = "oauth-protected-resource";
  const { search } = new URL(serverUrl);
  const candidates = [wellKnown(serverUrl, name, pathOf(serverUrl)) + search, wellKnown(serverUrl, name, "")];
  return [...new Set(candidates)];
};

/** Where metadata of an issuer may be, always on its own host (RFC 8414 sections 3.1 and 5). */
export const serverMetadataUrls = (issuer: string): ReadonlyArray<string> => {
  const path = pathOf(issuer);
  return [
    ...new Set([
      wellKnown(issuer, "oauth-authorization-server", path),
      wellKnown(issuer, "openid-configuration", path),
      `${new URL(issuer).origin}${path}/.well-known/openid-configuration`,
    ]),
  ];
};
