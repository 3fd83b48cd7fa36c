/**
 * Hides the values of an endpoint's environment in whatever its server says, in
 * stderr and in stray lines of stdout. Pure.
 */

/** Stands for one hidden character until the text is cut to size; a private-use character. */
const cover = "\uE000";
/** A shorter value is no secret, and hiding `1` or `no` everywhere would garble the text. */
const shortest = 4;

export interface Secrets {
  /** Length of the longest secret: how much to look at beyond a cut, so that no part of a secret stays. */
  readonly longest: number;
  /** Covers each secret by as many placeholder characters, so that lengths and positions stay. */
  readonly cover: (text: string) => string;
}

/** A secret also shows JSON-escaped, URL-encoded, and, when it has many lines, line by line. */
const forms = (value: string): ReadonlyArray<string> => [
  value,
  JSON.stringify(value).slice(1, -1),
  ...(/\p{Surrogate}/u.test(value) ? [] : [encodeURIComponent(value)]),
  ...value.split(/\r?\n/),
];

export const makeSecrets = (env: Readonly<Record<string, string>> | undefined): Secrets => {
  const secrets = [...new Set(Object.values(env ?? {}).flatMap(forms))]
    .filter((secret) => secret.trim().length >= shortest)
    .toSorted((a, b) => b.length - a.length);
  return {
    longest: secrets[0]?.length ?? 0,
    cover: (text) => secrets.reduce((all, secret) => all.replaceAll(secret, cover.repeat(secret.length)), text),
  };
};

/** Covered text as people may see it: covers shortened, terminal sequences and control characters removed. */
export const printable = (covered: string): string =>
  covered
    .replace(/\uE000+/g, "***")
    // oxlint-disable-next-line no-control-regex -- these are what is to be removed
    .replace(/\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "");
