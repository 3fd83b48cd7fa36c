/** One connection attempt: transport, engine handshake, client; all in one scope. */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
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
  TokenStore,
  TransportPlugin,
} from "../contracts.ts";
import type { Deadlines } from "../deadlines.ts";
import { type Credential, endpointName, type Era, type McpEndpoint } from "../endpoint.ts";
import { type AcquireError, ConnectFailed, type ConnectPhase, InvalidEndpoint, type McpError } from "../errors.ts";
import { tokenStore } from "../ports.ts";
import type { McpSettings } from "../settings.ts";
import { endedAtOpening, enginesFor, negotiate, startedOnce, type Verdicts } from "./negotiation.ts";

/** What the runtime has installed that a connection needs. */
export interface ConnectDeps {
  readonly settings: McpSettings;
  readonly transports: ReadonlyArray<TransportPlugin>;
  readonly engines: ReadonlyArray<ProtocolEngine>;
  readonly credentialFlows: ReadonlyArray<CredentialFlow>;
  /** Where the flows keep logins. */
  readonly tokenStore: TokenStore;
  readonly handlers: HostHandlers;
  readonly clientInfo: Implementation;
  readonly deadlines: Deadlines;
  readonly verdicts: Verdicts;
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
    const context = Context.add(yield* Effect.context<never>(), tokenStore.service, deps.tokenStore);
    const run = Effect.runPromiseWith(context);
    return (request: Parameters<CredentialFlow["authorize"]>[1]): Promise<Authorization> =>
      run(lift(flow.kind, () => flow.authorize(credential, request)));
  });

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

    const openTransport = (era: Era) =>
      Effect.gen(function* () {
        const authorize = yield* authorizer(deps, endpoint);
        const context = { name: server, settings, era, diagnose, authorize };
        phase = "transport";
        transport = startedOnce(
          yield* Effect.acquireRelease(
            lift<McpTransport, AcquireError, Scope.Scope>(plugin.kind, () => plugin.open(endpoint, context) as never),
            (opened) => Effect.ignoreCause(Effect.promise(() => opened.close())),
            { interruptible: true },
          ),
        );
        phase = "handshake";
        return transport;
      });

    /** One era, in a scope of its own that a failure closes at once. */
    const openSession = (engine: ProtocolEngine, shared: McpTransport | undefined) =>
      Effect.gen(function* () {
        const own = yield* Scope.fork(yield* Effect.scope);
        const ended = new AbortController();
        const signal = AbortSignal.any([controller.signal, ended.signal]);
        const opened = Effect.gen(function* () {
          const channel = shared ?? (yield* openTransport(engine.era));
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
                signal,
              }),
            ),
            (made) => Effect.ignoreCause(Effect.promise(() => made.close())),
            { interruptible: true },
          );
          return { session, channel };
        });
        return yield* Scope.provide(opened, own).pipe(
          Effect.onExit((exit) => {
            if (Exit.isSuccess(exit)) return Effect.void;
            ended.abort();
            return Scope.close(own, exit);
          }),
        );
      });

    const attempt = Effect.gen(function* () {
      const era = endpoint.era ?? settings.era;
      const remembered = era === "auto" ? yield* deps.verdicts.recall(endpoint.endpointId) : undefined;
      const engines = enginesFor(deps.engines, plugin, endpoint, era, remembered);
      if (engines instanceof InvalidEndpoint) return yield* engines;
      const shared = plugin.eraBound ? undefined : yield* openTransport(engines[0]!.era);
      const { session, channel } = yield* negotiate(
        engines.map((engine) => ({ era: engine.era, open: openSession(engine, shared) })),
        // A login takes a person's time, and says nothing about the server's patience.
        credentialOf(endpoint) ? settings.connectTimeout : settings.connectTimeout / 2,
      ).pipe(
        Effect.tapError((error) => {
          if (remembered) return deps.verdicts.drop(endpoint.endpointId);
          if (engines[1] && endedAtOpening(error)) deps.verdicts.suspect(endpoint.endpointId, engines[1].era);
          return Effect.void;
        }),
      );
      if (engines.length > 1) yield* deps.verdicts.keep(endpoint.endpointId, session.era);
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
