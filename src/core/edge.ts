/** Effect to Promise, at the edge of the runtime: signals and causes, nothing else. */
import * as Cause from "effect/Cause";
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { Cancelled, PluginFailed } from "./errors.ts";

/**
 * Runs an Effect as a Promise. An abort rejects with the host's own reason and
 * interrupts; a signal aborted before never starts the Effect. A typed failure
 * rejects with the same instance an Effect host would catch.
 */
export type Run = <A, E>(effect: Effect.Effect<A, E>, signal?: AbortSignal) => Promise<A>;

const toRejection = (cause: Cause.Cause<unknown>): unknown => {
  const error = Cause.findErrorOption(cause);
  if (error._tag === "Some") return error.value;
  if (Cause.hasInterruptsOnly(cause)) return new Cancelled({ reason: "the call was interrupted" });
  const defect = Cause.squash(cause);
  return new PluginFailed({ plugin: "core", reason: `unexpected defect: ${String(defect)}` }, defect);
};

export const makeEdge = (context: Context.Context<never>): Run => {
  const fork = Effect.runForkWith(context);
  return (effect, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const fiber = fork(effect);
      const onAbort = (): void => {
        reject(signal?.reason);
        fiber.interruptUnsafe();
      };
      signal?.addEventListener("abort", onAbort, { once: true });
      fiber.addObserver((exit) => {
        signal?.removeEventListener("abort", onAbort);
        if (Exit.isSuccess(exit)) resolve(exit.value);
        else reject(toRejection(exit.cause));
      });
    });
};
