/** The promises of admission, over generated schedules. Together at least 10,000 per run. */
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest";
import { assert, constantFrom, property, tuple } from "fast-check";
import { type Call, commandsOf, endOf, everyGate, gateNames, Schedule, timeout } from "./schedule.ts";

/** Throws; many times cheaper than `expect`, which matters at millions of checks. */
const check = (holds: boolean, what: () => string): void => {
  if (!holds) throw new Error(what());
};

const checkNothingLeft = (schedule: Schedule) => {
  for (const { name, used, waiting } of schedule.admission.gates()) {
    check(used === 0 && waiting === 0, () => `gate '${name}' ends with ${used} used and ${waiting} waiting`);
  }
  check(schedule.admission.running() === 0, () => "jobs are left running");
  for (const call of schedule.calls) {
    const end = endOf(call);
    const starts = ["success", "failure", "defect"].includes(end)
      ? call.starts === 1
      : end === "interrupted" || end === "none"
        ? call.starts <= 1
        : call.starts === 0;
    const right = { none: false, interrupted: call.cancelled, RuntimeClosed: schedule.closed }[end] ?? true;
    check(starts && right, () => `call ${call.seq} ended with ${end} after ${call.starts} starts`);
  }
};

/** Counts overtakings: a grant to a later call that leaves too few slots for one that waits. */
class Fairness {
  readonly schedule: Schedule;
  readonly overtakesMax: number;
  readonly overtaken = new Map<Call, number>();
  /** Overtakings of each group of equal demands since it last was empty. */
  readonly groups = new Map<string, number>();

  constructor(overtakesMax: number, queueMax: number) {
    this.overtakesMax = overtakesMax;
    this.schedule = new Schedule({ overtakesMax, queueMax }, (call) => this.onStart(call));
  }

  short(call: Call, gate: string): boolean {
    return (call.demand.get(gate) ?? 0) > this.schedule.capacity.get(gate)! - this.schedule.used(gate);
  }

  anyShort(call: Call, gates: Iterable<string>): boolean {
    for (const gate of gates) if (this.short(call, gate)) return true;
    return false;
  }

  possible(call: Call): boolean {
    for (const [gate, count] of call.demand) if (count > this.schedule.capacity.get(gate)!) return false;
    return true;
  }

  onStart(started: Call): void {
    for (const gate of started.demand.keys()) {
      check(this.schedule.used(gate) <= this.schedule.capacity.get(gate)!, () => `gate '${gate}' is over its capacity`);
    }
    const overtaken = [...this.schedule.waiting].filter(
      (call) => call.seq < started.seq && this.anyShort(call, started.demand.keys()),
    );
    for (const key of new Set(overtaken.map((call) => call.key))) this.groups.set(key, (this.groups.get(key) ?? 0) + 1);
    for (const call of overtaken) {
      check(call.key !== started.key, () => `call ${started.seq} passed call ${call.seq} of the same demand`);
      if (!this.possible(call)) continue;
      const times = (this.overtaken.get(call) ?? 0) + 1;
      check(times <= this.overtakesMax, () => `call ${call.seq} was overtaken ${times} times`);
      this.overtaken.set(call, times);
    }
  }

  /** Only what is kept for an earlier call may hold back one whose demand is free. */
  checkWorkConserving(): void {
    const waiting = [...this.schedule.waiting];
    for (const call of waiting) {
      if (this.anyShort(call, call.demand.keys())) continue;
      const reason = waiting.some(
        (other) =>
          other.seq < call.seq &&
          this.possible(other) &&
          (this.groups.get(other.key) ?? 0) >= this.overtakesMax &&
          gateNames.some((gate) => other.demand.has(gate) && call.demand.has(gate)),
      );
      check(reason, () => `call ${call.seq} waits though its demand is free`);
    }
  }

  checkBooks(): void {
    const waiting = [...this.schedule.waiting];
    for (const gate of this.schedule.admission.gates()) {
      const used = this.schedule.used(gate.name);
      const queued = waiting.filter((call) => call.demand.has(gate.name)).length;
      check(gate.used === used, () => `gate '${gate.name}' says ${gate.used} used, ${used} are`);
      check(gate.waiting === queued, () => `gate '${gate.name}' says ${gate.waiting} waiting, ${queued} are`);
    }
    check(this.schedule.admission.running() === this.schedule.running.size, () => "running() is wrong");
    const timers = this.schedule.clock.sleepers();
    check(timers === Math.min(1, waiting.length), () => `${timers} timers for ${waiting.length} who wait`);
    const now = this.schedule.clock.currentTimeMillisUnsafe();
    for (const call of waiting) check(now - call.since < timeout, () => `call ${call.seq} waits too long`);
    for (const key of this.groups.keys()) if (!waiting.some((call) => call.key === key)) this.groups.delete(key);
  }
}

describe("admission under generated schedules", { timeout: 120_000 }, () => {
  // The schedules make errors by the ten thousand; their stack traces would be a third of the time.
  const traces = Error.stackTraceLimit;
  beforeAll(() => {
    Error.stackTraceLimit = 0;
  });
  afterAll(() => {
    Error.stackTraceLimit = traces;
  });

  it("keeps to capacity, is work-conserving, bounds overtaking, loses nothing (6,000 schedules)", () => {
    const options = tuple(constantFrom(0, 1, 2, 3, 5, 1_000), constantFrom(3, 100));
    const seen = new Set<string>();
    assert(
      property(options, commandsOf(), ([overtakesMax, queueMax], commands) => {
        const fairness = new Fairness(overtakesMax, queueMax);
        for (const command of commands) {
          fairness.schedule.play(command);
          fairness.schedule.scheduler.flush();
          fairness.schedule.throwFaults();
          fairness.checkBooks();
          fairness.checkWorkConserving();
        }
        fairness.schedule.settle();
        checkNothingLeft(fairness.schedule);
        for (const call of fairness.schedule.calls) seen.add(endOf(call));
      }),
      { numRuns: 6_000 },
    );
    // The schedules reach every way in which a call can end.
    expect([...seen].toSorted()).toEqual([
      "RuntimeClosed",
      "defect",
      "failure",
      "interrupted",
      "never-fits",
      "queue-full",
      "success",
      "timeout",
    ]);
  });

  it("gives back exactly once when grants, ends and interruptions race (4,500 schedules)", () => {
    let lostGrants = 0;
    assert(
      property(commandsOf(), (commands) => {
        const schedule = new Schedule({ overtakesMax: 2, queueMax: 100 }, (call) =>
          check(call.exit === undefined, () => `call ${call.seq} starts after its end`),
        );
        let before = new Map<string, number>();
        for (const command of commands) {
          // Woken jobs start only at "step" commands, so anything may come between grant and start.
          const granted = schedule.admission.running() - schedule.running.size;
          schedule.play(command);
          schedule.throwFaults();
          if (command.type === "cancel" && schedule.admission.running() - schedule.running.size < granted) {
            lostGrants++;
          }
          const now = new Map<string, number>();
          for (const { name, capacity, used } of schedule.admission.gates()) {
            check(used <= Math.max(capacity, before.get(name) ?? 0), () => `gate '${name}' is over its capacity`);
            check(used >= schedule.used(name), () => `gate '${name}' forgot a grant`);
            now.set(name, used);
          }
          check(now.get(everyGate) === schedule.admission.running(), () => "a grant is partial");
          before = now;
        }
        schedule.settle();
        schedule.throwFaults();
        checkNothingLeft(schedule);
      }),
      { numRuns: 4_500 },
    );
    // Interruptions between grant and start did happen.
    expect(lostGrants).toBeGreaterThan(100);
  });
});
