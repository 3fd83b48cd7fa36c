/** The contract of `Observer`. */
import type { Observer } from "../core/contracts.ts";
import { ConnectionLost } from "../core/errors.ts";
import type { McpEvent } from "../core/events.ts";
import { answerOf, type ContractSuite, demand, frozen } from "./contract-case.ts";

export interface ObserverContractOptions {
  readonly observer: Observer;
  /** All that the observer wrote so far. Where given, none of it may hold arguments, results or params. */
  readonly written?: () => string;
}

const secret = "c0ntract-s3cret";
const at = { at: 1_700_000_000_000, endpointId: "contract:endpoint", server: "contract" };
const lost = new ConnectionLost({ server: "contract", outcome: "unknown", reason: "it died" });

/** One event of every kind. */
const events: ReadonlyArray<McpEvent> = [
  { type: "attached", handle: "contract", ...at },
  { type: "connect.start", ...at },
  { type: "connect.ready", era: "legacy", protocolVersion: "2025-11-25", pid: 1, ...at },
  { type: "connect.failed", error: lost, ...at },
  { type: "circuit.open", retryAt: at.at + 1000, ...at },
  { type: "call.start", tool: "contract__echo", ...at },
  { type: "call.end", tool: "contract__echo", duration: 5, outcome: "success", ...at },
  { type: "call.end", tool: "contract__echo", duration: 5, outcome: "tool-error", ...at },
  { type: "call.end", tool: "contract__echo", duration: 5, outcome: "failure", error: lost, ...at },
  { type: "call.end", tool: "contract__echo", duration: 5, outcome: "cancelled", ...at },
  { type: "notification", method: "notifications/message", params: { data: secret }, ...at },
  { type: "diagnostic", message: "skipped a line", ...at },
  { type: "disconnected", error: lost, ...at },
  { type: "disconnected", error: undefined, ...at },
  { type: "evicted", reason: "idle", ...at },
  { type: "detached", handle: "contract", ...at },
];

/** Cases every observer has to pass. */
export const observerContract = ({ observer, written }: ObserverContractOptions): ContractSuite => [
  {
    name: "takes an event of every kind, and settles",
    run: async () => {
      for (const event of events) await answerOf(`on(${event.type})`, () => observer.on(frozen({ ...event })));
    },
  },
  {
    name: "takes a thousand events in a row, and writes down no params of notifications",
    run: async () => {
      const [event] = events.filter(({ type }) => type === "notification");
      for (let i = 0; i < 1000; i++) await answerOf("on(notification)", () => observer.on(event!));
      demand(written?.().includes(secret) !== true, "it writes down the params of a notification");
    },
  },
];
