/**
 * Who holds and who waits for which slots. Synchronous and free of Effect: each
 * method leaves the books balanced, and foreign code runs only through `job.wake`.
 */
import type { Demand } from "../contracts.ts";
import { Gate, type Job, Lane, type Need } from "./gate.ts";

/** Same text for the same demand, whatever the order of its entries. */
const keyOf = (needs: ReadonlyArray<Need>): string =>
  JSON.stringify(needs.map((need) => [need.gate.name, need.count] as const).toSorted(([a], [b]) => (a < b ? -1 : 1)));

const whole = (value: number, what: string): number => {
  if (Number.isInteger(value) && value >= 0) return value;
  throw new RangeError(`${what} must be a whole number, zero or more, not ${value}`);
};

export class Ledger {
  readonly gates: Map<string, Gate> = new Map();
  /** Jobs that hold a grant. */
  running = 0;
  readonly #lanes = new Map<string, Lane>();
  readonly #overtakesMax: number;
  #arrivals = 0;

  constructor(overtakesMax: number) {
    this.#overtakesMax = overtakesMax;
  }

  ensureGate(name: string, capacity: number): void {
    const gate = this.gates.get(name);
    if (gate === undefined) {
      this.gates.set(name, new Gate(name, whole(capacity, `The capacity of gate '${name}'`)));
      return;
    }
    gate.dropped = false;
    if (gate.capacity === capacity) return;
    gate.capacity = whole(capacity, `The capacity of gate '${name}'`);
    // A shrink can make a lane impossible, which frees what other gates kept for it: look at all.
    this.#serve([...this.gates.values()].map((each) => ({ gate: each, count: 0 })));
  }

  dropGate(name: string): void {
    const gate = this.gates.get(name);
    if (gate === undefined) return;
    gate.dropped = true;
    this.#forget(gate);
  }

  /** A demand with its gates looked up. An unknown gate is one without slots. */
  needsOf(demand: Demand): ReadonlyArray<Need> {
    const needs: Array<Need> = [];
    for (const [name, count] of demand) {
      if (whole(count, `The demand on gate '${name}'`) === 0) continue;
      needs.push({ gate: this.gates.get(name) ?? new Gate(name, 0), count });
    }
    return needs;
  }

  /** Starts a new job at once when its demand is free beside what is kept for those who wait. */
  tryStart(job: Job, needs: ReadonlyArray<Need>): boolean {
    job.needs = needs;
    job.seq = this.#arrivals++;
    let contended = false;
    for (const { gate, count } of needs) {
      if (gate.used + count > gate.capacity) return false;
      if (gate.waiting > 0) contended = true;
    }
    if (contended && !this.#fits(needs, job.seq)) return false;
    this.#start(job);
    if (contended) this.#countOvertaken(job);
    return true;
  }

  /** Puts a job that could not start at the end of its lane. */
  enqueue(job: Job): void {
    job.state = "waiting";
    const key = keyOf(job.needs);
    const lane = this.#lanes.get(key);
    if (lane === undefined) {
      job.lane = new Lane(key, job);
      this.#lanes.set(key, job.lane);
      for (const { gate } of job.needs) gate.lanes.add(job.lane);
      this.#keepWhenDue(job.lane);
    } else {
      job.lane = lane;
      job.previous = lane.tail;
      lane.tail.next = job;
      lane.tail = job;
    }
    for (const { gate } of job.needs) gate.waiting++;
  }

  /** Ends a job, whatever its state, and serves those who waited for what it held. Twice is once. */
  end(job: Job): void {
    const { state, lane } = job;
    job.state = "done";
    if (state === "running") {
      this.running--;
      for (const { gate, count } of job.needs) gate.used -= count;
      this.#serve(job.needs);
    } else if (lane !== undefined) {
      const wasKept = lane.head === job && lane.overtaken >= this.#overtakesMax;
      this.#leaveLane(job, lane);
      if (wasKept) this.#serve(job.needs);
    } else return;
    for (const { gate } of job.needs) this.#forget(gate);
  }

  /** The gate a waiting job waits for. */
  blocker(needs: ReadonlyArray<Need>): Gate {
    const busy = needs.find(({ gate, count }) => gate.used + count > gate.capacity);
    return (busy ?? needs.find(({ gate }) => gate.kept.size > 0) ?? needs[0]!).gate;
  }

  #start(job: Job): void {
    job.state = "running";
    this.running++;
    for (const { gate, count } of job.needs) gate.used += count;
  }

  /** Grants, oldest first, all that fits now that slots of these gates came free. */
  #serve(freed: ReadonlyArray<Need>): void {
    let seen = -1;
    for (;;) {
      let lane: Lane | undefined;
      for (const { gate } of freed) {
        if (gate.waiting === 0 || gate.used >= gate.capacity) continue;
        const next = gate.lanes.after(seen);
        if (next !== undefined && (lane === undefined || next.head.seq < lane.head.seq)) lane = next;
      }
      if (lane === undefined) return;
      const job = lane.head;
      seen = job.seq;
      if (!this.#fits(lane.needs, seen)) continue;
      this.#leaveLane(job, lane);
      this.#start(job);
      this.#countOvertaken(job);
      job.wake();
    }
  }

  /** True when the demand of a job is free beside what is kept for earlier ones. */
  #fits(needs: ReadonlyArray<Need>, seq: number): boolean {
    for (const { gate, count } of needs) {
      let left = gate.capacity - gate.used - count;
      if (left < 0) return false;
      if (gate.kept.size === 0) continue;
      for (const lane of gate.kept) {
        if (lane.head.seq < seq && lane.possible) left -= lane.countAt(gate);
        if (left < 0) return false;
      }
    }
    return true;
  }

  /** Notes each lane whose older head now lacks slots that this job took. */
  #countOvertaken(job: Job): void {
    for (const { gate } of job.needs) {
      const free = gate.capacity - gate.used;
      for (let seen = -1; ;) {
        const lane = gate.lanes.after(seen);
        if (lane === undefined || lane.head.seq > job.seq) break;
        seen = lane.head.seq;
        if (lane.overtaker === job.seq || lane.countAt(gate) <= free) continue;
        lane.overtaker = job.seq;
        lane.overtaken++;
        this.#keepWhenDue(lane);
      }
    }
  }

  #keepWhenDue(lane: Lane): void {
    if (lane.overtaken === this.#overtakesMax) for (const { gate } of lane.needs) gate.kept.add(lane);
  }

  #leaveLane(job: Job, lane: Lane): void {
    const { previous, next } = job;
    job.lane = job.previous = job.next = undefined;
    for (const { gate } of lane.needs) gate.waiting--;
    if (next !== undefined) next.previous = previous;
    if (previous !== undefined) {
      previous.next = next;
      if (next === undefined) lane.tail = previous;
      return;
    }
    for (const { gate } of lane.needs) gate.lanes.remove(lane);
    if (next !== undefined) {
      lane.head = next;
      for (const { gate } of lane.needs) gate.lanes.add(lane);
    } else {
      this.#lanes.delete(lane.key);
      for (const { gate } of lane.needs) gate.kept.delete(lane);
    }
  }

  #forget(gate: Gate): void {
    if (gate.dropped && gate.used === 0 && gate.waiting === 0) this.gates.delete(gate.name);
  }
}
