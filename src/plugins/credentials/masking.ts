/** Pure: keeps secrets that a server echoes out of messages. */

/** Shortest piece of a secret that is masked. */
const PIECE = 8;

/** Makes a server's text fit for a message: short, printable, and free of the secrets. */
export type Mask = (text: string) => string;

/**
 * A mask for these secrets. Any piece of eight characters of one of them is
 * replaced, and a shorter secret as a whole.
 */
export const maskOf =
  (secrets: ReadonlyArray<string>): Mask =>
  (text) => {
    const clean = text.slice(0, 2000).replace(/[^\x20-\x7e\u00a0-\uffff]+/g, " ");
    const hidden = new Set<number>();
    for (const secret of secrets) {
      const length = Math.min(PIECE, secret.length);
      if (length < 3) continue;
      const pieces = new Set<string>();
      for (let i = 0; i + length <= secret.length; i++) pieces.add(secret.slice(i, i + length));
      for (let i = 0; i + length <= clean.length; i++) {
        if (pieces.has(clean.slice(i, i + length))) for (let j = 0; j < length; j++) hidden.add(i + j);
      }
    }
    const masked = [...clean.split("").keys()].map((i) => (!hidden.has(i) ? clean[i] : hidden.has(i - 1) ? "" : "***"));
    return masked.join("").trim().slice(0, 300);
  };
