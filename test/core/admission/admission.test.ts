import { describe, expect, it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import { type Admission, type AdmissionOptions, makeAdmission } from "../../../src/core/admission/admission.ts";
import type { Demand } from "../../../src/core/contracts.ts";

const demand = (entries: Record<string, number>): Demand => new Map(Object.entries(entries));

const make = (gates: Record<string, number>, options: Partial<AdmissionOptions> = {}): Admission => {
  const admission = makeAdmission({ queueMax: 100, timeout: 1_000, ...options });
  for (const [name, capacity] of Object.entries(gates)) admission.ensureGate(name, capacity);
  return admission;
};

/** Starts a job that holds its grant until told to end. */
const hold = Effect.fnUntraced(function* (admission: Admission, need: Record<string, number>) {
  const end = yield* Deferred.make<string, string>();
  const started = { now: false };
  const body = Effect.andThen(
    Effect.sync(() => {
      started.now = true;
    }),
    Deferred.await(end),
  );
  const fiber = yield* Effect.forkChild(admission.withGrant(demand(need), body));
  yield* settled;
  return {
    fiber,
    started: () => started.now,
    end: Effect.andThen(Deferred.succeed(end, "done"), settled),
    fail: Effect.andThen(Deferred.fail(end, "boom"), settled),
    interrupt: Effect.andThen(Fiber.interrupt(fiber), settled),
  };
});

/** Lets every fiber that can run do so. */
const settled = Effect.repeat(Effect.yieldNow, { times: 10 });

const usage = (admission: Admission): Record<string, string> =>
  Object.fromEntries(admission.gates().map((gate) => [gate.name, `${gate.used}/${gate.capacity}+${gate.waiting}`]));

describe("a grant", () => {
  it.effect("holds the whole demand while the effect runs", () =>
    Effect.gen(function* () {
      const admission = make({ a: 2, b: 3 });
      const seen = yield* admission.withGrant(
        demand({ a: 1, b: 2 }),
        Effect.sync(() => usage(admission)),
      );
      expect(seen).toEqual({ a: "1/2+0", b: "2/3+0" });
      expect(usage(admission)).toEqual({ a: "0/2+0", b: "0/3+0" });
    }),
  );

  it.effect("is given back on success, failure, defect and interruption", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1 });
      const need = demand({ a: 1 });
      expect(yield* admission.withGrant(need, Effect.succeed(7))).toBe(7);
      expect(yield* Effect.flip(admission.withGrant(need, Effect.fail("boom")))).toBe("boom");
      expect(Exit.isFailure(yield* Effect.exit(admission.withGrant(need, Effect.die("bug"))))).toBe(true);
      const running = yield* hold(admission, { a: 1 });
      expect(admission.running()).toBe(1);
      yield* running.interrupt;
      expect(usage(admission)).toEqual({ a: "0/1+0" });
      expect(admission.running()).toBe(0);
    }),
  );

  it.effect("of nothing never waits", () =>
    Effect.gen(function* () {
      const admission = make({ a: 0 });
      expect(yield* admission.withGrant(demand({}), Effect.succeed(admission.running))).toBe(admission.running);
      expect(yield* admission.withGrant(demand({ a: 0 }), Effect.succeed("ran"))).toBe("ran");
    }),
  );

  it.effect("taken without a scope is released once, however often that is asked", () =>
    Effect.gen(function* () {
      const admission = make({ a: 2 });
      const release = yield* admission.grant(demand({ a: 1 }));
      const other = yield* admission.grant(demand({ a: 1 }));
      release();
      release();
      expect(usage(admission)).toEqual({ a: "1/2+0" });
      other();
      expect(usage(admission)).toEqual({ a: "0/2+0" });
    }),
  );

  it.effect("taken without a scope leaves nothing when its wait is interrupted, even in an acquire", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1 });
      const running = yield* hold(admission, { a: 1 });
      const acquire = Effect.acquireRelease(admission.grant(demand({ a: 1 })), (release) => Effect.sync(release), {
        interruptible: true,
      });
      const waiting = yield* Effect.forkChild(Effect.scoped(Effect.andThen(acquire, Effect.never)));
      yield* settled;
      expect(usage(admission)).toEqual({ a: "1/1+1" });
      yield* Fiber.interrupt(waiting);
      expect(usage(admission)).toEqual({ a: "1/1+0" });
      yield* running.end;
      expect(usage(admission)).toEqual({ a: "0/1+0" });
    }),
  );

  it.effect("of a count that is no whole number is a defect, and takes nothing", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1 });
      for (const count of [-1, 0.5, Number.NaN]) {
        const exit = yield* Effect.exit(admission.withGrant(demand({ a: count }), Effect.void));
        expect(Exit.isFailure(exit) && Exit.hasDies(exit)).toBe(true);
      }
      expect(usage(admission)).toEqual({ a: "0/1+0" });
      expect(() => admission.ensureGate("b", -1)).toThrow(RangeError);
    }),
  );
});

describe("order", () => {
  it.effect("is first come, first served for one gate", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1 });
      const order: Array<number> = [];
      const running = yield* hold(admission, { a: 1 });
      const waiting = yield* Effect.forEach([1, 2, 3, 4], (n) =>
        Effect.forkChild(
          admission.withGrant(
            demand({ a: 1 }),
            Effect.sync(() => order.push(n)),
          ),
        ),
      );
      yield* settled;
      expect(usage(admission)).toEqual({ a: "1/1+4" });
      yield* running.end;
      yield* Fiber.awaitAll(waiting);
      expect(order).toEqual([1, 2, 3, 4]);
    }),
  );

  it.effect("lets a job whose gates are free pass one that waits for a busy gate, which holds nothing", () =>
    Effect.gen(function* () {
      const admission = make({ slow: 1, shared: 2 });
      const busy = yield* hold(admission, { slow: 1, shared: 1 });
      const blocked = yield* hold(admission, { slow: 1, shared: 1 });
      expect(usage(admission)).toEqual({ slow: "1/1+1", shared: "1/2+1" });
      const passing = yield* hold(admission, { shared: 1 });
      expect([blocked.started(), passing.started()]).toEqual([false, true]);
      yield* passing.end;
      yield* busy.end;
      expect(blocked.started()).toBe(true);
      yield* blocked.end;
    }),
  );

  it.effect("keeps the slots of a job that was passed too often: it starts as soon as those before it end", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1, b: 1 }, { overtakesMax: 3 });
      let onA = yield* hold(admission, { a: 1 });
      const onB = yield* hold(admission, { b: 1 });
      const both = yield* hold(admission, { a: 1, b: 1 });
      // Gate 'a' is always taken again before 'b' comes free: without a bound, 'both' would starve.
      for (let passed = 0; passed < 3; passed++) {
        yield* onA.end;
        onA = yield* hold(admission, { a: 1 });
        expect(onA.started()).toBe(true);
      }
      yield* onA.end;
      const fourth = yield* hold(admission, { a: 1 });
      expect(fourth.started()).toBe(false);
      yield* onB.end;
      expect([both.started(), fourth.started()]).toEqual([true, false]);
      yield* both.end;
      expect(fourth.started()).toBe(true);
      yield* fourth.end;
    }),
  );

  it.effect("keeps no more than the job needs: one stuck server does not stop the others", () =>
    Effect.gen(function* () {
      const admission = make({ stuck: 1, shared: 4 }, { overtakesMax: 2 });
      yield* hold(admission, { stuck: 1, shared: 1 });
      const waiting = yield* hold(admission, { stuck: 1, shared: 1 });
      const fill = Effect.forEach([1, 2, 3], () => hold(admission, { shared: 1 }));
      for (let round = 0; round < 5; round++) {
        const others = yield* fill;
        expect(others.filter((job) => job.started()).length).toBe(round < 2 ? 3 : 2);
        for (const other of others) yield* other.end;
      }
      expect(waiting.started()).toBe(false);
    }),
  );

  it.effect("frees what was kept when the job it was kept for gives up", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1, b: 1 }, { overtakesMax: 0 });
      yield* hold(admission, { a: 1 });
      const both = yield* hold(admission, { a: 1, b: 1 });
      const later = yield* hold(admission, { b: 1 });
      expect(later.started()).toBe(false);
      yield* both.interrupt;
      expect(later.started()).toBe(true);
    }),
  );
});

describe("bounds", () => {
  it.effect("a demand larger than its gate fails at once", () =>
    Effect.gen(function* () {
      const admission = make({ a: 2 });
      const error = yield* Effect.flip(admission.withGrant(demand({ a: 3 }), Effect.void));
      expect(error).toMatchObject({ _tag: "Overloaded", reason: "never-fits", gate: "a", capacity: 2, queued: 0 });
    }),
  );

  it.effect("an unknown gate has no slots", () =>
    Effect.gen(function* () {
      const admission = make({ a: 2 });
      const error = yield* Effect.flip(admission.withGrant(demand({ a: 1, ghost: 1 }), Effect.void));
      expect(error).toMatchObject({ _tag: "Overloaded", reason: "never-fits", gate: "ghost", capacity: 0 });
      expect(usage(admission)).toEqual({ a: "0/2+0" });
    }),
  );

  it.effect("a full queue refuses, and names gate, capacity and queue length", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1, b: 9 }, { queueMax: 2 });
      for (let n = 0; n < 3; n++) yield* hold(admission, { a: 1 });
      const error = yield* Effect.flip(admission.withGrant(demand({ b: 1, a: 1 }), Effect.void));
      expect(error).toMatchObject({ _tag: "Overloaded", reason: "queue-full", gate: "a", capacity: 1, queued: 2 });
      expect(error.message).toContain("'a' has 1 slots and 2 waiting");
      expect(yield* admission.withGrant(demand({ b: 1 }), Effect.succeed("other gate"))).toBe("other gate");
    }),
  );

  it.effect("a wait ends with an error at its time, not before and not after", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1, b: 1 }, { timeout: 1_000 });
      const running = yield* hold(admission, { a: 1 });
      const first = yield* hold(admission, { b: 1, a: 1 });
      yield* TestClock.adjust(400);
      const second = yield* hold(admission, { a: 1 });
      yield* TestClock.adjust(599);
      expect(usage(admission)).toEqual({ a: "1/1+2", b: "0/1+1" });
      yield* TestClock.adjust(1);
      const error = yield* Effect.flip(Fiber.join(first.fiber));
      expect(error).toMatchObject({ _tag: "Overloaded", reason: "timeout", gate: "a", capacity: 1, queued: 2 });
      expect(usage(admission)).toEqual({ a: "1/1+1", b: "0/1+0" });
      yield* running.end;
      expect(second.started()).toBe(true);
      yield* TestClock.adjust(5_000);
      expect(yield* Effect.andThen(second.end, Fiber.join(second.fiber))).toBe("done");
    }),
  );

  it.effect("each new wait has its whole time", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1 }, { timeout: 1_000 });
      yield* hold(admission, { a: 1 });
      for (let n = 0; n < 3; n++) {
        const waiting = yield* hold(admission, { a: 1 });
        yield* TestClock.adjust(999);
        expect(usage(admission)).toEqual({ a: "1/1+1" });
        yield* TestClock.adjust(1);
        expect(Exit.isFailure(yield* Fiber.await(waiting.fiber))).toBe(true);
      }
    }),
  );
});

describe("a gate", () => {
  it.effect("that grows serves its waiters at once", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1 });
      const jobs = yield* Effect.forEach([1, 2, 3, 4], () => hold(admission, { a: 1 }));
      admission.ensureGate("a", 3);
      yield* settled;
      expect(jobs.map((job) => job.started())).toEqual([true, true, true, false]);
      expect(usage(admission)).toEqual({ a: "3/3+1" });
    }),
  );

  it.effect("that shrinks lets running jobs go on and grants nothing above its new capacity", () =>
    Effect.gen(function* () {
      const admission = make({ a: 3 });
      const jobs = yield* Effect.forEach([1, 2, 3], () => hold(admission, { a: 1 }));
      const waiting = yield* hold(admission, { a: 1 });
      admission.ensureGate("a", 1);
      expect(usage(admission)).toEqual({ a: "3/1+1" });
      yield* jobs[0]!.end;
      yield* jobs[1]!.end;
      expect(waiting.started()).toBe(false);
      yield* jobs[2]!.end;
      expect(waiting.started()).toBe(true);
    }),
  );

  it.effect("that shrinks below a waiting demand keeps it waiting, and nothing for it", () =>
    Effect.gen(function* () {
      const admission = make({ a: 2, b: 1 }, { overtakesMax: 0 });
      const running = yield* hold(admission, { a: 1 });
      const large = yield* hold(admission, { a: 2, b: 1 });
      const later = yield* hold(admission, { b: 1 });
      expect(later.started()).toBe(false);
      admission.ensureGate("a", 1);
      yield* settled;
      expect(later.started()).toBe(true);
      yield* later.end;
      yield* running.end;
      expect(large.started()).toBe(false);
      admission.ensureGate("a", 2);
      yield* settled;
      expect(large.started()).toBe(true);
    }),
  );

  it.effect("that is dropped goes at once when idle, else with its last job", () =>
    Effect.gen(function* () {
      const admission = make({ idle: 1, busy: 1, back: 1 });
      const running = yield* hold(admission, { busy: 1, back: 1 });
      const waiting = yield* hold(admission, { busy: 1 });
      for (const name of ["idle", "busy", "back", "never-was"]) admission.dropGate(name);
      expect(usage(admission)).toEqual({ busy: "1/1+1", back: "1/1+0" });
      admission.ensureGate("back", 1);
      yield* running.end;
      expect(waiting.started()).toBe(true);
      yield* waiting.end;
      expect(usage(admission)).toEqual({ back: "0/1+0" });
    }),
  );
});

describe("closing", () => {
  it.effect("ends waiters and later jobs with RuntimeClosed and lets running ones finish", () =>
    Effect.gen(function* () {
      const admission = make({ a: 1, b: 1 }, { overtakesMax: 0 });
      const running = yield* hold(admission, { a: 1 });
      const kept = yield* hold(admission, { a: 1, b: 1 });
      const behind = yield* hold(admission, { b: 1 });
      const drained = yield* Effect.forkChild(admission.drained);
      admission.close();
      yield* settled;
      for (const { fiber } of [kept, behind]) {
        expect(yield* Effect.flip(Fiber.join(fiber))).toMatchObject({ _tag: "RuntimeClosed" });
      }
      expect([kept.started(), behind.started()]).toEqual([false, false]);
      expect(yield* Effect.flip(admission.grant(demand({})))).toMatchObject({ _tag: "RuntimeClosed" });
      expect(drained.pollUnsafe()).toBeUndefined();
      expect(admission.running()).toBe(1);
      yield* running.end;
      expect(yield* Fiber.join(running.fiber)).toBe("done");
      yield* Fiber.join(drained);
      yield* admission.drained;
    }),
  );
});

describe("load", () => {
  it.live("all who are woken in one turn go on before any microtask, so a transport can batch what they send", () =>
    Effect.gen(function* () {
      const admission = make({ a: 3 });
      const releases = yield* Effect.forEach([1, 2, 3], () => admission.grant(demand({ a: 1 })));
      let started = 0;
      const seenByMicrotasks: Array<number> = [];
      const start = Effect.sync(() => {
        started++;
        queueMicrotask(() => seenByMicrotasks.push(started));
      });
      const fibers = yield* Effect.forEach([1, 2, 3], () =>
        Effect.forkChild(admission.withGrant(demand({ a: 1 }), start), { startImmediately: true }),
      );
      for (const release of releases) release();
      expect(started).toBe(0);
      yield* Fiber.awaitAll(fibers);
      yield* Effect.promise(() => Promise.resolve());
      expect(seenByMicrotasks).toEqual([3, 3, 3]);
    }),
  );

  it.live("10,000 waiters with different demands are all served, none on another's stack", () =>
    Effect.gen(function* () {
      const admission = make({ shared: 1 }, { queueMax: 10_000, timeout: 60_000 });
      for (let n = 0; n < 100; n++) admission.ensureGate(`own-${n}`, 1);
      const release = yield* admission.grant(demand({ shared: 1 }));
      let served = 0;
      const serve = Effect.sync(() => void served++);
      const fibers = yield* Effect.forEach(Array.from({ length: 10_000 }), (_, n) =>
        Effect.forkChild(admission.withGrant(demand({ shared: 1, [`own-${n % 100}`]: 1 }), serve), {
          startImmediately: true,
        }),
      );
      expect(admission.gates()[0]).toMatchObject({ name: "shared", used: 1, waiting: 10_000 });
      release();
      yield* Fiber.awaitAll(fibers);
      expect(served).toBe(10_000);
    }),
  );
});
