/** The live, shared session to one endpoint, with every verb of the protocol. */
import { isRecord } from "./artifact/json.ts";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { asMcpError } from "./answer.ts";
import type {
  Demand,
  EngineSession,
  Implementation,
  LoggingLevel,
  RawToolResult,
  ServerCapabilities,
} from "./contracts.ts";
import type { Deadlines } from "./deadlines.ts";
import { endpointName, type Era, type McpEndpoint } from "./endpoint.ts";
import { ConnectionLost, type McpError, type RequestError } from "./errors.ts";
import { type ListKind, makeLists } from "./client-lists.ts";
import { makeRequests, type RequestOptions } from "./requests.ts";
import { makeToolResult, type McpToolResult, toRawResult } from "./results.ts";
import type { McpSettings } from "./settings.ts";

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

export type { ListKind, RequestOptions };

type Request<A> = Effect.Effect<A, RequestError>;

/** What a client says of itself and its server. */
export interface ClientFacts {
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
}

/** Verbs fail with `RequestError`s; interrupting one cancels it on the server. */
export interface McpClient extends ClientFacts {
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
  /**
   * Calls `listener` for every notification of the server; answers the way to stop. Until
   * then it is called as long as the connection lives, whoever uses it.
   */
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

export const makeClient = (options: ClientOptions): Effect.Effect<LiveClient, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { endpoint, session, settings, deadlines, diagnose } = options;
    const listeners = new Set<NotificationListener>();
    const requests = makeRequests(session, settings, deadlines, endpoint, diagnose);
    const { request } = requests;

    const ask = (
      method: string,
      params?: Readonly<Record<string, unknown>>,
      given?: RequestOptions,
    ): Request<Listing> => Effect.map(request(method, params, given), (answer) => (isRecord(answer) ? answer : {}));

    const lost = (): ConnectionLost =>
      new ConnectionLost({ server: endpointName(endpoint), outcome: "unknown", reason: "the connection was closed" });
    const lists = yield* makeLists(session, request, settings, diagnose, lost);
    const wellFormed = (kind: ListKind, key: string): Request<ReadonlyArray<Listing>> =>
      Effect.map(lists.get(kind), (items) =>
        items.filter((item): item is Listing => isRecord(item) && typeof item[key] === "string"),
      );

    const callRaw: LiveClient["callRaw"] = (name, args = {}, given) =>
      Effect.map(request("tools/call", { name, arguments: args }, given), (answer) => {
        const { result, diagnostics } = toRawResult(answer);
        for (const message of diagnostics) diagnose(`result of '${name}': ${message}`);
        return result;
      });

    return {
      endpoint,
      era: session.era,
      protocolVersion: session.protocolVersion,
      serverInfo: session.serverInfo,
      capabilities: session.capabilities,
      instructions: session.instructions,
      get isConnected() {
        return requests.open();
      },
      limiter: options.limiter,
      demand: options.demand,
      pid: options.pid,
      request,
      listTools: () => wellFormed("tools", "name") as Request<ReadonlyArray<McpTool>>,
      listResources: () => wellFormed("resources", "uri"),
      listResourceTemplates: () => wellFormed("resourceTemplates", "uriTemplate"),
      listPrompts: () => wellFormed("prompts", "name"),
      listItems: (kind) => lists.get(kind),
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
      inFlight: requests.inFlight,
      markClosed: requests.markClosed,
      cancelAll: requests.cancelAll,
      notified: (method, params) => {
        lists.notified(method);
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
