/** What became of every promise that callers were given. */
import { pulse } from "./pulse.ts";

export interface Expectation {
  /** In words, for the report: `call m0.2 via runtime`. */
  readonly what: string;
  readonly to: "faulty" | "neighbour" | "runtime";
  /** The `marker` of a tool call. */
  readonly marker?: string;
  /** It has to settle within this, ms. */
  readonly bound: number;
  /** The caller's signal is aborted then, ms; 0: before. */
  readonly abort?: number | undefined;
}

export interface Outcome extends Expectation {
  state: "pending" | "answered" | "failed";
  value?: unknown;
  error?: unknown;
  /** The reason the caller's signal was aborted with, where it was. */
  reason?: unknown;
  /** ms of the pulse that it took; so far, when it is pending. */
  took: number;
  /** Whether the close of the runtime had begun when it settled. */
  closing: boolean;
}

/** A settled promise may lag this much behind its bound on a crowded machine, ms. */
export const slack = 3000;

const pending = Symbol("pending");

/** Settles when the promise does, or with `pending` after `ms` of the pulse. */
const within = async <A>(promise: Promise<A>, ms: number): Promise<A | typeof pending> => {
  const end = pulse.now() + ms;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<typeof pending>((resolve) => {
    const look = (): void => {
      if (pulse.now() >= end) resolve(pending);
      else timer = setTimeout(look, Math.min(end - pulse.now(), 1000));
    };
    look();
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
};

export class Outcomes {
  readonly all: Array<Outcome> = [];
  /** Set when the runtime's close begins. */
  closing = false;

  /** Watches one promise: answers its value, or undefined when it failed or does not settle. Never rejects. */
  async watch<A>(
    expected: Expectation,
    start: (signal: AbortSignal | undefined) => Promise<A>,
  ): Promise<A | undefined> {
    const outcome: Outcome = { ...expected, state: "pending", took: 0, closing: false };
    this.all.push(outcome);
    const controller = expected.abort === undefined ? undefined : new AbortController();
    const abort = (): void => {
      outcome.reason = new Error(`the caller of ${expected.what} gave up`);
      controller?.abort(outcome.reason);
    };
    const startedAt = pulse.now();
    const timer = expected.abort ? setTimeout(abort, expected.abort) : undefined;
    if (expected.abort === 0) abort();
    try {
      const value = await within(start(controller?.signal), (expected.abort ?? expected.bound) + slack);
      if (value === pending) return undefined;
      outcome.state = "answered";
      outcome.value = value;
      return value;
    } catch (error) {
      outcome.state = "failed";
      outcome.error = error;
      return undefined;
    } finally {
      clearTimeout(timer);
      outcome.took = pulse.now() - startedAt;
      outcome.closing = this.closing;
    }
  }
}
