/**
 * Whose call is next. Calls to one server form a lane; a lane runs as many at once as
 * the server's own gate admits, so the runtime's queue behind it stays short. Clients
 * that use a lane share it: each in turn, and none holds more than its part of the
 * places. So another client's flood costs a call next to no wait. A client that is
 * alone has all places.
 */
import { Overloaded } from "../../core/errors.ts";

/** Starts the call that waits. */
type Waiter = () => void;

/** A client that used a lane within this keeps its part of it, ms. */
const presence = 1_000;

/** What one client does in one lane. */
class Part {
  running = 0;
  seenAt = 0;
  /** In the order they came. */
  readonly waiting: Set<Waiter> = new Set();
}

class Lane {
  running = 0;
  /** In the order of their turns. */
  readonly parts: Map<object, Part> = new Map();

  partOf(client: object): Part {
    const part = this.parts.get(client) ?? new Part();
    part.seenAt = performance.now();
    this.parts.set(client, part);
    return part;
  }

  /** Places that each client may hold now. Forgets clients that were not seen lately. */
  share(limit: number): number {
    const since = performance.now() - presence;
    for (const [client, { running, waiting, seenAt }] of this.parts)
      if (running === 0 && waiting.size === 0 && seenAt < since) this.parts.delete(client);
    return Math.max(1, Math.floor(limit / Math.max(1, this.parts.size)));
  }

  /** Takes the next call that may start; its client goes to the end of the row. */
  next(share: number): Waiter | undefined {
    for (const [client, part] of this.parts) {
      if (part.running >= share) continue;
      for (const waiter of part.waiting) {
        part.waiting.delete(waiter);
        this.parts.delete(client);
        this.parts.set(client, part);
        return waiter;
      }
    }
    return undefined;
  }
}

export interface FairQueueOptions {
  /** Calls of a lane that run at once. */
  readonly limitOf: (lane: string) => number;
  /** Calls of one client that may wait for one lane. */
  readonly queueMax: number;
}

export class FairQueue {
  readonly #lanes = new Map<string, Lane>();
  readonly #options: FairQueueOptions;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  /** Runs `work` when it is this client's turn. Rejects with `Overloaded`, or with the signal's reason while it waits. */
  async run<A>(client: object, name: string, signal: AbortSignal, work: () => Promise<A>): Promise<A> {
    signal.throwIfAborted();
    const lane = this.#lanes.get(name) ?? new Lane();
    this.#lanes.set(name, lane);
    const part = lane.partOf(client);
    await this.#enter(part, name, lane, signal);
    try {
      return await work();
    } finally {
      lane.running--;
      part.running--;
      part.seenAt = performance.now();
      this.#serve(lane, this.#options.limitOf(name));
    }
  }

  #enter(part: Part, name: string, lane: Lane, signal: AbortSignal): Promise<void> | undefined {
    const limit = this.#options.limitOf(name);
    if (lane.running < limit && part.running < lane.share(limit) && part.waiting.size === 0) {
      lane.running++;
      part.running++;
      return undefined;
    }
    const queued = part.waiting.size;
    if (queued >= this.#options.queueMax)
      throw new Overloaded({ gate: `client:${name}`, capacity: limit, queued, reason: "queue-full" });
    return new Promise((resolve, reject) => {
      const waiter: Waiter = () => {
        signal.removeEventListener("abort", onAbort);
        lane.running++;
        part.running++;
        resolve();
      };
      const onAbort = (): void => {
        part.waiting.delete(waiter);
        reject(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      part.waiting.add(waiter);
    });
  }

  #serve(lane: Lane, limit: number): void {
    const share = lane.share(limit);
    while (lane.running < limit) {
      const start = lane.next(share);
      if (!start) break;
      start();
    }
  }
}
