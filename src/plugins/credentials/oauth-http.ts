/** One HTTP exchange with an authorization server: https only, bounded in time and size, redirects kept in. */
import * as Effect from "effect/Effect";
import { isSecure } from "./url-rules.ts";

/** Longest wait for one answer, ms. */
const TIMEOUT = 10_000;
/** Largest document read, bytes. */
const SIZE_MAX = 256 * 1024;

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** Why there is no answer. The callers turn it into errors of the family. */
export interface HttpFault {
  readonly reason: string;
  readonly retryable: boolean;
}

const readBounded = async (response: Response): Promise<string> => {
  const decoder = new TextDecoder();
  let [text, size] = ["", 0];
  const reader = response.body?.getReader();
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
    size += next.value.byteLength;
    if (size > SIZE_MAX) {
      await reader?.cancel();
      throw new RangeError("too large");
    }
    text += decoder.decode(next.value, { stream: true });
  }
  return text + decoder.decode();
};

/** Only the code: the message of a failed fetch may hold the URL or a header. */
const faultOf = (cause: unknown): HttpFault => {
  if (cause instanceof RangeError) return { reason: `answered with more than ${SIZE_MAX} bytes`, retryable: false };
  const { code } = ((cause as Error | undefined)?.cause ?? cause ?? {}) as { readonly code?: unknown };
  return { reason: `could not be reached${typeof code === "string" ? ` (${code})` : ""}`, retryable: true };
};

/**
 * Sends one request. A redirect is followed only by a GET, on the same origin,
 * three times at most; any other one is answered as it is.
 */
export const exchange = (url: string, init: RequestInit = {}, redirects = 3): Effect.Effect<HttpAnswer, HttpFault> => {
  if (!isSecure(url)) return Effect.fail({ reason: "is neither https nor on this machine", retryable: false });
  const once = Effect.tryPromise({
    try: async (signal): Promise<HttpAnswer> => {
      const response = await fetch(url, { ...init, redirect: "manual", signal });
      return { status: response.status, headers: response.headers, text: await readBounded(response) };
    },
    catch: faultOf,
  });
  return once.pipe(
    Effect.timeoutOrElse({
      duration: TIMEOUT,
      orElse: () => Effect.fail({ reason: `did not answer within ${TIMEOUT / 1000} s`, retryable: true }),
    }),
    Effect.flatMap((answer) => {
      const location = answer.headers.get("location");
      const target = location !== null && URL.canParse(location, url) ? new URL(location, url) : undefined;
      const follow = answer.status >= 300 && answer.status < 400 && (init.method ?? "GET") === "GET" && redirects > 0;
      return follow && target?.origin === new URL(url).origin
        ? exchange(target.href, init, redirects - 1)
        : Effect.succeed(answer);
    }),
  );
};
