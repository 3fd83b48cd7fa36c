/**
 * Messages on their way to a server's stdin. All that is sent in one tick, or while
 * the pipe is full, becomes one write; and one promise serves all of that write.
 */
import type { NonEmptyReadonlyArray } from "effect/Array";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import type * as Pull from "effect/Pull";

type Bytes = NonEmptyReadonlyArray<Uint8Array>;

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

const encoder = new TextEncoder();

export class Outbox {
  #waiting: Batch | undefined;
  #writing: Batch | undefined;
  #pull: ((next: Effect.Effect<Bytes, Cause.Done>) => void) | undefined;
  #ended = false;

  /** Queues text. Settles when it is written to the pipe, or rejects when it cannot be. */
  push(text: string): Promise<void> {
    if (!this.#waiting) {
      this.#waiting = makeBatch();
      if (this.#pull) queueMicrotask(this.#offer);
    }
    this.#waiting.text += text;
    return this.#waiting.written;
  }

  /** Ends stdin after what is queued. */
  end(): void {
    this.#ended = true;
    this.#offer();
  }

  /** The pipe is broken: what was being written may have arrived, what waits has not. */
  fail(error: (outcome: "not-sent" | "unknown") => unknown): void {
    this.#writing?.reject(error("unknown"));
    this.#waiting?.reject(error("not-sent"));
    this.#writing = this.#waiting = undefined;
  }

  /** The next write; asking for it says that the one before is done. */
  readonly pull: Pull.Pull<Bytes> = Effect.callback<Bytes, Cause.Done>((resume) => {
    this.#writing?.resolve();
    this.#writing = undefined;
    this.#pull = resume;
    this.#offer();
  });

  readonly #offer = (): void => {
    const resume = this.#pull;
    const batch = this.#waiting;
    if (!resume || (!batch && !this.#ended)) return;
    this.#pull = undefined;
    this.#waiting = undefined;
    this.#writing = batch;
    resume(batch ? Effect.succeed([encoder.encode(batch.text)]) : Cause.done());
  };
}
