/**
 * Cancellation of one request. An `AbortSignal` costs more than the rest of a call's
 * bookkeeping, so it is made only for who asks for it.
 */
export class Cancellation {
  /** Why it was cancelled; undefined while it is not. */
  reason: unknown = undefined;
  #listener: ((reason: unknown) => void) | undefined;
  #controller: AbortController | undefined;

  /** Calls `listener` once, when cancelled. One listener: the engine. */
  readonly onCancel = (listener: (reason: unknown) => void): void => {
    this.#listener = listener;
  };

  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.reason !== undefined) this.#controller.abort(this.reason);
    return this.#controller.signal;
  }

  /** The first reason stands. */
  cancel(reason: unknown): void {
    if (this.reason !== undefined) return;
    this.reason = reason;
    this.#listener?.(reason);
    this.#controller?.abort(reason);
  }
}
