/** Pure: reads a WWW-Authenticate header (RFC 9110 section 11.6.1). */

export interface Challenge {
  /** Lower case. */
  readonly scheme: string;
  /** Names in lower case. */
  readonly params: Readonly<Record<string, string | undefined>>;
}

const TOKEN = /[!#$%&'*+.^_`|~0-9A-Za-z-]+/y;
const VALUE = /\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/y;
const GAP = /[\s,]*/y;

const at = (pattern: RegExp, text: string, index: number): RegExpExecArray | null => {
  pattern.lastIndex = index;
  return pattern.exec(text);
};

/**
 * All challenges of a header, in order. A word followed by `=value` is a parameter
 * of the challenge before it, any other word opens a new one. Unreadable rest is ignored.
 */
export const parseChallenges = (header = ""): ReadonlyArray<Challenge> => {
  const challenges: Array<{ scheme: string; params: Record<string, string> }> = [];
  let index = 0;
  while (index < header.length) {
    index += at(GAP, header, index)?.[0].length ?? 0;
    const word = at(TOKEN, header, index)?.[0];
    if (word === undefined) break;
    index += word.length;
    const value = at(VALUE, header, index);
    if (!value) challenges.push({ scheme: word.toLowerCase(), params: Object.create(null) as Record<string, string> });
    else {
      index += value[0].length;
      const params = challenges.at(-1)?.params;
      if (params) params[word.toLowerCase()] ??= value[1]?.replace(/\\(.)/g, "$1") ?? value[2] ?? "";
    }
  }
  return challenges;
};

/** The challenge an OAuth client answers: Bearer or DPoP, the one that names an error first. */
export const oauthChallenge = (header: string | undefined): Challenge["params"] => {
  const known = parseChallenges(header).filter(({ scheme }) => scheme === "bearer" || scheme === "dpop");
  return (known.find(({ params }) => params["error"] !== undefined) ?? known[0])?.params ?? {};
};

/** Scope names of a space-separated list, each once. */
export const scopesOf = (scope: string | undefined): ReadonlyArray<string> => [
  ...new Set((scope ?? "").split(/\s+/).filter(Boolean)),
];
