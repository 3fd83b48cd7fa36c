/**
 * Messages on their way to a server's stdin. All that is sent in one tick, or while
 * the pipe is full, becomes one write; and one promise serves all of that write.
 */
import type { Writable } from "node:stream";

interface Batch {
  text: string;
  readonly written: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

const makeBatch = (): Batch => {
  let resolve!: () => void;
  let reject!: (error: unknown) => void;
  const written = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // A sender that does not wait must not bring the host down.
  written.catch(() => {});
  return { text: "", written, resolve, reject };
};

export class Outbox {
  readonly #stdin: Writable;
  #waiting: Batch | undefined;
  readonly #writing = new Set<Batch>();
  #full = false;

  constructor(stdin: Writable) {
    this.#stdin = stdin;
  }

  /** Queues text. Settles when it is written to the pipe, or rejects when it cannot be. */
  push(text: string): Promise<void> {
    if (!this.#waiting) {
      this.#waiting = makeBatch();
      if (!this.#full) queueMicrotask(this.#flush);
    }
    this.#waiting.text += text;
    return this.#waiting.written;
  }

  /** Ends stdin after what is queued. */
  end(): void {
    this.#full = false;
    this.#flush();
    this.#stdin.end();
  }

  /** The pipe is broken: what was being written may have arrived, what waits has not. */
  fail(error: (outcome: "not-sent" | "unknown") => unknown): void {
    for (const batch of this.#writing) batch.reject(error("unknown"));
    this.#writing.clear();
    this.#waiting?.reject(error("not-sent"));
    this.#waiting = undefined;
  }

  readonly #flush = (): void => {
    const batch = this.#waiting;
    if (!batch || this.#full || this.#stdin.writableEnded) return;
    this.#waiting = undefined;
    this.#writing.add(batch);
    const hasRoom = this.#stdin.write(batch.text, (error) => {
      // A failed write is settled by `fail`, when it is known how the process ended.
      if (!error && this.#writing.delete(batch)) batch.resolve();
    });
    if (hasRoom) return;
    this.#full = true;
    this.#stdin.once("drain", () => {
      this.#full = false;
      this.#flush();
    });
  };
}
