/** What admission costs: a grant and its release with nobody waiting, and a release with 10,000 waiting. */
import * as Effect from "effect/Effect";
import { type Admission, makeAdmission } from "../src/core/admission/admission.ts";
import type { Demand } from "../src/core/contracts.ts";
import { line, median, target } from "./measure.ts";

const waiters = 10_000;
const make = (): Admission => makeAdmission({ queueMax: 2 * waiters, timeout: 600_000 });
const gc = (globalThis as { gc?: () => void }).gc ?? (() => {});

/** Median µs of one run of an effect, over batches of 1,000. */
const costOf = async (effect: Effect.Effect<void, unknown>): Promise<number> => {
  const batch = Effect.gen(function* () {
    const start = performance.now();
    for (let n = 0; n < 1_000; n++) yield* effect;
    return performance.now() - start;
  });
  const times: Array<number> = [];
  for (let round = 0; round < 400; round++) times.push(await Effect.runPromise(batch));
  return median(times.slice(100));
};

/** As a stdio call: one slot of the endpoint's gate, one of the shared gate. */
const uncontended = async (): Promise<number> => {
  const admission = make();
  admission.ensureGate("mcp:files", 10);
  admission.ensureGate("mcp:stdio", 32);
  const demand: Demand = new Map([
    ["mcp:files", 1],
    ["mcp:stdio", 1],
  ]);
  return costOf(admission.withGrant(demand, Effect.void));
};

/** Median µs of one release while `waiting` jobs over `endpoints` demands wait: it picks and starts the next. */
const release = async (waiting: number, endpoints: number): Promise<number> => {
  const slots = 50;
  const admission = make();
  admission.ensureGate("mcp:stdio", slots);
  for (let n = 0; n < endpoints; n++) admission.ensureGate(`mcp:${n}`, slots);
  const held: Array<() => void> = [];
  let asked = 0;
  const ask = (): void => {
    const demand: Demand = new Map([
      [`mcp:${asked++ % endpoints}`, 1],
      ["mcp:stdio", 1],
    ]);
    Effect.runFork(Effect.map(admission.grant(demand), (give) => held.push(give)));
  };
  for (let n = 0; n < waiting + slots; n++) ask();
  gc();
  const times: Array<number> = [];
  for (let round = 0; round < 200; round++) {
    const batch = held.splice(0);
    const start = performance.now();
    for (const give of batch) give();
    times.push(((performance.now() - start) / batch.length) * 1_000);
    // As many ask as left, so the queue stays as long; a turn of the loop wakes those who got a slot.
    for (let n = 0; n < batch.length; n++) ask();
    await new Promise((resume) => setImmediate(resume));
  }
  admission.close();
  return median(times.slice(50));
};

const baseline = await costOf(Effect.void);
const alone = await uncontended();
line("the same loop without admission", `${baseline.toFixed(2)} µs`);
target("grant + release, nobody waits", alone, "at most", 5, " µs");
line("release, nobody waits", `${(await release(0, 1)).toFixed(2)} µs`);
for (const endpoints of [1, 32, waiters]) {
  const cost = await release(waiters, endpoints);
  line(`release, ${waiters} wait for ${endpoints} endpoint(s)`, `${cost.toFixed(2)} µs`);
  target("  as a multiple of grant + release", cost / alone, "at most", 5, "×");
}
