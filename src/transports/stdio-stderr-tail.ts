/** The last bytes a server wrote to stderr, in a fixed amount of memory. Pure. */
import { printable, type Secrets } from "./stdio-secrets.ts";

export class StderrTail {
  readonly #max: number;
  readonly #secrets: Secrets;
  /** Bytes before the shown window, where a secret may begin that reaches into it. */
  readonly #margin: number;
  readonly #keep: number;
  /** Made when there is something to keep; it never grows. */
  #buffer: Uint8Array | undefined;
  #length = 0;
  #cut = false;

  /** `max`: bytes kept. */
  constructor(max: number, secrets: Secrets) {
    this.#max = max;
    this.#secrets = secrets;
    // A character of a secret takes at most three bytes for each unit of its length.
    this.#margin = secrets.longest * 3;
    this.#keep = max + this.#margin;
  }

  push(chunk: Uint8Array): void {
    const buffer = (this.#buffer ??= new Uint8Array(this.#keep * 2));
    const part = chunk.length > this.#keep ? chunk.subarray(-this.#keep) : chunk;
    this.#cut ||= this.#length + chunk.length > this.#keep;
    if (this.#length + part.length > buffer.length) {
      const kept = Math.min(this.#length, this.#keep);
      buffer.copyWithin(0, this.#length - kept, this.#length);
      this.#length = kept;
    }
    buffer.set(part, this.#length);
    this.#length += part.length;
  }

  /** The tail as text with secrets masked; empty when nothing was written. */
  toString(): string {
    if (!this.#buffer) return "";
    const decoder = new TextDecoder();
    const bytes = this.#buffer.subarray(Math.max(0, this.#length - this.#keep), this.#length);
    const covered = this.#secrets.cover(decoder.decode(bytes));
    const hidden = this.#cut ? decoder.decode(bytes.subarray(0, this.#margin)).length : 0;
    return printable(covered.slice(Math.max(hidden, covered.length - this.#max))).trim();
  }
}
