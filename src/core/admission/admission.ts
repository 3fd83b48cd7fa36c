/**
 * Admission: a job gets all the slots it needs at once, or waits holding none.
 *
 * Order. Jobs with the same demand are served in the order they came. A job whose
 * whole demand is free may pass one that waits for a busy gate, so no slot idles
 * needlessly. When later jobs have taken slots that a waiting job needs
 * `overtakesMax` times, its slots are kept for it: later jobs get only what is free
 * beside them. So one stuck server costs the shared gate one slot, not all of it.
 */
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Fiber from "effect/Fiber";
import type { Demand } from "../contracts.ts";
import { Overloaded, RuntimeClosed } from "../errors.ts";
import { type Gate, Job } from "./gate.ts";
import { Ledger } from "./ledger.ts";

export interface GateState {
  readonly name: string;
  readonly capacity: number;
  /** May exceed a capacity that was lowered, until the jobs above it end. */
  readonly used: number;
  readonly waiting: number;
}

export interface AdmissionOptions {
  /** Jobs that may wait for one gate. */
  readonly queueMax: number;
  /** Longest wait, ms. */
  readonly timeout: number;
  /** Later jobs that may take slots a waiting job needs before they are kept for it. Default 64. */
  readonly overtakesMax?: number | undefined;
}

export interface Admission {
  /**
   * Makes the gate, or changes its capacity; waiters are served at once when it
   * grows. After a shrink running jobs go on, and a waiter that no longer fits waits
   * until the gate grows or its time is over.
   */
  readonly ensureGate: (name: string, capacity: number) => void;
  /** Forgets the gate: now, or as soon as nothing holds it or waits for it. `ensureGate` takes this back. */
  readonly dropGate: (name: string) => void;
  /**
   * Runs `self` holding the whole demand; gives it back exactly once on success,
   * failure and interruption. Fails with `Overloaded`: `never-fits` when a gate is
   * smaller than the demand or unknown, `queue-full`, or `timeout`.
   */
  readonly withGrant: <A, E, R>(
    demand: Demand,
    self: Effect.Effect<A, E, R>,
  ) => Effect.Effect<A, E | Overloaded | RuntimeClosed, R>;
  /**
   * As `withGrant` for callers that release by themselves: answers a release
   * function that may be called more than once. Acquire it where no interruption
   * can lose it: `Effect.acquireRelease(…, …, { interruptible: true })`.
   */
  readonly grant: (demand: Demand) => Effect.Effect<() => void, Overloaded | RuntimeClosed>;
  readonly gates: () => ReadonlyArray<GateState>;
  /** Stops admission: all who wait, and all who come later, fail with `RuntimeClosed`. Running jobs go on. */
  readonly close: () => void;
  /** Jobs that hold a grant. */
  readonly running: () => number;
  /** Done when no job holds a grant. */
  readonly drained: Effect.Effect<void>;
}

const overloaded = (gate: Gate, reason: Overloaded["reason"]): Overloaded =>
  new Overloaded({ gate: gate.name, capacity: gate.capacity, queued: gate.waiting, reason });

const milliseconds = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6;

export const makeAdmission = (options: AdmissionOptions): Admission => {
  const ledger = new Ledger(options.overtakesMax ?? 64);
  /** In order of arrival, hence of deadlines. */
  const waiting = new Set<Job>();
  const drains = new Set<() => void>();
  let closed = false;
  /** The fiber that ends waits in time, and its clock; they live only while someone waits. */
  let sweeper: Fiber.Fiber<void> | undefined;
  let clock: Clock.Clock | undefined;

  /**
   * Whoever releases does not run the next jobs on its stack. All that are woken in
   * one turn go on in one task, so a transport can send their requests in one write.
   */
  const woken: Array<() => void> = [];
  const later = (fiber: Fiber.Fiber<unknown, unknown>, task: () => void): void => {
    if (woken.push(task) > 1) return;
    fiber.currentDispatcher.scheduleTask(() => {
      for (const next of woken.splice(0)) next();
    }, 0);
  };

  const sweep = (on: Clock.Clock): Effect.Effect<void> =>
    Effect.suspend(() => {
      for (const job of waiting) {
        const left = job.deadline - milliseconds(on);
        if (left > 0) return Effect.flatMap(on.sleep(Duration.millis(Math.ceil(left))), () => sweep(on));
        job.wake(overloaded(ledger.blocker(job.needs), "timeout"));
        ledger.end(job);
      }
      return Effect.void;
    });

  const startWait = (job: Job, fiber: Fiber.Fiber<unknown, unknown>): void => {
    ledger.enqueue(job);
    clock ??= fiber.getRef(Clock.Clock);
    job.deadline = milliseconds(clock) + options.timeout;
    waiting.add(job);
    if (waiting.size === 1) sweeper = Effect.runFork(sweep(clock));
  };

  const endWait = (job: Job): void => {
    if (!waiting.delete(job) || waiting.size > 0) return;
    sweeper?.interruptUnsafe();
    sweeper = clock = undefined;
  };

  /** Continues with `then` once the job holds its demand. One step, so nothing happens between look and leap. */
  const enter = <A, E, R>(
    job: Job,
    demand: Demand,
    fiber: Fiber.Fiber<unknown, unknown>,
    then: Effect.Effect<A, E, R>,
  ): Effect.Effect<A, E | Overloaded | RuntimeClosed, R> =>
    Effect.callback((resume) => {
      if (closed) return resume(Effect.fail(new RuntimeClosed()));
      const needs = ledger.needsOf(demand);
      for (const { gate, count } of needs) {
        if (count > gate.capacity) return resume(Effect.fail(overloaded(gate, "never-fits")));
      }
      if (ledger.tryStart(job, needs)) return resume(then);
      for (const { gate } of needs) {
        if (gate.waiting >= options.queueMax) return resume(Effect.fail(overloaded(gate, "queue-full")));
      }
      job.wake = (error) => {
        endWait(job);
        later(fiber, () => resume(error === undefined ? then : Effect.fail(error)));
      };
      startWait(job, fiber);
    });

  const leave = (job: Job): void => {
    endWait(job);
    ledger.end(job);
    if (ledger.running > 0) return;
    for (const wake of drains) wake();
    drains.clear();
  };

  return {
    ensureGate: (name, capacity) => ledger.ensureGate(name, capacity),
    dropGate: (name) => ledger.dropGate(name),
    withGrant: (demand, self) =>
      Effect.withFiber((fiber) => {
        const job = new Job();
        return Effect.onExitPrimitive(enter(job, demand, fiber, self), () => void leave(job));
      }),
    grant: (demand) =>
      Effect.withFiber((fiber) => {
        const job = new Job();
        const release = () => leave(job);
        return Effect.onExitPrimitive(enter(job, demand, fiber, Effect.succeed(release)), (exit) =>
          exit._tag === "Failure" ? void release() : undefined,
        );
      }),
    gates: () =>
      Array.from(ledger.gates.values(), ({ name, capacity, used, waiting }) => ({ name, capacity, used, waiting })),
    close: () => {
      closed = true;
      // Latest first, so that no departure lets a later job through.
      for (const job of [...waiting].toReversed()) {
        job.wake(new RuntimeClosed());
        ledger.end(job);
      }
    },
    running: () => ledger.running,
    drained: Effect.withFiber((fiber) =>
      Effect.callback((resume) => {
        if (ledger.running === 0) return resume(Effect.void);
        const wake = () => later(fiber, () => resume(Effect.void));
        drains.add(wake);
        return Effect.sync(() => drains.delete(wake));
      }),
    ),
  };
};
