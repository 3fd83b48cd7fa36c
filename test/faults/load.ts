/** What callers do to a runtime, as plain data: generated, shrunk, printed and replayed. */
import * as fc from "fast-check";

/** Times are ms from the start of the action. */
export interface Limits {
  /** Aborts the caller's signal then; 0: it was aborted before. */
  readonly abort?: number | undefined;
  readonly timeout?: number | undefined;
  readonly total?: number | undefined;
  readonly progress?: "listens" | "throws" | undefined;
}

/** One step of a caller; the steps of a caller follow each other. */
export type Action =
  /** A tool call with a marker of its own: by exposed name, on a borrowed client, or by an adapter. */
  | ({ readonly do: "call"; readonly via: "runtime" | "client" | "adapter" } & Limits)
  | { readonly do: "tools"; readonly within?: number | undefined; readonly abort?: number | undefined }
  | ({ readonly do: "list" } & Limits)
  | ({ readonly do: "ping" } & Limits)
  /** Borrows the client and keeps it. */
  | {
      readonly do: "lease";
      readonly hold: number;
      readonly close: "once" | "twice" | "never";
      readonly abort?: number | undefined;
    }
  | { readonly do: "attach"; readonly handle: string }
  | { readonly do: "detach"; readonly handle: string }
  | { readonly do: "pause"; readonly ms: number };

/** How the host answers sampling, elicitation and roots. */
export type HostBehaviour = "none" | "answers" | "throws" | "slow" | "never";

/** Settings of a run, in ms, slots and bytes. Short, so that a run is quick; long where a crowded machine must not matter. */
export interface LoadSettings {
  readonly requestTimeout: number;
  readonly maxTotalTimeout: number;
  readonly breakerCooldown: number;
  readonly minUptime: number;
  readonly idleTimeout: number;
  readonly closeGrace: number;
  readonly shutdownGrace: number;
  readonly messageMax: number;
  readonly listRetry: number;
  readonly stdioEndpointMax: number;
  readonly stdioPoolMax: number;
  readonly stdioProcessMax: number;
  readonly httpPoolMax: number;
}

export interface Load {
  /** Which API the callers use. */
  readonly face: "promise" | "effect";
  readonly settings: LoadSettings;
  readonly resend: "never" | "annotated";
  readonly host: HostBehaviour;
  /** Lists the tools before the callers begin, so that they meet live servers. */
  readonly warm?: boolean | undefined;
  readonly callers: ReadonlyArray<ReadonlyArray<Action>>;
  /** Calls to the neighbour, one after the other beside the callers. */
  readonly neighbourCalls: number;
  /** Closes the runtime then, whoever is at work; else when all callers are done. */
  readonly closeAfter?: number | undefined;
}

/** The same in every run. */
export const fixedSettings = {
  connectTimeout: 5000,
  admissionTimeout: 5000,
  listChangedDebounce: 10,
  stderrTailMax: 1024,
} as const;

/** Mostly undefined, to which it also shrinks: `weight` in four cases the value. */
const now = <A>(value: fc.Arbitrary<A>, weight: number): fc.Arbitrary<A | undefined> =>
  fc.oneof(
    { withCrossShrink: true },
    { weight: 4 - weight, arbitrary: fc.constant(undefined) },
    { weight, arbitrary: value },
  );

const limits = {
  abort: now(fc.constantFrom(0, 1, 5, 20, 60, 150, 400), 1),
  timeout: now(fc.constantFrom(10, 60, 200), 1),
  total: now(fc.constantFrom(50, 300), 1),
  progress: now(fc.constantFrom("listens" as const, "throws" as const), 1),
};
/** Calls by name go to the first; without it they find no tool. */
const handles = fc.oneof(
  { weight: 1, arbitrary: fc.constant("faulty") },
  { weight: 3, arbitrary: fc.constant("other") },
);

const action: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 14,
    arbitrary: fc.record({
      do: fc.constant("call" as const),
      via: fc.constantFrom("runtime" as const, "runtime" as const, "client" as const, "adapter" as const),
      ...limits,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("tools" as const),
      within: now(fc.constantFrom(1, 30, 100), 1),
      abort: limits.abort,
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("list" as const), ...limits }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("ping" as const), ...limits }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("lease" as const),
      hold: fc.constantFrom(0, 20, 100),
      close: fc.constantFrom("once" as const, "twice" as const, "never" as const),
      abort: limits.abort,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("attach" as const), handle: handles }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("detach" as const), handle: handles }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("pause" as const), ms: fc.constantFrom(1, 10, 50, 150) }) },
);

const settings: fc.Arbitrary<LoadSettings> = fc.record({
  requestTimeout: fc.constantFrom(300, 150),
  maxTotalTimeout: fc.constantFrom(3000, 1500),
  breakerCooldown: fc.constantFrom(50, 10, 300),
  minUptime: fc.constantFrom(1, 1, 1, 100, 1000),
  idleTimeout: fc.constantFrom(10_000, 10_000, 1000, 100),
  closeGrace: fc.constantFrom(100, 200),
  shutdownGrace: fc.constantFrom(100, 10, 400),
  messageMax: fc.constantFrom(1_000_000, 65_536),
  listRetry: fc.constantFrom(20, 200),
  stdioEndpointMax: fc.constantFrom(4, 1),
  stdioPoolMax: fc.constantFrom(8, 2),
  stdioProcessMax: fc.constantFrom(8, 2),
  httpPoolMax: fc.constantFrom(8, 2),
});

/**
 * Whoever keeps all process slots for good starves the others, and rightly so: where slots
 * are few, every client is given back.
 */
const givingBack = (load: Load): Load => {
  if (load.settings.stdioProcessMax > 2) return load;
  const callers = load.callers.map((actions) =>
    actions.map((one) => (one.do === "lease" && one.close === "never" ? { ...one, close: "once" as const } : one)),
  );
  return { ...load, callers };
};

const anyLoads: fc.Arbitrary<Load> = fc.record({
  face: fc.constantFrom("promise" as const, "promise" as const, "promise" as const, "effect" as const),
  settings,
  resend: fc.constantFrom("never" as const, "never" as const, "annotated" as const),
  host: fc.constantFrom<HostBehaviour>("answers", "none", "throws", "slow", "never"),
  warm: fc.oneof({ weight: 1, arbitrary: fc.constant(undefined) }, { weight: 3, arbitrary: fc.constant(true) }),
  callers: fc.array(fc.array(action, { minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 6 }),
  neighbourCalls: fc.integer({ min: 0, max: 4 }),
  closeAfter: now(fc.constantFrom(0, 20, 100, 200, 400), 1),
});

export const loads: fc.Arbitrary<Load> = anyLoads.map(givingBack);
