/** The Promise face: one line per verb over the Effect runtime. */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import type { Adapter, CallOptions } from "./adapter.ts";
import type { Artifact } from "./artifact/artifact.ts";
import type { Builtins } from "./bridge.ts";
import type { ToolCall } from "./call.ts";
import type { ToolDefinition } from "./catalog.ts";
import type { ClientFacts, Listing, McpClient, McpTool, NotificationListener, RequestOptions } from "./client.ts";
import type { ConnectorStatus, McpConnector } from "./connector.ts";
import type { AttachOptions } from "./connector-registry.ts";
import type { LoadedEndpoint, LoggingLevel } from "./contracts.ts";
import { makeEdge, type Run } from "./edge.ts";
import type { McpEndpoint } from "./endpoint.ts";
import type { HealthSnapshot } from "./health.ts";
import type { QuarantinedTool } from "./pinning/quarantine.ts";
import type { Provider, SkippedTool } from "./provider.ts";
import type { McpToolResult } from "./results.ts";
import { makeRuntime, type McpRuntime, type RuntimeOptions, type ToolsOptions } from "./runtime.ts";
import type { McpSettings } from "./settings.ts";

/** Cancels on abort: the promise rejects with the signal's reason, the server is told. */
export interface Signalled {
  readonly signal?: AbortSignal | undefined;
}
export type PromiseRequestOptions = RequestOptions & Signalled;
export type PromiseCallOptions = CallOptions & Signalled;

type Arguments = Readonly<Record<string, unknown>>;

/** `McpClient` in promises; `close()` gives it back to the pool. */
export interface PromiseClient extends ClientFacts, AsyncDisposable {
  readonly listTools: (options?: Signalled) => Promise<ReadonlyArray<McpTool>>;
  readonly listResources: (options?: Signalled) => Promise<ReadonlyArray<Listing>>;
  readonly listResourceTemplates: (options?: Signalled) => Promise<ReadonlyArray<Listing>>;
  readonly listPrompts: (options?: Signalled) => Promise<ReadonlyArray<Listing>>;
  readonly callTool: (name: string, args?: Arguments, options?: PromiseRequestOptions) => Promise<McpToolResult>;
  readonly readResource: (uri: string, options?: PromiseRequestOptions) => Promise<Listing>;
  readonly subscribeResource: (uri: string, options?: PromiseRequestOptions) => Promise<Listing>;
  readonly unsubscribeResource: (uri: string, options?: PromiseRequestOptions) => Promise<Listing>;
  readonly getPrompt: (
    name: string,
    args?: Readonly<Record<string, string>>,
    options?: PromiseRequestOptions,
  ) => Promise<Listing>;
  readonly complete: (params: Arguments, options?: PromiseRequestOptions) => Promise<Listing>;
  readonly setLogLevel: (level: LoggingLevel, options?: PromiseRequestOptions) => Promise<Listing>;
  readonly ping: (options?: PromiseRequestOptions) => Promise<Listing>;
  readonly notifyRootsChanged: () => Promise<void>;
  readonly request: (method: string, params?: Arguments, options?: PromiseRequestOptions) => Promise<unknown>;
  readonly onNotification: (listener: NotificationListener) => () => void;
  readonly close: () => Promise<void>;
}

export interface PromiseAdapter extends Pick<Adapter, "name" | "requirements"> {
  readonly execute: (input?: Arguments, options?: PromiseCallOptions) => Promise<McpToolResult>;
}
export interface PromiseProvider extends Omit<Provider, "create"> {
  readonly create: (options?: Signalled) => Promise<PromiseAdapter>;
}

/** `McpConnector` in promises. */
export interface PromiseConnector {
  readonly handle: string;
  readonly endpoint: McpEndpoint;
  readonly status: ConnectorStatus;
  readonly skipped: ReadonlyArray<SkippedTool>;
  readonly quarantine: ReadonlyArray<QuarantinedTool>;
  readonly pinned: boolean;
  readonly attached: boolean;
  readonly providers: (options?: Signalled) => Promise<ReadonlyArray<PromiseProvider>>;
  readonly approve: (tool?: string | QuarantinedTool, options?: Signalled) => Promise<ReadonlyArray<string>>;
}

/** `McpRuntime` in promises; ends with `close()` or `await using`. */
export interface PromiseRuntime extends AsyncDisposable {
  readonly attach: (handle: string, endpoint: McpEndpoint, options?: AttachOptions) => Promise<PromiseConnector>;
  readonly detach: (connector: PromiseConnector) => Promise<void>;
  readonly connectors: () => ReadonlyArray<PromiseConnector>;
  readonly tools: (options?: ToolsOptions & Signalled) => Promise<ReadonlyArray<ToolDefinition>>;
  readonly callTool: (call: ToolCall, options?: PromiseCallOptions) => Promise<McpToolResult>;
  readonly client: (endpoint: McpEndpoint, options?: Signalled) => Promise<PromiseClient>;
  readonly modelText: McpRuntime["modelText"];
  readonly keepArtifact: (artifact: Artifact) => Promise<void>;
  readonly presentError: McpRuntime["presentError"];
  readonly loadEndpoints: (source: string, kind?: string) => Promise<ReadonlyArray<LoadedEndpoint>>;
  readonly health: () => Promise<HealthSnapshot>;
  readonly settings: McpSettings;
  /** Ends everything; settles when every child process is gone. Safe to call twice. */
  readonly close: () => Promise<void>;
}

const wrapClient = (client: McpClient, scope: Scope.Closeable, run: Run): PromiseClient => {
  const close = () => run(Scope.close(scope, Exit.void));
  const { endpoint, era, protocolVersion, serverInfo, capabilities, instructions, limiter, demand, pid } = client;
  return {
    endpoint,
    era,
    protocolVersion,
    serverInfo,
    capabilities,
    instructions,
    limiter,
    demand,
    pid,
    get isConnected() {
      return client.isConnected;
    },
    listTools: (o) => run(client.listTools(), o?.signal),
    listResources: (o) => run(client.listResources(), o?.signal),
    listResourceTemplates: (o) => run(client.listResourceTemplates(), o?.signal),
    listPrompts: (o) => run(client.listPrompts(), o?.signal),
    callTool: (name, args, o) => run(client.callTool(name, args, o), o?.signal),
    readResource: (uri, o) => run(client.readResource(uri, o), o?.signal),
    subscribeResource: (uri, o) => run(client.subscribeResource(uri, o), o?.signal),
    unsubscribeResource: (uri, o) => run(client.unsubscribeResource(uri, o), o?.signal),
    getPrompt: (name, args, o) => run(client.getPrompt(name, args, o), o?.signal),
    complete: (params, o) => run(client.complete(params, o), o?.signal),
    setLogLevel: (level, o) => run(client.setLogLevel(level, o), o?.signal),
    ping: (o) => run(client.ping(o), o?.signal),
    notifyRootsChanged: () => run(client.notifyRootsChanged()),
    request: (method, params, o) => run(client.request(method, params, o), o?.signal),
    onNotification: client.onNotification,
    close,
    [Symbol.asyncDispose]: close,
  };
};

const wrapProvider = (provider: Provider, run: Run): PromiseProvider => ({
  ...provider,
  create: async (o) => {
    const adapter = await run(provider.create(), o?.signal);
    const { name, requirements } = adapter;
    return { name, requirements, execute: (input, given) => run(adapter.execute(input, given), given?.signal) };
  },
});

const wrapRuntime = (runtime: McpRuntime, scope: Scope.Closeable, run: Run): PromiseRuntime => {
  const wrapped = new WeakMap<McpConnector, PromiseConnector>();
  const originals = new WeakMap<PromiseConnector, McpConnector>();
  const wrapConnector = (connector: McpConnector): PromiseConnector => {
    const known = wrapped.get(connector);
    if (known) return known;
    const twin: PromiseConnector = {
      handle: connector.handle,
      endpoint: connector.endpoint,
      get status() {
        return connector.status;
      },
      get skipped() {
        return connector.skipped;
      },
      get quarantine() {
        return connector.quarantine;
      },
      get pinned() {
        return connector.pinned;
      },
      get attached() {
        return connector.attached;
      },
      approve: (tool, o) => run(connector.approve(tool), o?.signal),
      providers: async (o) =>
        (await run(connector.providers(), o?.signal)).map((provider) => wrapProvider(provider, run)),
    };
    wrapped.set(connector, twin);
    originals.set(twin, connector);
    return twin;
  };
  const borrow = async (endpoint: McpEndpoint, signal: AbortSignal | undefined): Promise<PromiseClient> => {
    const borrowed = await run(Scope.make());
    const client = runtime.client(endpoint).pipe(
      Scope.provide(borrowed),
      Effect.onError(() => Scope.close(borrowed, Exit.void)),
    );
    return wrapClient(await run(client, signal), borrowed, run);
  };
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => (closing ??= run(Scope.close(scope, Exit.void)));
  return {
    attach: async (handle, endpoint, o) => wrapConnector(await run(runtime.attach(handle, endpoint, o))),
    detach: (connector) => run(runtime.detach(originals.get(connector) ?? (connector as never))),
    connectors: () => runtime.connectors().map(wrapConnector),
    tools: (o) => run(runtime.tools(o), o?.signal),
    callTool: (call, o) => run(runtime.callTool(call, o), o?.signal),
    client: (endpoint, o) => {
      const connecting = borrow(endpoint, o?.signal);
      // A host may start to connect and look later; a failure it has not looked at yet must not end it.
      connecting.catch(() => {});
      return connecting;
    },
    modelText: runtime.modelText,
    keepArtifact: (artifact) => run(runtime.keepArtifact(artifact)),
    presentError: runtime.presentError,
    loadEndpoints: (source, kind) => run(runtime.loadEndpoints(source, kind)),
    health: () => run(runtime.health),
    settings: runtime.settings,
    close,
    [Symbol.asyncDispose]: close,
  };
};

/** Builds a runtime for Promise hosts. Rejects with `PluginFailed` or `InvalidConfig`, naming every fault. */
export const createPromiseRuntime = async (options: RuntimeOptions, builtins: Builtins): Promise<PromiseRuntime> => {
  const run = makeEdge(Context.empty());
  const scope = await run(Scope.make());
  const runtime = await run(
    makeRuntime(options, builtins).pipe(
      Scope.provide(scope),
      Effect.onError(() => Scope.close(scope, Exit.void)),
    ),
  );
  return wrapRuntime(runtime, scope, run);
};
