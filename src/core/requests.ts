/** Requests on a session: time limits, cancellation, and what is running. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { asMcpError } from "./answer.ts";
import { Cancellation } from "./cancellation.ts";
import type { EngineSession, Progress, SessionRequestOptions } from "./contracts.ts";
import type { Deadlines, Expiring } from "./deadlines.ts";
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

const millis = (given: Duration.Input): number => Duration.toMillis(Duration.fromInputUnsafe(given));

/** What the requests of one session share. */
interface Session {
  readonly server: string;
  readonly deadlines: Deadlines;
  readonly diagnose: (message: string) => void;
}

/** A request on the wire, as its engine and its deadline see it. */
class RunningRequest extends Cancellation implements SessionRequestOptions, Expiring {
  idleAt = Infinity;
  totalAt = Infinity;
  holds = 0;
  readonly idle: number;
  readonly total: number;
  readonly onProgress: (progress: Progress) => void;
  readonly #session: Session;
  readonly #method: string;

  constructor(session: Session, method: string, idle: number, total: number, listener: RequestOptions["onProgress"]) {
    super();
    this.#session = session;
    this.#method = method;
    this.idle = idle;
    this.total = total;
    this.onProgress = (progress) => {
      session.deadlines.touch(this);
      try {
        listener?.(progress);
      } catch (cause) {
        session.diagnose(`onProgress threw: ${String(cause)}`);
      }
    };
  }

  expire(kind: "idle" | "total"): void {
    const timeout = kind === "idle" ? this.idle : this.total;
    this.cancel(new RequestTimeout({ server: this.#session.server, method: this.#method, kind, timeout }));
  }

  onHostWork(): () => void {
    return this.#session.deadlines.hold(this);
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
  const shared: Session = { server, deadlines, diagnose };
  const idleDefault = endpoint.requestTimeout === undefined ? settings.requestTimeout : millis(endpoint.requestTimeout);
  const running = new Set<RunningRequest>();
  let closed: { readonly error: McpError | undefined } | undefined;

  const request: Requests["request"] = (method, params, given = {}) =>
    Effect.callback<unknown, RequestError>((resume) => {
      if (closed) {
        const reason = closed.error?.message ?? "the connection is closed";
        resume(Effect.fail(new ConnectionLost({ server, outcome: "not-sent", reason }, closed.error)));
        return;
      }
      const idle = given.timeout === undefined ? idleDefault : millis(given.timeout);
      const total = given.maxTotalTimeout === undefined ? settings.maxTotalTimeout : millis(given.maxTotalTimeout);
      const current = new RunningRequest(shared, method, idle, total, given.onProgress);
      deadlines.start(current);
      running.add(current);
      const end = (): void => {
        deadlines.stop(current);
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
