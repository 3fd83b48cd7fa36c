/** What a plugin verb may return, and the one place where it becomes an Effect. */
import * as Effect from "effect/Effect";
import { isMcpError, McpError, PluginFailed } from "./errors.ts";

/**
 * A plain value, a Promise of it, or an Effect of it. An Effect may ask for
 * services `R`; core provides those the contract names (for example a Scope).
 */
export type Answer<A, E = McpError, R = never> = A | Promise<A> | Effect.Effect<A, E, R>;

/** Turns any thrown value into a tagged error of the family; ours pass unchanged. */
export const asMcpError = <E extends McpError = PluginFailed>(plugin: string, cause: unknown): E =>
  (isMcpError(cause)
    ? cause
    : new PluginFailed({ plugin, reason: cause instanceof Error ? cause.message : String(cause) }, cause)) as E;

/**
 * Runs a plugin verb and lifts its answer into Effect. A throw or a rejection
 * becomes `PluginFailed`, unless it already is one of our errors.
 */
export const lift = <A, E extends McpError = PluginFailed, R = never>(
  plugin: string,
  verb: () => Answer<A, E, R>,
): Effect.Effect<A, E | PluginFailed, R> =>
  Effect.suspend(() => {
    let answer: Answer<A, E, R>;
    try {
      answer = verb();
    } catch (cause) {
      return Effect.fail(asMcpError<E>(plugin, cause));
    }
    if (Effect.isEffect(answer)) return answer as Effect.Effect<A, E, R>;
    if (answer instanceof Promise) {
      const promise = answer;
      return Effect.tryPromise({ try: () => promise, catch: (cause) => asMcpError<E>(plugin, cause) });
    }
    return Effect.succeed(answer as A);
  });
