/** The live, shared session to one endpoint, with every verb of the protocol. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { asMcpError } from "./answer.ts";
import type {
  Demand,
  EngineSession,
  Implementation,
  LoggingLevel,
  Progress,
  RawToolResult,
  ServerCapabilities,
} from "./contracts.ts";
import type { Deadlines } from "./deadlines.ts";
import { type Era, endpointName, type McpEndpoint } from "./endpoint.ts";
import { Cancelled, ConnectionLost, type McpError, type RequestError, RequestTimeout } from "./errors.ts";
import { type CachedList, makeCachedList, readAllPages } from "./listing.ts";
import { makeToolResult, type McpToolResult, toRawResult } from "./results.ts";
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

/** An item of a list, as the server sent it, with at least its key field. */
export type Listing = Readonly<Record<string, unknown>>;
export interface McpTool extends Listing {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: unknown;
  readonly outputSchema?: unknown;
  readonly annotations?: Readonly<Record<string, unknown>>;
}

export type ListKind = "tools" | "resources" | "resourceTemplates" | "prompts";

type Request<A> = Effect.Effect<A, RequestError>;

/** Verbs fail with `RequestError`s; interrupting one cancels it on the server. */
export interface McpClient {
  readonly endpoint: McpEndpoint;
  readonly era: Era;
  readonly protocolVersion: string;
  readonly serverInfo: Implementation;
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
  readonly isConnected: boolean;
  /** Name of the endpoint's own gate; none for HTTP. */
  readonly limiter: string | undefined;
  /** What one call needs of the gates. */
  readonly demand: Demand;
  readonly pid: number | undefined;

  readonly listTools: () => Request<ReadonlyArray<McpTool>>;
  readonly listResources: () => Request<ReadonlyArray<Listing>>;
  readonly listResourceTemplates: () => Request<ReadonlyArray<Listing>>;
  readonly listPrompts: () => Request<ReadonlyArray<Listing>>;
  readonly callTool: (
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: RequestOptions,
  ) => Request<McpToolResult>;
  readonly readResource: (uri: string, options?: RequestOptions) => Request<Listing>;
  readonly subscribeResource: (uri: string, options?: RequestOptions) => Request<Listing>;
  readonly unsubscribeResource: (uri: string, options?: RequestOptions) => Request<Listing>;
  readonly getPrompt: (
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: RequestOptions,
  ) => Request<Listing>;
  readonly complete: (params: Readonly<Record<string, unknown>>, options?: RequestOptions) => Request<Listing>;
  readonly setLogLevel: (level: LoggingLevel, options?: RequestOptions) => Request<Listing>;
  readonly ping: (options?: RequestOptions) => Request<Listing>;
  readonly notifyRootsChanged: () => Request<void>;
  /** Any other method of the protocol. */
  readonly request: (
    method: string,
    params?: Readonly<Record<string, unknown>>,
    options?: RequestOptions,
  ) => Request<unknown>;
  /** Calls `listener` for every notification of the server; answers the way to stop. */
  readonly onNotification: (listener: NotificationListener) => () => void;
}

export type NotificationListener = (method: string, params: Readonly<Record<string, unknown>>) => void;

/** What the pool needs beside the verbs. */
export interface LiveClient extends McpClient {
  /** Raw items of a list, malformed ones included. */
  readonly listItems: (kind: ListKind) => Request<ReadonlyArray<unknown>>;
  /** A tool call's answer before it is turned into what a model sees. */
  readonly callRaw: (
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options?: RequestOptions,
  ) => Request<RawToolResult>;
  readonly inFlight: () => number;
  /** The connection is gone: nothing more is sent. */
  readonly markClosed: (error: McpError | undefined) => void;
  /** Cancels every running request, telling the server. */
  readonly cancelAll: (reason: McpError) => void;
  readonly notified: NotificationListener;
}

export interface ClientOptions {
  readonly endpoint: McpEndpoint;
  readonly session: EngineSession;
  readonly settings: McpSettings;
  readonly deadlines: Deadlines;
  readonly limiter: string | undefined;
  readonly demand: Demand;
  readonly pid: number | undefined;
  readonly diagnose: (message: string) => void;
}

const METHODS: Readonly<Record<ListKind, string>> = {
  tools: "tools/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
  prompts: "prompts/list",
};

const millis = (given: Duration.Input | undefined, fallback: number): number =>
  given === undefined ? fallback : Duration.toMillis(Duration.fromInputUnsafe(given));

const isRecord = (u: unknown): u is Record<string, unknown> => typeof u === "object" && u !== null && !Array.isArray(u);

/** Whether to ask for a list: what is not advertised is not asked for; a server that advertises nothing at all is asked for tools. */
const advertised = (capabilities: ServerCapabilities, kind: ListKind): boolean => {
  const group = kind === "resourceTemplates" ? "resources" : kind;
  return capabilities[group] !== undefined || (group === "tools" && Object.keys(capabilities).length === 0);
};

export const makeClient = (options: ClientOptions): Effect.Effect<LiveClient, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { endpoint, session, settings, deadlines, diagnose } = options;
    const server = endpointName(endpoint);
    const idleDefault = millis(endpoint.requestTimeout, settings.requestTimeout);
    const running = new Set<AbortController>();
    const listeners = new Set<NotificationListener>();
    let closed: { readonly error: McpError | undefined } | undefined;

    const request = (
      method: string,
      params?: Readonly<Record<string, unknown>>,
      given: RequestOptions = {},
    ): Request<unknown> =>
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

    const ask = (
      method: string,
      params?: Readonly<Record<string, unknown>>,
      given?: RequestOptions,
    ): Request<Listing> => Effect.map(request(method, params, given), (answer) => (isRecord(answer) ? answer : {}));

    const list = (kind: ListKind): Effect.Effect<CachedList<ReadonlyArray<unknown>>, never, Scope.Scope> =>
      makeCachedList(
        Effect.suspend(() => {
          if (!advertised(session.capabilities, kind)) return Effect.succeed({ value: [], ttl: undefined });
          const page = (cursor: string | undefined) =>
            request(METHODS[kind], cursor === undefined ? undefined : { cursor });
          return Effect.map(readAllPages({ page, field: kind, settings, diagnose }), ({ items, ttl }) => ({
            value: items,
            ttl,
          }));
        }),
        settings.listChangedDebounce,
      );

    const lists: Readonly<Record<ListKind, CachedList<ReadonlyArray<unknown>>>> = {
      tools: yield* list("tools"),
      resources: yield* list("resources"),
      resourceTemplates: yield* list("resourceTemplates"),
      prompts: yield* list("prompts"),
    };
    const wellFormed = (kind: ListKind, key: string): Request<ReadonlyArray<Listing>> =>
      Effect.map(lists[kind].get, (items) =>
        items.filter((item): item is Listing => isRecord(item) && typeof item[key] === "string"),
      );

    const callRaw: LiveClient["callRaw"] = (name, args = {}, given) =>
      Effect.map(request("tools/call", { name, arguments: args }, given), (answer) => {
        const { result, diagnostics } = toRawResult(answer);
        for (const message of diagnostics) diagnose(`result of '${name}': ${message}`);
        return result;
      });

    const changed: Readonly<Record<string, ReadonlyArray<ListKind>>> = {
      "notifications/tools/list_changed": ["tools"],
      "notifications/resources/list_changed": ["resources", "resourceTemplates"],
      "notifications/prompts/list_changed": ["prompts"],
    };

    return {
      endpoint,
      era: session.era,
      protocolVersion: session.protocolVersion,
      serverInfo: session.serverInfo,
      capabilities: session.capabilities,
      instructions: session.instructions,
      get isConnected() {
        return closed === undefined;
      },
      limiter: options.limiter,
      demand: options.demand,
      pid: options.pid,
      request,
      listTools: () => wellFormed("tools", "name") as Request<ReadonlyArray<McpTool>>,
      listResources: () => wellFormed("resources", "uri"),
      listResourceTemplates: () => wellFormed("resourceTemplates", "uriTemplate"),
      listPrompts: () => wellFormed("prompts", "name"),
      listItems: (kind) => lists[kind].get,
      callRaw,
      callTool: (name, args, given) => Effect.map(callRaw(name, args, given), (raw) => makeToolResult(raw, raw)),
      readResource: (uri, given) => ask("resources/read", { uri }, given),
      subscribeResource: (uri, given) => ask("resources/subscribe", { uri }, given),
      unsubscribeResource: (uri, given) => ask("resources/unsubscribe", { uri }, given),
      getPrompt: (name, args = {}, given) => ask("prompts/get", { name, arguments: args }, given),
      complete: (params, given) => ask("completion/complete", params, given),
      setLogLevel: (level, given) => ask("logging/setLevel", { level }, given),
      ping: (given) => ask("ping", undefined, given),
      notifyRootsChanged: () =>
        Effect.tryPromise({
          try: () => session.notify("notifications/roots/list_changed"),
          catch: (cause) => asMcpError<RequestError>(session.era, cause),
        }),
      onNotification: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      inFlight: () => running.size,
      markClosed: (error) => {
        closed ??= { error };
      },
      cancelAll: (reason) => {
        for (const controller of running) controller.abort(reason);
      },
      notified: (method, params) => {
        for (const kind of changed[method] ?? []) lists[kind].changed();
        for (const listener of listeners) {
          try {
            listener(method, params);
          } catch (cause) {
            diagnose(`a notification listener threw: ${String(cause)}`);
          }
        }
      },
    };
  });
