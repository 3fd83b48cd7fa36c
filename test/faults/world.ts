/**
 * Fault runs: random fault programs against random call loads, and invariants that hold
 * whatever the server did. `npm run faults -- --seed 1 --runs 100 --transport stdio`.
 *
 * - `world.ts`: what a transport brings: an arbitrary of fault programs, and how one is started.
 * - `load.ts`: what the callers do, as plain data; `callers.ts` does it through the public runtime.
 * - `invariants.ts`: the named checks.
 * - `run.ts`: lanes of worlds by seed; shrinks what broke and prints it as JSON.
 *
 * A transport is added as one `FaultTransport` value in the list of `transports.ts`. Its
 * programs are plain JSON: a break is printed, kept and replayed as such. A program
 * should mostly be polite, with few faults, so that the load reaches every state.
 */
import type * as fc from "fast-check";
import type { McpEndpoint } from "../../src/mod.ts";

/** One kind of world. */
export interface FaultTransport<Program = any> {
  /** As `--transport` names it. */
  readonly name: string;
  readonly programs: fc.Arbitrary<Program>;
  /** Starts what the program describes; worlds run side by side, so it shares nothing with another. */
  readonly start: (program: Program) => Promise<FaultWorld>;
}

/** A started fault program. Both servers list a tool `echo` that answers its arguments as JSON text, faults apart. */
export interface FaultWorld {
  /** Its server does what the program says. */
  readonly faulty: McpEndpoint;
  /**
   * Healthy throughout, on the same transport kind. Should have a generous `requestTimeout`
   * (10 s), as a crowded machine is no break.
   */
  readonly neighbour: McpEndpoint;
  /** How often a `tools/call` with each `arguments.marker` has reached either server. */
  readonly received: () => ReadonlyMap<string, number>;
  /**
   * What of the runtime is still there, in words: processes, sockets, sessions, streams.
   * Asked when `close()` of the runtime has settled; nothing may be left by then.
   */
  readonly leaks: () => ReadonlyArray<string> | Promise<ReadonlyArray<string>>;
  /** Takes the world down, whatever is left of it. */
  readonly stop: () => Promise<void>;
}
