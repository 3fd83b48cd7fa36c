/** What every contract suite is made of: named cases that reject when a plugin breaks its contract. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { type Answer, lift } from "../core/answer.ts";
import { isMcpError, type McpError } from "../core/errors.ts";

/** One promise of a contract. `run` settles when the plugin keeps it and rejects with `ContractBreach` when not. */
export interface ContractCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

/** A suite has no runner: `for (const { name, run } of suite) it(name, run)` fits any. */
export type ContractSuite = ReadonlyArray<ContractCase>;

/** A plugin does not do what its contract says. */
export class ContractBreach extends Error {
  override readonly name: string = "ContractBreach";
}

/** Longest wait for anything a plugin promises, ms. */
const patience = 10_000;

export function demand(held: unknown, breach: string): asserts held {
  if (!held) throw new ContractBreach(breach);
}

const shown = (value: unknown): string => (JSON.stringify(value) ?? String(value)).slice(0, 200);

/** Both values say the same as JSON, keys in the same order. */
export const demandSame = (what: string, actual: unknown, expected: unknown): void =>
  demand(
    JSON.stringify(actual) === JSON.stringify(expected),
    `${what}: found ${shown(actual)} instead of ${shown(expected)}`,
  );

/** Settles with the promise; a promise that hangs is a breach. */
export const within = <A>(what: string, promise: Promise<A>, ms: number = patience): Promise<A> => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new ContractBreach(`${what}: nothing happened within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
};

/** Waits until the condition holds. */
export const eventually = async (what: string, condition: () => boolean | Promise<boolean>): Promise<void> => {
  const deadline = performance.now() + patience;
  while (!(await condition())) {
    demand(performance.now() < deadline, `${what}: not so after ${patience} ms`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** What a verb of a plugin answers, whatever form the answer has. */
export const answerOf = <A>(plugin: string, verb: () => Answer<A, McpError>): Promise<A> =>
  within(plugin, runs(lift<A, McpError>(plugin, verb)));

/** Runs an effect; rejects with its own error. */
export const runs = async <A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal): Promise<A> => {
  const exit = await Effect.runPromiseExit(effect, signal ? { signal } : undefined);
  if (Exit.isSuccess(exit)) return exit.value;
  throw Cause.squash(exit.cause);
};

/** The rejection of a promise; it is a breach when there is none. */
export const rejectionOf = async (what: string, promise: Promise<unknown>): Promise<unknown> => {
  const settled = await within(
    what,
    promise.then(
      () => undefined,
      (cause: unknown) => ({ cause }),
    ),
  );
  demand(settled, `${what}: it was expected to fail, and succeeded`);
  if (settled.cause instanceof ContractBreach) throw settled.cause;
  return settled.cause;
};

/** The rejection of a promise, which has to be an error of the family. */
export const mcpErrorOf = async (what: string, promise: Promise<unknown>): Promise<McpError & { _tag: string }> => {
  const cause = await rejectionOf(what, promise);
  demand(isMcpError(cause), `${what}: it failed with ${String(cause)}, which is no McpError`);
  return cause as McpError & { _tag: string };
};

/** Runs `use` in a scope of its own, which is closed behind it; `close` closes it before. */
export const scoped = async <A>(
  use: (scope: { readonly scope: Scope.Closeable; readonly close: () => Promise<void> }) => Promise<A>,
): Promise<A> => {
  const scope = Effect.runSync(Scope.make());
  const close = () => within("closing the scope", runs(Scope.close(scope, Exit.void)));
  try {
    return await use({ scope, close });
  } finally {
    await close();
  }
};

/** The value, unchangeable in depth: whoever writes to it throws. */
export const frozen = <A>(value: A): A => {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const part of Object.values(value)) frozen(part);
  return value;
};
