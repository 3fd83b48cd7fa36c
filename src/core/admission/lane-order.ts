/** As much of a lane as its order needs. */
interface Headed {
  readonly head: { readonly seq: number };
}

/**
 * The lanes of a gate by the arrival of their heads. The oldest usually leaves and
 * the newest usually comes, so both ends are cheap, however many lanes there are.
 */
export class LaneOrder<Lane extends Headed> {
  #lanes: Array<Lane | undefined> = [];
  /** Where the oldest is; those before it have left. */
  #first = 0;

  /** The lane whose head is the first to have arrived after `seq`. */
  after(seq: number): Lane | undefined {
    return this.#lanes[this.#indexAfter(seq)];
  }

  add(lane: Lane): void {
    const index = this.#indexAfter(lane.head.seq);
    if (index === this.#lanes.length) this.#lanes.push(lane);
    else this.#lanes.splice(index, 0, lane);
  }

  /** To be called while the lane still has the head with which it was added. */
  remove(lane: Lane): void {
    const index = this.#indexAfter(lane.head.seq) - 1;
    if (index > this.#first) {
      this.#lanes.splice(index, 1);
      return;
    }
    this.#lanes[this.#first++] = undefined;
    if (this.#first * 2 < this.#lanes.length) return;
    this.#lanes = this.#lanes.slice(this.#first);
    this.#first = 0;
  }

  #indexAfter(seq: number): number {
    let low = this.#first;
    let high = this.#lanes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.#lanes[middle]!.head.seq > seq) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
