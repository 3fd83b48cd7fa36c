/** One HTTP exchange with an authorization server: https only, within reach, bounded in time and size, redirects kept in. */
import * as Effect from "effect/Effect";
import { type NetworkReach, outOfReach } from "./network-reach.ts";
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

/** Why a URL is not asked, in words that follow the URL; `undefined` when it may be. */
export const refusalOf = (url: string, reach: NetworkReach): string | undefined =>
  isSecure(url) ? outOfReach(url, reach) : "is neither https nor on this machine";

/**
 * Sends one request. A redirect is followed only by a GET, on the same origin,
 * three times at most; any other one is answered as it is.
 */
export const exchange = (
  url: string,
  reach: NetworkReach,
  init: RequestInit = {},
  redirects = 3,
): Effect.Effect<HttpAnswer, HttpFault> => {
  const refused = refusalOf(url, reach);
  if (refused !== undefined) return Effect.fail({ reason: refused, retryable: false });
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
        ? exchange(target.href, reach, init, redirects - 1)
        : Effect.succeed(answer);
    }),
  );
};
