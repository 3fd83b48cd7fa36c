/** Requests on a session: time limits, cancellation, and what is running. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { asMcpError } from "./answer.ts";
import type { EngineSession, Progress } from "./contracts.ts";
import type { Deadlines } from "./deadlines.ts";
import { endpointName, type McpEndpoint } from "./endpoint.ts";
import { Cancelled, ConnectionLost, type McpError, type RequestError, RequestTimeout } from "./errors.ts";
import type { McpSettings } from "./settings.ts";

/** Limits and hooks of one request. */
export interface RequestOptions {
  /** Silence after which the request fails; progress resets it. Default: the endpoint's `requestTimeout`. */
  readonly timeout?: Duration.Input | undefined;
  /** Whole request. Default: the setting `maxTotalTimeout`. */
  readonly maxTotalTimeout?: Duration.Input | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Sent as `_meta` of the request. */
  readonly meta?: Readonly<Record<string, unknown>> | undefined;
}

export interface Requests {
  readonly request: (
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options?: RequestOptions,
  ) => Effect.Effect<unknown, RequestError>;
  readonly inFlight: () => number;
  readonly open: () => boolean;
  /** The connection is gone: nothing more is sent. */
  readonly markClosed: (error: McpError | undefined) => void;
  /** Cancels every running request, telling the server. */
  readonly cancelAll: (reason: McpError) => void;
}

const millis = (given: Duration.Input | undefined, fallback: number): number =>
  given === undefined ? fallback : Duration.toMillis(Duration.fromInputUnsafe(given));

export const makeRequests = (
  session: EngineSession,
  settings: McpSettings,
  deadlines: Deadlines,
  endpoint: McpEndpoint,
  diagnose: (message: string) => void,
): Requests => {
  const server = endpointName(endpoint);
  const idleDefault = millis(endpoint.requestTimeout, settings.requestTimeout);
  const running = new Set<AbortController>();
  let closed: { readonly error: McpError | undefined } | undefined;

  const request: Requests["request"] = (method, params, given = {}) =>
    Effect.callback<unknown, RequestError>((resume) => {
      if (closed) {
        const reason = closed.error?.message ?? "the connection is closed";
        resume(Effect.fail(new ConnectionLost({ server, outcome: "not-sent", reason }, closed.error)));
        return;
      }
      const controller = new AbortController();
      const total = millis(given.maxTotalTimeout, settings.maxTotalTimeout);
      const deadline = deadlines.add(millis(given.timeout, idleDefault), total, (kind, timeout) =>
        controller.abort(new RequestTimeout({ server, method, kind, timeout })),
      );
      const end = (): void => {
        deadline.remove();
        running.delete(controller);
      };
      running.add(controller);
      const onProgress = (progress: Progress): void => {
        deadline.touch();
        try {
          given.onProgress?.(progress);
        } catch (cause) {
          diagnose(`onProgress threw: ${String(cause)}`);
        }
      };
      const sent = given.meta ? { ...params, _meta: given.meta } : (params as Record<string, unknown> | undefined);
      session.request(method, sent, { signal: controller.signal, onProgress }).then(
        (value) => {
          end();
          resume(Effect.succeed(value));
        },
        (cause: unknown) => {
          end();
          resume(Effect.fail(asMcpError<RequestError>(session.era, cause)));
        },
      );
      return Effect.sync(() => {
        end();
        controller.abort(new Cancelled({ reason: "the caller gave up" }));
      });
    });

  return {
    request,
    inFlight: () => running.size,
    open: () => closed === undefined,
    markClosed: (error) => {
      closed ??= { error };
    },
    cancelAll: (reason) => {
      for (const controller of running) controller.abort(reason);
    },
  };
};
