/** The runtime as an Effect service: the truth that the Promise API only wraps. */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { CallOptions } from "./adapter.ts";
import { makeAdmission } from "./admission/admission.ts";
import { borrowed } from "./borrowed-client.ts";
import { makeSchemaChecks } from "./arguments.ts";
import type { Artifact } from "./artifact/artifact.ts";
import { type Builtins, install, type InstallOptions } from "./bridge.ts";
import { makeCalls, type ToolCall } from "./call.ts";
import { makeCatalogPolicies } from "./catalog-policies.ts";
import { makeCatalog, toDefinition, type ToolDefinition } from "./catalog.ts";
import type { McpClient } from "./client.ts";
import type { McpConnector } from "./connector.ts";
import { type ConnectorRegistry, makeConnectorRegistry } from "./connector-registry.ts";
import { lift } from "./answer.ts";
import type { Implementation, LoadedEndpoint } from "./contracts.ts";
import { makeDeadlines } from "./deadlines.ts";
import { endpointName, type McpEndpoint } from "./endpoint.ts";
import {
  type AcquireError,
  type CallError,
  InvalidConfig,
  type InvalidEndpoint,
  type McpError,
  type PluginFailed,
  type ToolFailed,
} from "./errors.ts";
import { makeEventBus } from "./events.ts";
import { type HealthSnapshot, takeHealth } from "./health.ts";
import { memoryPinStore } from "./pinning/tool-pins.ts";
import { makeClientPool } from "./pool/client-pool.ts";
import { makeVerdicts } from "./pool/negotiation.ts";
import * as Ports from "./ports.ts";
import { makePresentation } from "./presentation.ts";
import type { McpToolResult } from "./results.ts";
import type { McpSettings, McpSettingsInput } from "./settings.ts";
import { makeShutdown } from "./shutdown.ts";

export interface RuntimeOptions extends InstallOptions {
  /** Explicit values win over the environment (`NUCLEO_MCP_…`), which wins over the defaults. */
  readonly settings?: McpSettingsInput | undefined;
  /** How the host introduces itself to servers. Default: `nucleo-mcp` and its version. */
  readonly clientInfo?: Implementation | undefined;
  /**
   * Whether a tool call whose connection was lost, and which may have run, is sent once
   * more where the tool is annotated read-only or idempotent. Default `"never"`: such a
   * call fails with `ConnectionLost`, `outcome: "unknown"`.
   */
  readonly resend?: "never" | "annotated" | undefined;
}

export interface ToolsOptions {
  readonly within?: Duration.Input | undefined;
  /** Include the tool that pages through large results. Default false. */
  readonly artifacts?: boolean | undefined;
}

export interface McpRuntime extends Pick<ConnectorRegistry, "attach" | "detach" | "attachScoped"> {
  readonly connectors: () => ReadonlyArray<McpConnector>;
  /**
   * The tools of all attached servers, as models are shown them. A server that fails
   * answers its last good list; one slower than `within` too. With `artifacts` the list
   * ends with `get_artifact_field`, which `callTool` answers itself.
   */
  readonly tools: (options?: ToolsOptions) => Effect.Effect<ReadonlyArray<ToolDefinition>>;
  readonly callTool: (call: ToolCall, options?: CallOptions) => Effect.Effect<McpToolResult, CallError | ToolFailed>;
  /**
   * Borrows the shared client of an endpoint for the scope, attached or not. Its calls pass
   * admission. While it is borrowed it is not put to sleep, so resource subscriptions go on;
   * they end with the scope. When the connection is lost (`isConnected`, event
   * `disconnected`), borrow anew and subscribe again.
   */
  readonly client: (endpoint: McpEndpoint) => Effect.Effect<McpClient, AcquireError, Scope.Scope>;
  /**
   * What a model reads of a result, within a budget in bytes (default 8 KiB). What is cut
   * is named with its ref and stays reachable through the tool `get_artifact_field`.
   */
  readonly modelText: (result: McpToolResult, budget?: number) => string;
  /** Keeps an artifact of the host's own, so that `get_artifact_field` and later processes find it by its ref. */
  readonly keepArtifact: (artifact: Artifact) => Effect.Effect<void>;
  /** An error in words for a model: by the `errorPresenter` plugin, else the error's own message. */
  readonly presentError: (error: McpError) => string;
  /**
   * Reads endpoints by a loader plugin, for example the file `mcp.json`; attach them then.
   * `kind` defaults to `mcp-json`. Fails with what the loader says, naming every fault.
   */
  readonly loadEndpoints: (
    source: string,
    kind?: string,
  ) => Effect.Effect<ReadonlyArray<LoadedEndpoint>, InvalidConfig | InvalidEndpoint | PluginFailed>;
  readonly health: Effect.Effect<HealthSnapshot>;
  readonly settings: McpSettings;
  /** The installed plugins, by port. */
  readonly plugins: Context.Context<never>;
}

/** Builds the runtime in the scope, which closes it: running calls get `shutdownGrace`, then all is ended. */
export const makeRuntime = (
  options: RuntimeOptions,
  builtins: Builtins,
): Effect.Effect<McpRuntime, PluginFailed | InvalidConfig, Scope.Scope> =>
  Effect.gen(function* () {
    // Reading settings and breaking circuits takes the heavier half of Effect: loaded here, not with the package.
    const { resolveSettings } = yield* Effect.promise(() => import("./resolve-settings.ts"));
    const settings = yield* resolveSettings(options.settings);
    const plugins = yield* install(options, builtins);
    const installed = <S>(port: Ports.Port<S>): S => Context.get(plugins, port.service);

    const events = yield* makeEventBus(installed(Ports.observers));
    const admission = makeAdmission({ queueMax: settings.admissionQueueMax, timeout: settings.admissionTimeout });
    const pool = yield* makeClientPool({
      settings,
      admission,
      events,
      transports: installed(Ports.transports),
      engines: installed(Ports.engines),
      credentialFlows: installed(Ports.credentialFlows),
      tokenStore: installed(Ports.tokenStore),
      handlers: installed(Ports.hostHandlers),
      clientInfo: options.clientInfo ?? { name: "nucleo-mcp", version: "0.1.0" },
      deadlines: yield* makeDeadlines,
      verdicts: makeVerdicts(installed(Ports.verdictStore)),
    });
    const onDiagnostic = (endpoint: McpEndpoint, message: string): void =>
      events.publish({ type: "diagnostic", message, endpointId: endpoint.endpointId, server: endpointName(endpoint) });
    const checks = makeSchemaChecks(installed(Ports.schemaValidator), (provider, message) =>
      onDiagnostic(provider.endpoint, message),
    );
    const policies = makeCatalogPolicies(installed(Ports.catalogPolicies), onDiagnostic);
    const registry = makeConnectorRegistry({
      pool,
      settings,
      events,
      onDiagnostic,
      pinStore: installed(Ports.pinStore) ?? memoryPinStore(),
      schemaNormalizers: installed(Ports.schemaNormalizers),
      credentialFlows: installed(Ports.credentialFlows),
      policyFault: policies.fault,
      createAdapter: (provider) => calls.createAdapter(provider),
    });
    const presentation = yield* makePresentation({
      rehydrators: installed(Ports.artifactRehydrators),
      normalizer: installed(Ports.resultNormalizer),
      artifactTypes: installed(Ports.artifactTypes),
      artifactStore: installed(Ports.artifactStore),
      settings,
      onDiagnostic: (endpointId, message) => {
        const of = registry.connectors().find(({ endpoint }) => endpoint.endpointId === endpointId);
        const server = of ? endpointName(of.endpoint) : endpointId || "host";
        events.publish({ type: "diagnostic", message, endpointId, server });
      },
    });
    const catalog = makeCatalog(registry, policies.decide);
    const calls = makeCalls({
      catalog,
      checks,
      pool,
      admission,
      events,
      presentation,
      resend: options.resend ?? "never",
    });
    const shutdown = makeShutdown({ admission, pool, registry, grace: settings.shutdownGrace });
    yield* Effect.addFinalizer(() => shutdown.run);

    return {
      attach: registry.attach,
      detach: registry.detach,
      attachScoped: registry.attachScoped,
      connectors: registry.connectors,
      tools: (given) =>
        Effect.map(catalog.entries(given?.within), (entries) => [
          ...[...entries].map(([name, provider]) => toDefinition(name, provider)),
          ...(given?.artifacts ? [presentation.fieldTool] : []),
        ]),
      callTool: calls.callTool,
      modelText: presentation.modelText,
      keepArtifact: (artifact) => presentation.artifacts.keep(artifact),
      client: (endpoint) =>
        Effect.suspend(() => {
          const fault = registry.check("client", endpoint);
          if (fault) return Effect.fail(fault);
          return Effect.flatMap(pool.borrow(endpoint), (client) => borrowed(client, admission));
        }),
      presentError: (error) => installed(Ports.errorPresenter).present(error),
      loadEndpoints: (source, kind = "mcp-json") =>
        Effect.suspend(() => {
          const loaders = installed(Ports.endpointLoaders);
          const loader = loaders.find((candidate) => candidate.kind === kind);
          if (loader)
            return lift<ReadonlyArray<LoadedEndpoint>, InvalidConfig | InvalidEndpoint>(
              kind,
              () => loader.load(source) as never,
            );
          const fix = `Register one, or use: ${loaders.map((candidate) => candidate.kind).join(", ")}.`;
          return Effect.fail(
            new InvalidConfig({ source, field: "kind", reason: `'${kind}' has no endpoint loader`, fix }),
          );
        }),
      health: Effect.map(Clock.currentTimeMillis, (now) =>
        takeHealth({ admission, pool, registry }, shutdown.state(), now),
      ),
      settings,
      plugins,
    };
  });
