/** How many subprocesses may live, and who makes room for one more. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { type GateState, makeAdmission } from "../admission/admission.ts";
import type { Overloaded, RuntimeClosed } from "../errors.ts";
import type { McpSettings } from "../settings.ts";
import type { EndpointRecord } from "./endpoint-record.ts";

/** Gate of live subprocesses; not part of any call's demand. */
const PROCESSES = "mcp:stdio-processes";

export interface ProcessSlots {
  /** A slot for the scope. The longest idle subprocess makes room; else waits, at most `connectTimeout`. */
  readonly slot: Effect.Effect<() => void, Overloaded | RuntimeClosed, Scope.Scope>;
  /** Somebody waits for a slot: the next client that falls idle should go. */
  readonly wanted: () => boolean;
  readonly gates: () => ReadonlyArray<GateState>;
  readonly close: () => void;
}

export const makeProcessSlots = (
  settings: McpSettings,
  records: () => ReadonlyArray<EndpointRecord>,
  evict: (endpointId: string) => Effect.Effect<void>,
): ProcessSlots => {
  const admission = makeAdmission({ queueMax: settings.admissionQueueMax, timeout: settings.connectTimeout });
  admission.ensureGate(PROCESSES, settings.stdioProcessMax);
  const full = (): boolean => admission.gates().every((gate) => gate.used >= gate.capacity);

  const makeRoom = Effect.suspend(() => {
    if (!full()) return Effect.void;
    const idle = records().filter((record) => record.plugin.subprocess && record.lease?.users() === 0);
    const oldest = idle.toSorted((a, b) => a.lastActivity - b.lastActivity)[0];
    return oldest ? evict(oldest.endpointId) : Effect.void;
  });
  const grant = Effect.acquireRelease(admission.grant(new Map([[PROCESSES, 1]])), (release) => Effect.sync(release), {
    interruptible: true,
  });
  return {
    slot: Effect.andThen(makeRoom, grant),
    wanted: () => admission.gates().some((gate) => gate.waiting > 0),
    gates: admission.gates,
    close: admission.close,
  };
};
