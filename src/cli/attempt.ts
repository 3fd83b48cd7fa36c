/** Promises of commands as Effects: an untyped failure names the part that failed. */
import * as Effect from "effect/Effect";
import { asMcpError } from "../core/answer.ts";
import type { McpError } from "../core/errors.ts";

export const attempt = <A>(part: string, work: () => Promise<A>): Effect.Effect<A, McpError> =>
  Effect.tryPromise({ try: work, catch: (cause) => asMcpError<McpError>(part, cause) });
