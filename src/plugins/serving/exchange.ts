/** One request of a client and what belongs to it, whatever revision the client speaks. */
import { isRecord } from "../../core/artifact/json.ts";
import type { Progress } from "../../core/contracts.ts";
import type { Wire } from "./wire.ts";

/** Asks the client; rejects when it does not support the method, or when the signal aborts. */
export type Ask = (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>;

export interface Exchange {
  /** Whose part of a server's places the request takes. */
  readonly client: object;
  /** Who may be asked while the request runs. Two requests share it only where they certainly come from one client. */
  readonly asker: object;
  /** Aborted when the client cancels or goes away. */
  readonly signal: AbortSignal;
  /** Undefined when the client wants to hear of none. */
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly ask: Ask;
  /** Passes a server's log message on, where the client wants its level. */
  readonly log: (params: Wire) => void;
  /** Settles when all progress has been sent, so that none comes after the answer. */
  readonly flush: () => Promise<unknown>;
}

/** Whether a client with these capabilities answers a server's question. */
export const supports = (capabilities: unknown, method: string, params: unknown): boolean => {
  const { sampling, elicitation } = isRecord(capabilities) ? capabilities : {};
  if (method === "sampling/createMessage") return sampling !== undefined;
  if (method !== "elicitation/create" || elicitation === undefined) return false;
  const { form, url } = isRecord(elicitation) ? elicitation : {};
  if (isRecord(params) && params["mode"] === "url") return url !== undefined;
  // Before 2025-11-25 the capability had no parts and meant forms.
  return form !== undefined || url === undefined;
};
