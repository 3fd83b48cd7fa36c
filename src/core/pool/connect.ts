/** One connection attempt: transport, engine handshake, client; all in one scope. */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { lift } from "../answer.ts";
import { type LiveClient, makeClient } from "../client.ts";
import type {
  Authorization,
  CredentialFlow,
  Demand,
  HostHandlers,
  Implementation,
  McpTransport,
  ProtocolEngine,
  SessionListener,
  TransportPlugin,
} from "../contracts.ts";
import type { Deadlines } from "../deadlines.ts";
import { type Credential, endpointName, type McpEndpoint } from "../endpoint.ts";
import { type AcquireError, ConnectFailed, type ConnectPhase, InvalidEndpoint, type McpError } from "../errors.ts";
import type { McpSettings } from "../settings.ts";

/** What the runtime has installed that a connection needs. */
export interface ConnectDeps {
  readonly settings: McpSettings;
  readonly transports: ReadonlyArray<TransportPlugin>;
  readonly engines: ReadonlyArray<ProtocolEngine>;
  readonly credentialFlows: ReadonlyArray<CredentialFlow>;
  readonly handlers: HostHandlers;
  readonly clientInfo: Implementation;
  readonly deadlines: Deadlines;
}

/** Who listens while the connection lives. */
export interface ConnectionSink {
  readonly limiter: string | undefined;
  readonly demand: Demand;
  readonly onDiagnostic: (message: string) => void;
  readonly onNotification: (client: LiveClient, method: string, params: Record<string, unknown>) => void;
  readonly onClose: (client: LiveClient | undefined, error: McpError | undefined) => void;
}

/** The plugin that opens this endpoint, or the fault that says which kinds there are. */
export const findTransport = (
  transports: ReadonlyArray<TransportPlugin>,
  endpoint: McpEndpoint,
): TransportPlugin | InvalidEndpoint =>
  transports.find((plugin) => plugin.kind === endpoint.transportType) ??
  new InvalidEndpoint({
    field: "transportType",
    reason: `'${endpoint.transportType}' has no transport plugin`,
    fix: `Register one of this kind, or use: ${transports.map((plugin) => plugin.kind).join(", ")}.`,
  });

export const findFlow = (
  flows: ReadonlyArray<CredentialFlow>,
  credential: Credential,
): CredentialFlow | InvalidEndpoint =>
  flows.find((flow) => flow.kind === credential.kind) ??
  new InvalidEndpoint({
    field: "credential",
    reason: `of kind '${credential.kind}' has no credential flow`,
    fix: `Register one of this kind, or use: ${flows.map((flow) => flow.kind).join(", ") || "(none installed)"}.`,
  });

/** The credential an endpoint carries, where its kind has one. */
export const credentialOf = (endpoint: McpEndpoint): Credential | undefined =>
  (endpoint as { readonly credential?: Credential | undefined }).credential;

const authorizer = (deps: ConnectDeps, endpoint: McpEndpoint) =>
  Effect.gen(function* () {
    const credential = credentialOf(endpoint);
    if (!credential) return undefined;
    const flow = findFlow(deps.credentialFlows, credential);
    if (flow instanceof InvalidEndpoint) return yield* flow;
    const run = Effect.runPromiseWith(yield* Effect.context<never>());
    return (request: Parameters<CredentialFlow["authorize"]>[1]): Promise<Authorization> =>
      run(lift(flow.kind, () => flow.authorize(credential, request)));
  });

const chooseEngine = (deps: ConnectDeps, plugin: TransportPlugin, endpoint: McpEndpoint) => {
  const wanted = endpoint.era === undefined || endpoint.era === "auto" ? (plugin.firstEra ?? "legacy") : endpoint.era;
  const engine = deps.engines.find((candidate) => candidate.era === wanted);
  return engine
    ? Effect.succeed(engine)
    : Effect.fail(
        new InvalidEndpoint({
          field: "era",
          reason: `'${wanted}' has no protocol engine`,
          fix: `Register one, or use: ${deps.engines.map((candidate) => candidate.era).join(", ")}.`,
        }),
      );
};

/**
 * Connects within `connectTimeout`, in the phases `transport` and `handshake`; a
 * deadline that passes says in which. What was opened is released with the scope.
 */
export const connect = (
  deps: ConnectDeps,
  plugin: TransportPlugin,
  endpoint: McpEndpoint,
  sink: ConnectionSink,
): Effect.Effect<LiveClient, AcquireError, Scope.Scope> =>
  Effect.gen(function* () {
    const { settings } = deps;
    const server = endpointName(endpoint);
    const startedAt = yield* Clock.currentTimeMillis;
    const controller = new AbortController();
    let phase: ConnectPhase = "transport";
    let transport: McpTransport | undefined;
    let client: LiveClient | undefined;
    let oddity: string | undefined;
    const diagnose = (message: string): void => {
      oddity = message;
      sink.onDiagnostic(message);
    };

    const listener: SessionListener = {
      onNotification: (method, params) => {
        if (client) sink.onNotification(client, method, params);
      },
      onClose: (error) => {
        client?.markClosed(error);
        sink.onClose(client, error);
      },
      onDiagnostic: diagnose,
    };

    const attempt = Effect.gen(function* () {
      const engine = yield* chooseEngine(deps, plugin, endpoint);
      const authorize = yield* authorizer(deps, endpoint);
      transport = yield* Effect.acquireRelease(
        lift<McpTransport, AcquireError, Scope.Scope>(
          plugin.kind,
          () =>
            plugin.open(endpoint, {
              name: server,
              settings,
              era: engine.era,
              diagnose,
              authorize,
            }) as never,
        ),
        (opened) => Effect.ignoreCause(Effect.promise(() => opened.close())),
        { interruptible: true },
      );
      phase = "handshake";
      const channel = transport;
      const session = yield* Effect.acquireRelease(
        lift(`engine ${engine.era}`, () =>
          engine.connect({
            endpoint,
            name: server,
            transport: channel,
            clientInfo: deps.clientInfo,
            handlers: deps.handlers,
            settings,
            listener,
            signal: controller.signal,
          }),
        ),
        (opened) => Effect.ignoreCause(Effect.promise(() => opened.close())),
        { interruptible: true },
      );
      client = yield* makeClient({
        endpoint,
        session,
        settings,
        deadlines: deps.deadlines,
        limiter: sink.limiter,
        demand: sink.demand,
        pid: channel.pid,
        diagnose: sink.onDiagnostic,
      });
      return client;
    });

    const tooLate = Effect.gen(function* () {
      const failed = new ConnectFailed({
        server,
        endpointId: endpoint.endpointId,
        phase,
        reason: `the server gave no answer in time${oddity === undefined ? "" : `, though ${oddity}`}`,
        fix: "Check that it speaks MCP on this transport, or raise the setting 'connectTimeout'.",
        elapsed: (yield* Clock.currentTimeMillis) - startedAt,
        stderrTail: transport?.end?.().stderrTail,
      });
      controller.abort(failed);
      return yield* failed;
    });
    return yield* (attempt as Effect.Effect<LiveClient, AcquireError, Scope.Scope>).pipe(
      Effect.timeoutOrElse({ duration: Duration.millis(settings.connectTimeout), orElse: () => tooLate }),
      Effect.onInterrupt(() => Effect.sync(() => controller.abort())),
    );
  });
