/**
 * One client per endpoint id, for every transport, shared by all its users. Opens
 * once for concurrent first uses, drops broken clients at once, reaps idle ones,
 * caps subprocesses, and closes everything with its scope.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as RcMap from "effect/RcMap";
import * as Scope from "effect/Scope";
import type { Admission, GateState } from "../admission/admission.ts";
import type { LiveClient } from "../client.ts";
import type { McpEndpoint } from "../endpoint.ts";
import { type AcquireError, ConnectionLost, InvalidEndpoint, type McpError, RuntimeClosed } from "../errors.ts";
import type { EventBus } from "../events.ts";
import { type Borrowing, makeBorrowing, type WithLease } from "./borrowing.ts";
import type { Breaker } from "./breaker.ts";
import { connect, type ConnectDeps } from "./connect.ts";
import { type EndpointRecord, makeRecords } from "./endpoint-record.ts";
import { type Lease, makeLease } from "./lease.ts";
import { makeProcessSlots } from "./process-slots.ts";

export interface ClientPool extends Borrowing {
  /** The record of the endpoint; makes it and its gates at first sight. */
  readonly record: (endpoint: McpEndpoint) => EndpointRecord | InvalidEndpoint;
  readonly records: () => ReadonlyArray<EndpointRecord>;
  /** Closes the client when its last borrower is done, and forgets an unattached endpoint. */
  readonly evict: (endpointId: string, reason: "idle" | "detached" | "capacity" | "shutdown") => Effect.Effect<void>;
  /** Takes no more borrowers, ends the attempts under way, then closes all clients, every one at once. */
  readonly close: Effect.Effect<void>;
  /** The gate of live subprocesses. */
  readonly processes: () => ReadonlyArray<GateState>;
}

/** A connection attempt and what came of it. */
interface Connection {
  readonly own: Scope.Closeable;
  client: LiveClient | undefined;
  bornAt: number;
  /** Done when the attempt succeeded, or nothing of it is left. */
  readonly settled: Deferred.Deferred<void>;
}

export const makeClientPool = (
  deps: ConnectDeps & { readonly admission: Admission; readonly events: EventBus },
): Effect.Effect<ClientPool, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { settings, events } = deps;
    const scope = yield* Effect.scope;
    const clock = yield* Clock.Clock;
    const run = Effect.runForkWith(yield* Effect.context<never>());
    const fork = (effect: Effect.Effect<void>): void =>
      void run(Effect.forkIn(effect, scope, { startImmediately: true }));
    const { makeBreaker } = yield* Effect.promise(() => import("./breaker.ts"));
    const breaker: Breaker = yield* makeBreaker({ cooldown: settings.breakerCooldown });
    const records = makeRecords({ ...deps, now: () => clock.currentTimeMillisUnsafe() });
    const processes = makeProcessSlots(settings, records.all, (id) => evict(id, "capacity"));
    const opened = new Set<Scope.Closeable>();
    /** Leases whose connection the pool itself references. */
    const held = new WeakSet<Lease>();
    const leases = new WeakMap<LiveClient, Lease>();
    /** Attempts that have not settled: the close ends them and waits. */
    const attempts = new Set<Connection>();
    const closing = Deferred.makeUnsafe<never, RuntimeClosed>();
    let closed = false;

    const at = (record: EndpointRecord) => ({ endpointId: record.endpointId, server: record.server });

    /** Drops the connection: no new users, and the next one connects anew. */
    const drop = (record: EndpointRecord): Effect.Effect<void> =>
      Effect.suspend(() => {
        const { lease } = record;
        record.lease = undefined;
        record.attempt = undefined;
        return Effect.andThen(RcMap.invalidate(map, record.endpointId), lease?.retire ?? Effect.void);
      });

    const onClose = (record: EndpointRecord, connection: Connection, error: McpError | undefined): void => {
      if (record.lease === undefined || record.lease.client !== connection.client) return;
      const reason = "the server closed the connection";
      const lost = error ?? new ConnectionLost({ server: record.server, outcome: "unknown", reason });
      record.failures++;
      record.lastError = lost;
      events.publish({ type: "disconnected", error: lost, ...at(record) });
      const now = clock.currentTimeMillisUnsafe();
      const young = now - connection.bornAt < settings.minUptime;
      if (young) {
        record.brokenUntil = now + settings.breakerCooldown;
        events.publish({ type: "circuit.open", retryAt: record.brokenUntil, ...at(record) });
      }
      fork(drop(record));
      // What is left of it, for example a process tree, is not kept until its last user notices.
      fork(Scope.close(connection.own, Exit.void));
      if (young) fork(breaker.recordFailure(record, lost));
    };

    const becomeReady = (record: EndpointRecord, connection: Connection, client: LiveClient): void => {
      connection.client = client;
      connection.bornAt = clock.currentTimeMillisUnsafe();
      record.connects++;
      opened.add(connection.own);
      const isCurrent = (): boolean => record.lease === lease;
      const lease: Lease = makeLease(client, {
        deadlines: deps.deadlines,
        idleTimeout: settings.idleTimeout,
        now: () => clock.currentTimeMillisUnsafe(),
        fork,
        onUnused: (now) => {
          record.lastActivity = now;
          const wanted = record.plugin.subprocess && processes.wanted();
          if (wanted && isCurrent()) fork(evict(record.endpointId, "capacity"));
        },
        onIdle: () => fork(isCurrent() ? evict(record.endpointId, "idle") : lease.retire),
      });
      leases.set(client, lease);
      // An attempt that was evicted meanwhile serves those who waited for it, and nobody after them.
      if (record.attempt === connection) record.lease = lease;
      const { era, protocolVersion, pid } = client;
      events.publish({ type: "connect.ready", era, protocolVersion, pid, ...at(record) });
      if (!client.isConnected) onClose(record, connection, undefined);
    };

    /** Opens a connection in a scope of its own, so that a failed attempt is cleaned up behind the error. */
    const open = (record: EndpointRecord): Effect.Effect<LiveClient, AcquireError, Scope.Scope> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          if (closed) return yield* new RuntimeClosed();
          const connection: Connection = {
            own: yield* Scope.make(),
            client: undefined,
            bornAt: Infinity,
            settled: Deferred.makeUnsafe(),
          };
          attempts.add(connection);
          const settled = Effect.sync(() => {
            attempts.delete(connection);
            Deferred.doneUnsafe(connection.settled, Effect.void);
          });
          record.connecting++;
          record.attempt = connection;
          events.publish({ type: "connect.start", ...at(record) });
          const attempt = connect(deps, record.plugin, record.endpoint, {
            limiter: record.limiter,
            demand: record.demand,
            onDiagnostic: (message) => events.publish({ type: "diagnostic", message, ...at(record) }),
            onNotification: (client, method, params) => {
              client.notified(method, params);
              events.publish({ type: "notification", method, params, ...at(record) });
            },
            onClose: (_client, error) => onClose(record, connection, error),
          });
          const slotted: Effect.Effect<LiveClient, AcquireError, Scope.Scope> = record.plugin.subprocess
            ? Effect.andThen(processes.slot, attempt)
            : attempt;
          const guarded: Effect.Effect<LiveClient, AcquireError> = breaker.guard(
            record,
            Scope.provide(slotted, connection.own),
          );
          const exit = yield* Effect.exit(restore(Effect.raceFirst(guarded, Deferred.await(closing))));
          record.connecting--;
          if (Exit.isFailure(exit)) {
            // In no scope: that of a closing runtime takes no more fibers. The close waits for it all the same.
            run(Effect.ensuring(Scope.close(connection.own, exit), settled));
            // Only its own entry: after an eviction the key may stand for the next attempt.
            if (record.attempt === connection) yield* RcMap.invalidate(map, record.endpointId);
            records.forget(record);
            return yield* exit;
          }
          yield* Effect.addFinalizer(() =>
            Effect.suspend(() => {
              opened.delete(connection.own);
              exit.value.markClosed(undefined);
              if (record.lease?.client === exit.value) record.lease = undefined;
              return Effect.andThen(
                Scope.close(connection.own, Exit.void),
                Effect.sync(() => records.forget(record)),
              );
            }),
          );
          becomeReady(record, connection, exit.value);
          yield* settled;
          return exit.value;
        }).pipe(
          Effect.tapError((error: AcquireError) =>
            Effect.sync(() => {
              if (error._tag !== "CircuitOpen" && error._tag !== "RuntimeClosed") record.failures++;
              events.publish({ type: "connect.failed", error, ...at(record) });
            }),
          ),
        ),
      );

    const map: RcMap.RcMap<string, LiveClient, AcquireError> = yield* RcMap.make({
      lookup: (id: string) => open(records.byId(id)!),
    });

    const evict: ClientPool["evict"] = (endpointId, reason) =>
      Effect.suspend(() => {
        const record = records.byId(endpointId);
        if (!record) return Effect.void;
        if (record.lease) events.publish({ type: "evicted", reason, ...at(record) });
        return Effect.andThen(
          drop(record),
          Effect.sync(() => records.forget(record)),
        );
      });

    /** Connects, or waits for the connection under way. When all who wait give up, the attempt ends. */
    const leaseOf = (record: EndpointRecord): Effect.Effect<Lease, AcquireError> =>
      Effect.uninterruptibleMask((restore) =>
        Effect.gen(function* () {
          const reference = yield* Scope.make();
          const release = Scope.close(reference, Exit.void);
          const get = Scope.provide(RcMap.get(map, record.endpointId), reference);
          const client = yield* Effect.onError(restore(get), () => release);
          const lease = leases.get(client);
          if (!lease || !client.isConnected) {
            yield* release;
            const reason = "the server closed the connection as soon as it was open";
            return yield* new ConnectionLost({ server: record.server, outcome: "not-sent", reason }, record.lastError);
          }
          if (held.has(lease)) yield* release;
          else {
            // The first reference becomes the pool's own; from now on the lease's idle time decides.
            held.add(lease);
            yield* Scope.addFinalizer(lease.hold, release);
            lease.arm();
          }
          return lease;
        }),
      );

    const withLease: WithLease = (endpoint, entered, use) => {
      if (closed) return Effect.fail(new RuntimeClosed());
      const record = records.of(endpoint);
      if (record instanceof InvalidEndpoint) return Effect.fail(record);
      const enter = (lease: Lease): ReturnType<typeof use> => {
        lease.enter();
        entered(lease);
        if (record.lease !== lease) fork(lease.retire);
        return use(lease.client);
      };
      if (record.lease?.client.isConnected && held.has(record.lease)) return enter(record.lease);
      record.waiting++;
      return Effect.flatMap(
        Effect.onExitPrimitive(leaseOf(record), (exit) => {
          record.waiting--;
          if (Exit.isFailure(exit)) records.forget(record);
          return undefined;
        }),
        enter,
      );
    };

    return {
      ...makeBorrowing(withLease),
      record: records.of,
      records: records.all,
      evict,
      processes: processes.gates,
      close: Effect.suspend(() => {
        closed = true;
        Deferred.doneUnsafe(closing, Effect.fail(new RuntimeClosed()));
        processes.close();
        const evictAll = Effect.forEach(records.all().toReversed(), (record) => evict(record.endpointId, "shutdown"), {
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
        const endAttempts = Effect.suspend(() =>
          Effect.forEach([...attempts], (attempt) => Deferred.await(attempt.settled), { discard: true }),
        );
        return Effect.all([evictAll, endAttempts, closeAll], { discard: true });
      }),
    };
  });
