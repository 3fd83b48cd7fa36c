/** Requests on a session: time limits, cancellation, and what is running. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { asMcpError } from "./answer.ts";
import { Cancellation } from "./cancellation.ts";
import type { EngineSession, Progress, SessionRequestOptions } from "./contracts.ts";
import type { Deadline, Deadlines } from "./deadlines.ts";
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

/** A request on the wire, as its engine sees it. */
class RunningRequest extends Cancellation implements SessionRequestOptions {
  deadline: Deadline | undefined = undefined;
  readonly onProgress: (progress: Progress) => void;
  constructor(listener: RequestOptions["onProgress"], diagnose: (message: string) => void) {
    super();
    this.onProgress = (progress) => {
      this.deadline?.touch();
      try {
        listener?.(progress);
      } catch (cause) {
        diagnose(`onProgress threw: ${String(cause)}`);
      }
    };
  }

  onHostWork(): () => void {
    return this.deadline?.hold() ?? (() => {});
  }
}

export const makeRequests = (
  session: EngineSession,
  settings: McpSettings,
  deadlines: Deadlines,
  endpoint: McpEndpoint,
  diagnose: (message: string) => void,
): Requests => {
  const server = endpointName(endpoint);
  const idleDefault = millis(endpoint.requestTimeout, settings.requestTimeout);
  const running = new Set<RunningRequest>();
  let closed: { readonly error: McpError | undefined } | undefined;

  const request: Requests["request"] = (method, params, given = {}) =>
    Effect.callback<unknown, RequestError>((resume) => {
      if (closed) {
        const reason = closed.error?.message ?? "the connection is closed";
        resume(Effect.fail(new ConnectionLost({ server, outcome: "not-sent", reason }, closed.error)));
        return;
      }
      const current = new RunningRequest(given.onProgress, diagnose);
      const total = millis(given.maxTotalTimeout, settings.maxTotalTimeout);
      current.deadline = deadlines.add(millis(given.timeout, idleDefault), total, (kind, timeout) =>
        current.cancel(new RequestTimeout({ server, method, kind, timeout })),
      );
      running.add(current);
      const end = (): void => {
        current.deadline!.remove();
        running.delete(current);
      };
      const sent = given.meta ? { ...params, _meta: given.meta } : (params as Record<string, unknown> | undefined);
      session.request(method, sent, current).then(
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
        current.cancel(new Cancelled({ reason: "the caller gave up" }));
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
      for (const current of running) current.cancel(reason);
    },
  };
};
