/** Rate limits: Retry-After (RFC 9110 section 10.2.3) honoured for requests that may be sent twice. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import { discard } from "./http-body.ts";
import { isSafe } from "./http-message.ts";

/** Retries of one request, and the longest single wait the client is willing to make, ms. */
const RETRIES = 2;
const WAIT_MAX = 10_000;

/** Milliseconds a Retry-After header asks to wait: delay seconds or an HTTP date. */
export const retryAfter = (header: string | null, now: number): number | undefined => {
  const value = header?.trim() ?? "";
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const date = /\bGMT$/i.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
};

/**
 * Repeats a safe POST that was answered 429 or 503, after the wait the server asks
 * for (1 s, then 2 s, when it names none). A wait beyond 10 s, beyond what is left of
 * `limit` (ms), or after a third refusal is not made: the refusal is returned.
 */
export const honourRetryAfter =
  <E>(request: (url: URL, init: RequestInit) => Effect.Effect<Response, E>, limit: number) =>
  (url: URL, init: RequestInit): Effect.Effect<Response, E> =>
    Effect.gen(function* () {
      const started = yield* Clock.currentTimeMillis;
      for (let attempt = 0; ; attempt++) {
        const response = yield* request(url, init);
        if (response.status !== 429 && response.status !== 503) return response;
        const now = yield* Clock.currentTimeMillis;
        const wait = retryAfter(response.headers.get("retry-after"), now) ?? 1000 * 2 ** attempt;
        const hopeless = attempt === RETRIES || wait > WAIT_MAX || now + wait - started >= limit;
        if (hopeless || init.method !== "POST" || typeof init.body !== "string" || !isSafe(init.body)) return response;
        yield* discard(response);
        yield* Effect.sleep(wait);
      }
    });
