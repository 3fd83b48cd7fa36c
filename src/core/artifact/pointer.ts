/** Pure: JSON Pointers (RFC 6901), the string form. */

/** Escapes one token: `~` and `/`. */
const escapeToken = (token: string | number): string => String(token).replaceAll("~", "~0").replaceAll("/", "~1");

/** The pointer to a child of the value at `pointer`. */
export const childPointer = (pointer: string, key: string | number): string => `${pointer}/${escapeToken(key)}`;

export const formatPointer = (tokens: ReadonlyArray<string | number>): string => tokens.reduce(childPointer, "");

/** The tokens of a pointer; `undefined` when it is none. The empty pointer is the whole value. */
export const parsePointer = (pointer: string): ReadonlyArray<string> | undefined => {
  if (pointer === "") return [];
  if (!pointer.startsWith("/") || /~(?![01])/.test(pointer)) return undefined;
  return pointer
    .slice(1)
    .split("/")
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
};

/** What a pointer leads to, or how far it leads. */
export type Resolved =
  | { readonly found: true; readonly value: unknown }
  | { readonly found: false; /** Tokens that did resolve. */ readonly depth: number; readonly value: unknown };

/** Follows tokens from `root`. Only own members count, so no token reaches a prototype. */
export const resolveTokens = (root: unknown, tokens: ReadonlyArray<string>): Resolved => {
  let value = root;
  for (const [depth, token] of tokens.entries()) {
    const inside =
      typeof value === "object" && value !== null && (!Array.isArray(value) || /^(0|[1-9]\d*)$/.test(token));
    if (!inside || !Object.hasOwn(value as object, token)) return { found: false, depth, value };
    value = (value as Readonly<Record<string, unknown>>)[token];
  }
  return { found: true, value };
};
