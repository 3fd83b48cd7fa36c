/**
 * Plain data of admission: gates, and the lanes in which jobs wait. All jobs of a
 * lane have the same demand, so when its head does not fit, none of it fits.
 */
import type { Overloaded, RuntimeClosed } from "../errors.ts";
import { LaneOrder } from "./lane-order.ts";

/** Some slots of one gate. */
export interface Need {
  readonly gate: Gate;
  readonly count: number;
}

/** One caller's way through admission. */
export class Job {
  state: "new" | "waiting" | "running" | "done" = "new";
  needs: ReadonlyArray<Need> = [];
  /** Order of arrival. */
  seq = 0;
  /** Set while waiting. */
  lane: Lane | undefined = undefined;
  previous: Job | undefined = undefined;
  next: Job | undefined = undefined;
  /** On the sweeper's clock, ms. */
  deadline = 0;
  /** Called once when the wait ends: with the error, or with nothing when granted. */
  wake: (error?: Overloaded | RuntimeClosed) => void = () => {};
}

/** The jobs that wait with one and the same demand, oldest first. Never empty. */
export class Lane {
  readonly key: string;
  readonly needs: ReadonlyArray<Need>;
  head: Job;
  tail: Job;
  /** How often later jobs took slots its head needed, since the lane was last empty. */
  overtaken = 0;
  /** The last job that overtook it, so that one job counts once. */
  overtaker = -1;

  constructor(key: string, first: Job) {
    this.key = key;
    this.needs = first.needs;
    this.head = first;
    this.tail = first;
  }

  countAt(gate: Gate): number {
    for (const need of this.needs) if (need.gate === gate) return need.count;
    return 0;
  }

  /** False while a gate is too small for the demand, as a shrunk one may be. */
  get possible(): boolean {
    return this.needs.every((need) => need.count <= need.gate.capacity);
  }
}

/** A counting gate. */
export class Gate {
  readonly name: string;
  capacity: number;
  used = 0;
  /** Jobs waiting that need this gate. */
  waiting = 0;
  /** To be forgotten as soon as nothing uses it. */
  dropped = false;
  /** Lanes that need this gate, by the arrival of their heads. */
  readonly lanes: LaneOrder<Lane> = new LaneOrder();
  /** Those of `lanes` that were overtaken too often: slots are kept for their heads. */
  readonly kept: Set<Lane> = new Set();

  constructor(name: string, capacity: number) {
    this.name = name;
    this.capacity = capacity;
  }
}
