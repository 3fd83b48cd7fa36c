/** What is fuzzed: a target opens worlds, and a world takes scripts until one of them breaks it. */
import type * as fc from "fast-check";
import { isMcpError } from "../../src/core/errors.ts";
import * as errors from "../../src/core/errors.ts";

export interface World<S> {
  /** Plays one script. Rejects when something broke. */
  readonly feed: (script: S) => Promise<void>;
  /** Ends the world. Rejects when something stayed behind. */
  readonly close: () => Promise<void>;
}

export interface Target<S = any> {
  readonly name: string;
  /** Its part of all messages. */
  readonly weight: number;
  readonly script: fc.Arbitrary<S>;
  /** Messages in a script. */
  readonly count: (script: S) => number;
  readonly open: () => Promise<World<S>>;
  /** Scripts that one world takes before it is closed and the next one opened. Default 100. */
  readonly scriptsPerWorld?: number;
}

export class Broken extends Error {
  override readonly name = "Broken";
}

export const demand = (holds: boolean, what: string): void => {
  if (!holds) throw new Broken(what);
};

const tags: ReadonlySet<string> = new Set(Object.keys(errors));

/** What a failure has to be: one of the family, with a tag that hosts can catch and a message they can show. */
export const demandTyped = (error: unknown, what: string): void => {
  const shown = (): string => (error instanceof Error ? `${error.name}: ${error.stack}` : String(error));
  demand(isMcpError(error), `${what} failed with no McpError: ${isMcpError(error) ? "" : shown()}`);
  const { _tag, message } = error as { readonly _tag?: unknown; readonly message: unknown };
  demand(typeof _tag === "string" && tags.has(_tag), `${what} failed with the unknown tag ${String(_tag)}`);
  demand(typeof message === "string" && message !== "", `${what} failed without a message`);
  if (_tag === "PluginFailed") {
    const cause = (error as { readonly cause?: unknown }).cause;
    const accident = cause instanceof TypeError || cause instanceof RangeError || cause instanceof SyntaxError;
    demand(!accident, `${what} failed by an accident inside: ${(cause as Error)?.stack}`);
  }
};

/** Lets promises that are ready go on: microtasks only. */
export const microtasks = async (turns: number): Promise<void> => {
  for (let turn = 0; turn < turns; turn++) await undefined;
};

/** Lets the event loop turn once. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** How a promise ended, once it has. */
export interface Watched<A> {
  readonly outcome: () => { readonly value: A } | { readonly error: unknown } | undefined;
}

export const watch = <A>(promise: Promise<A>): Watched<A> => {
  let outcome: { readonly value: A } | { readonly error: unknown } | undefined;
  promise.then(
    (value) => (outcome = { value }),
    (error: unknown) => (outcome = { error }),
  );
  return { outcome: () => outcome };
};

/** How long something that has to happen may take, ms. */
const patience = 5000;

/** Lets the event loop turn until it holds: at most so many times or, where none are given, until it had long to happen. */
export const until = async (holds: () => boolean, turns?: number): Promise<boolean> => {
  for (let i = 0; i < (turns ?? 50) && !holds(); i++) await turn();
  if (turns !== undefined) return holds();
  // Timers that are due at once still need a millisecond.
  for (const since = performance.now(); !holds() && performance.now() - since < patience;)
    await new Promise((resolve) => setTimeout(resolve, 1));
  return holds();
};
