/**
 * One client per endpoint id, for every transport, shared by all its users. Opens
 * once for concurrent first uses, drops broken clients at once, reaps idle ones,
 * caps subprocesses, and closes everything with its scope.
 */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as RcMap from "effect/RcMap";
import * as Scope from "effect/Scope";
import { type Admission, makeAdmission } from "../admission/admission.ts";
import type { LiveClient } from "../client.ts";
import type { McpEndpoint } from "../endpoint.ts";
import { type AcquireError, ConnectionLost, InvalidEndpoint, type McpError, RuntimeClosed } from "../errors.ts";
import type { EventBus } from "../events.ts";
import { type Breaker, makeBreaker } from "./breaker.ts";
import { connect, type ConnectDeps, findTransport } from "./connect.ts";
import { type EndpointRecord, makeRecord } from "./endpoint-record.ts";

/** Gate of live subprocesses; not part of any call's demand. */
const PROCESSES = "mcp:stdio-processes";

export interface ClientPool {
  /** Runs `use` with the live client of the endpoint, connecting when needed. */
  readonly withClient: <A, E, R>(
    endpoint: McpEndpoint,
    use: (client: LiveClient) => Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | AcquireError, R>;
  /** Borrows the client for the scope: it is not reaped while borrowed. */
  readonly borrow: (endpoint: McpEndpoint) => Effect.Effect<LiveClient, AcquireError, Scope.Scope>;
  /** The record of the endpoint; makes it and its gates at first sight. */
  readonly record: (endpoint: McpEndpoint) => EndpointRecord | InvalidEndpoint;
  readonly records: () => ReadonlyArray<EndpointRecord>;
  /** Closes the client when its last borrower is done, and forgets an unattached endpoint. */
  readonly evict: (endpointId: string, reason: "detached" | "capacity" | "shutdown") => Effect.Effect<void>;
  /** Takes no more borrowers, then closes all clients, every one at once. */
  readonly close: Effect.Effect<void>;
  readonly processes: Admission;
}

export const makeClientPool = (
  deps: ConnectDeps & { readonly admission: Admission; readonly events: EventBus },
): Effect.Effect<ClientPool, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { settings, admission, events } = deps;
    const scope = yield* Effect.scope;
    const clock = yield* Clock.Clock;
    const context = yield* Effect.context<never>();
    const run = Effect.runForkWith(context);
    const breaker: Breaker = yield* makeBreaker({ cooldown: settings.breakerCooldown });
    const processes = makeAdmission({ queueMax: settings.admissionQueueMax, timeout: settings.connectTimeout });
    processes.ensureGate(PROCESSES, settings.stdioProcessMax);
    const records = new Map<string, EndpointRecord>();
    const gateOwners = new Map<string, string>();
    const opened = new Set<Scope.Closeable>();
    let closed = false;

    const at = (record: EndpointRecord) => ({ endpointId: record.endpointId, server: record.server });

    const recordOf = (endpoint: McpEndpoint): EndpointRecord | InvalidEndpoint => {
      const known = records.get(endpoint.endpointId);
      if (known) return known;
      const plugin = findTransport(deps.transports, endpoint);
      if (plugin instanceof InvalidEndpoint) return plugin;
      const record = makeRecord(endpoint, plugin, plugin.gates?.(endpoint, settings) ?? [], gateOwners);
      for (const gate of record.gates) admission.ensureGate(gate.name, gate.capacity);
      records.set(endpoint.endpointId, record);
      return record;
    };

    const forget = (record: EndpointRecord): void => {
      const busy = record.client || record.connecting || record.borrowers > 0 || record.connectors > 0;
      if (busy || record.brokenUntil > clock.currentTimeMillisUnsafe()) return;
      records.delete(record.endpointId);
      if (record.limiter) {
        admission.dropGate(record.limiter);
        gateOwners.delete(record.limiter);
      }
    };

    /** The longest idle client of a subprocess transport makes room. */
    const evictLongestIdle: Effect.Effect<void> = Effect.suspend(() => {
      const idle = [...records.values()].filter((r) => r.plugin.subprocess && r.client && r.borrowers === 0);
      const oldest = idle.toSorted((a, b) => a.lastActivity - b.lastActivity)[0];
      return oldest ? evict(oldest.endpointId, "capacity") : Effect.void;
    });

    const processSlot = Effect.suspend(() => {
      const gate = processes.gates()[0];
      const room = gate && gate.used < gate.capacity ? Effect.void : evictLongestIdle;
      return Effect.andThen(
        room,
        Effect.acquireRelease(processes.grant(new Map([[PROCESSES, 1]])), (release) => Effect.sync(release), {
          interruptible: true,
        }),
      );
    });

    const onClose = (record: EndpointRecord, generation: number, bornAt: number, error: McpError | undefined): void => {
      if (record.generation !== generation || !record.client) return;
      const lost =
        error ??
        new ConnectionLost({ server: record.server, outcome: "unknown", reason: "the server closed the connection" });
      record.client = undefined;
      record.failures++;
      record.lastError = lost;
      events.publish({ type: "disconnected", error: lost, ...at(record) });
      const young = clock.currentTimeMillisUnsafe() - bornAt < settings.minUptime;
      if (young) {
        record.brokenUntil = clock.currentTimeMillisUnsafe() + settings.breakerCooldown;
        events.publish({ type: "circuit.open", retryAt: record.brokenUntil, ...at(record) });
      }
      run(
        Effect.andThen(
          RcMap.invalidate(map, record.endpointId),
          young ? breaker.recordFailure(record, lost) : Effect.void,
        ),
      );
    };

    /** Opens a connection in a scope of its own, so that a failed attempt is cleaned up behind the error. */
    const open = (record: EndpointRecord): Effect.Effect<LiveClient, AcquireError, Scope.Scope> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const generation = ++record.generation;
          const own = yield* Scope.make();
          record.connecting = true;
          events.publish({ type: "connect.start", ...at(record) });
          let bornAt = Infinity;
          const attempt = connect(deps, record.plugin, record.endpoint, {
            limiter: record.limiter,
            demand: record.demand,
            onDiagnostic: (message) => events.publish({ type: "diagnostic", message, ...at(record) }),
            onNotification: (client, method, params) => {
              client.notified(method, params);
              events.publish({ type: "notification", method, params, ...at(record) });
            },
            onClose: (_client, error) => onClose(record, generation, bornAt, error),
          });
          const slotted: Effect.Effect<LiveClient, AcquireError, Scope.Scope> = record.plugin.subprocess
            ? Effect.andThen(processSlot, attempt)
            : attempt;
          const guarded: Effect.Effect<LiveClient, AcquireError> = breaker.guard(record, Scope.provide(slotted, own));
          const exit = yield* Effect.exit(restore(guarded));
          if (record.generation === generation) record.connecting = false;
          if (Exit.isFailure(exit)) {
            yield* Effect.forkIn(Scope.close(own, exit), scope, { startImmediately: true });
            if (record.generation === generation) yield* RcMap.invalidate(map, record.endpointId);
            return yield* exit;
          }
          const client = exit.value;
          bornAt = clock.currentTimeMillisUnsafe();
          if (record.generation === generation) record.client = client;
          record.connects++;
          opened.add(own);
          yield* Effect.addFinalizer(() =>
            Effect.suspend(() => {
              opened.delete(own);
              client.markClosed(undefined);
              if (record.client === client) {
                record.client = undefined;
                events.publish({ type: "evicted", reason: closed ? "shutdown" : "idle", ...at(record) });
                forget(record);
              }
              return Scope.close(own, Exit.void);
            }),
          );
          const { era, protocolVersion, pid } = client;
          events.publish({ type: "connect.ready", era, protocolVersion, pid, ...at(record) });
          if (!client.isConnected) onClose(record, generation, bornAt, undefined);
          return client;
        }).pipe(
          Effect.tapError((error: AcquireError) =>
            Effect.sync(() => {
              if (error._tag !== "CircuitOpen") record.failures++;
              events.publish({ type: "connect.failed", error, ...at(record) });
            }),
          ),
        ),
      );

    const map: RcMap.RcMap<string, LiveClient, AcquireError> = yield* RcMap.make({
      lookup: (id: string) => open(records.get(id)!),
      idleTimeToLive: Duration.millis(settings.idleTimeout),
    });

    const evict: ClientPool["evict"] = (endpointId, reason) =>
      Effect.suspend(() => {
        const record = records.get(endpointId);
        if (record?.client) events.publish({ type: "evicted", reason, ...at(record) });
        if (record) record.client = undefined;
        return Effect.andThen(
          RcMap.invalidate(map, endpointId),
          Effect.sync(() => record && forget(record)),
        );
      });

    const released = (record: EndpointRecord): Effect.Effect<void> =>
      Effect.suspend(() => {
        record.borrowers--;
        record.lastActivity = clock.currentTimeMillisUnsafe();
        const wanted = record.borrowers === 0 && record.plugin.subprocess && (processes.gates()[0]?.waiting ?? 0) > 0;
        // Nobody waits for this connect any more: end the attempt instead of finishing it for no one.
        if (record.borrowers === 0 && record.connecting) return RcMap.invalidate(map, record.endpointId);
        return wanted && record.client ? Effect.forkIn(evict(record.endpointId, "capacity"), scope) : Effect.void;
      });

    const borrow: ClientPool["borrow"] = (endpoint) =>
      Effect.suspend(() => {
        if (closed) return Effect.fail(new RuntimeClosed());
        const record = recordOf(endpoint);
        if (record instanceof InvalidEndpoint) return Effect.fail(record);
        record.borrowers++;
        const get = Effect.andThen(
          Effect.addFinalizer(() => released(record)),
          RcMap.get(map, record.endpointId),
        );
        // A client that died between its last use and now is dropped, and a fresh one is opened.
        return Effect.flatMap(get, (client) =>
          client.isConnected
            ? Effect.succeed(client)
            : Effect.andThen(RcMap.invalidate(map, record.endpointId), RcMap.get(map, record.endpointId)),
        );
      });

    return {
      borrow,
      withClient: (endpoint, use) => Effect.scoped(Effect.flatMap(borrow(endpoint), use)),
      record: recordOf,
      records: () => [...records.values()],
      evict,
      processes,
      close: Effect.suspend(() => {
        closed = true;
        processes.close();
        const evictAll = Effect.forEach([...records.keys()].toReversed(), (id) => evict(id, "shutdown"), {
          concurrency: "unbounded",
          discard: true,
        });
        // A client somebody still borrows is closed too: the runtime ends before its borrowers.
        const closeAll = Effect.suspend(() =>
          Effect.forEach([...opened], (own) => Scope.close(own, Exit.void), {
            concurrency: "unbounded",
            discard: true,
          }),
        );
        return Effect.andThen(evictAll, closeAll);
      }),
    };
  });
