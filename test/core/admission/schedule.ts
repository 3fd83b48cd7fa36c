/**
 * Plays generated schedules against admission: real fibers, but tasks and time move
 * only when the schedule says so. Keeps its own books to compare with.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type * as Fiber from "effect/Fiber";
import type * as Scheduler from "effect/Scheduler";
import { array, nat, tuple, type Arbitrary } from "fast-check";
import { type Admission, makeAdmission } from "../../../src/core/admission/admission.ts";
import type { Overloaded, RuntimeClosed } from "../../../src/core/errors.ts";

/** Runs what fibers schedule, in order, when told to. */
class ManualScheduler implements Scheduler.Scheduler {
  readonly executionMode = "sync";
  readonly tasks: Array<() => void> = [];
  shouldYield(): boolean {
    return false;
  }
  makeDispatcher(): Scheduler.SchedulerDispatcher {
    return { scheduleTask: (task) => void this.tasks.push(task), flush: () => this.flush() };
  }
  flush(): void {
    for (let task = this.tasks.shift(); task; task = this.tasks.shift()) task();
  }
}

/** A clock whose sleepers wake synchronously in `advance`. */
const manualClock = (): Clock.Clock & { advance: (ms: number) => void; sleepers: () => number } => {
  let now = 0;
  const sleepers = new Set<{ readonly at: number; readonly wake: () => void }>();
  const nanos = () => BigInt(now) * 1_000_000n;
  return {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.callback((resume) => {
        const sleeper = { at: now + Duration.toMillis(duration), wake: () => resume(Effect.void) };
        sleepers.add(sleeper);
        return Effect.sync(() => sleepers.delete(sleeper));
      }),
    sleepers: () => sleepers.size,
    advance: (ms) => {
      now += ms;
      for (const sleeper of sleepers) {
        if (sleeper.at > now) continue;
        sleepers.delete(sleeper);
        sleeper.wake();
      }
    },
  };
};

export type Outcome = "success" | "failure" | "defect";
type Failure = "boom" | Overloaded | RuntimeClosed;

export interface Call {
  readonly seq: number;
  readonly demand: ReadonlyMap<string, number>;
  readonly key: string;
  readonly since: number;
  starts: number;
  cancelled: boolean;
  exit: Exit.Exit<void, Failure> | undefined;
  finish: (outcome: Outcome) => void;
  fiber: Fiber.Fiber<void, Failure> | undefined;
}

export type Command =
  | { readonly type: "submit"; readonly demand: number }
  | { readonly type: "finish"; readonly pick: number; readonly outcome: Outcome }
  | { readonly type: "cancel"; readonly pick: number }
  | { readonly type: "resize"; readonly gate: number; readonly capacity: number }
  | { readonly type: "advance"; readonly ms: number }
  | { readonly type: "step" }
  | { readonly type: "close" };

export const gateNames: ReadonlyArray<string> = ["a", "b", "c"];
/** Every demand takes one slot of it, so that its `used` counts the whole grants. */
export const everyGate = "every";
const demands: ReadonlyArray<ReadonlyMap<string, number>> = (
  ["a", "b", "c", "aa", "bbb", "ab", "ba", "bc", "ac", "aab", "abc", "abbcc"] as const
).map((letters) => {
  const demand = new Map([[everyGate, 1]]);
  for (const letter of letters) demand.set(letter, (demand.get(letter) ?? 0) + 1);
  return demand;
});
const outcomes: ReadonlyArray<Outcome> = ["success", "success", "failure", "defect"];

/** Commands with their weights. Each is made of small numbers, which keeps generating cheap. */
export const commandsOf = (): Arbitrary<Array<Command>> =>
  array(
    tuple(nat(39), nat(11), nat(7)).map(([kind, x, y]): Command => {
      if (kind < 18) return { type: "submit", demand: x };
      if (kind < 28) return { type: "finish", pick: x, outcome: outcomes[y % 4]! };
      if (kind < 32) return { type: "cancel", pick: x };
      if (kind < 35) return { type: "resize", gate: x % 3, capacity: y % 5 };
      if (kind < 37) return { type: "advance", ms: y * 20 };
      return kind === 39 && x === 0 ? { type: "close" } : { type: "step" };
    }),
    { minLength: 5, maxLength: 45, size: "max" },
  );

export const timeout = 200;

export class Schedule {
  readonly admission: Admission;
  readonly scheduler: ManualScheduler = new ManualScheduler();
  readonly clock: ReturnType<typeof manualClock> = manualClock();
  readonly capacity: Map<string, number> = new Map();
  readonly calls: Array<Call> = [];
  /** In order of arrival. */
  readonly waiting: Set<Call> = new Set();
  readonly running: Set<Call> = new Set();
  closed = false;
  readonly #onStart: (call: Call) => void;
  readonly #faults: Array<unknown> = [];
  readonly #used = new Map<string, number>();

  constructor(options: { readonly overtakesMax: number; readonly queueMax: number }, onStart: (call: Call) => void) {
    this.admission = makeAdmission({ ...options, timeout });
    this.#onStart = onStart;
    for (const name of gateNames) this.resize(name, 2);
    this.resize(everyGate, 1_000);
  }

  resize(name: string, capacity: number): void {
    this.capacity.set(name, capacity);
    this.admission.ensureGate(name, capacity);
  }

  /** Slots held by calls whose body runs. */
  used(name: string): number {
    return this.#used.get(name) ?? 0;
  }

  play(command: Command): void {
    switch (command.type) {
      case "submit":
        return this.#submit(demands[command.demand]!);
      case "finish": {
        const running = [...this.running];
        return running[command.pick % running.length]?.finish(command.outcome);
      }
      case "cancel": {
        const live = this.calls.filter((call) => call.exit === undefined);
        const call = live[command.pick % live.length];
        if (call === undefined) return;
        call.cancelled = true;
        return call.fiber?.interruptUnsafe();
      }
      case "resize":
        return this.resize(gateNames[command.gate]!, command.capacity);
      case "advance":
        return this.clock.advance(command.ms);
      case "step":
        return this.scheduler.tasks.shift()?.();
      case "close":
        this.closed = true;
        return this.admission.close();
    }
  }

  /** Throws what `onStart` threw. */
  throwFaults(): void {
    if (this.#faults.length > 0) throw this.#faults[0];
  }

  /** Ends whatever still lives. */
  settle(): void {
    this.scheduler.flush();
    while (this.running.size > 0) {
      for (const call of this.running) call.finish("success");
      this.scheduler.flush();
    }
    this.clock.advance(timeout);
    this.scheduler.flush();
  }

  #submit(demand: ReadonlyMap<string, number>): void {
    const call: Call = {
      seq: this.calls.length,
      demand,
      key: JSON.stringify([...demand].toSorted()),
      since: this.clock.currentTimeMillisUnsafe(),
      starts: 0,
      cancelled: false,
      exit: undefined,
      finish: () => {},
      fiber: undefined,
    };
    this.calls.push(call);
    this.waiting.add(call);
    const body = Effect.callback<void, "boom">((resume) => {
      call.starts++;
      this.waiting.delete(call);
      this.running.add(call);
      this.#hold(call, 1);
      call.finish = (outcome) =>
        resume(outcome === "success" ? Effect.void : outcome === "failure" ? Effect.fail("boom") : Effect.die("bug"));
      // Thrown in here, it would be taken for a defect of the call.
      try {
        this.#onStart(call);
      } catch (fault) {
        this.#faults.push(fault);
      }
    });
    const run = Effect.provideService(this.admission.withGrant(demand, body), Clock.Clock, this.clock);
    call.fiber = Effect.runFork(run, { scheduler: this.scheduler });
    call.fiber.addObserver((exit) => {
      call.exit = exit;
      this.waiting.delete(call);
      if (this.running.delete(call)) this.#hold(call, -1);
    });
  }

  #hold(call: Call, sign: 1 | -1): void {
    for (const [name, count] of call.demand) this.#used.set(name, this.used(name) + sign * count);
  }
}

/** How a call ended, in one word. */
export const endOf = (call: Call): string => {
  if (call.exit === undefined) return "none";
  if (Exit.isSuccess(call.exit)) return "success";
  if (Cause.hasInterrupts(call.exit.cause)) return "interrupted";
  const failure = call.exit.cause.reasons.find(Cause.isFailReason)?.error;
  if (failure === undefined) return "defect";
  if (failure === "boom") return "failure";
  return failure._tag === "Overloaded" ? failure.reason : failure._tag;
};
