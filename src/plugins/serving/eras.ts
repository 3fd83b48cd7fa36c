/**
 * One connection, any revision: each message goes to the side whose era it is of. A side
 * is opened by its first message, so a client that only speaks one costs one.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import { claimsModern } from "./http-era.ts";
import type { Served } from "./serving.ts";

type OnMessage = NonNullable<Transport["onmessage"]>;
type Extra = Parameters<OnMessage>[1];

export type OpenSide = (transport: Transport) => Promise<Served>;

export interface Sides {
  /** With a session that `initialize` opens. */
  readonly legacy: OpenSide;
  /** With an envelope in every request. */
  readonly modern: OpenSide;
}

/** The connection as one side sees it. */
const sideOf = (wire: Transport): Transport => {
  const side: Transport = {
    start: async () => {},
    send: (message, options) => wire.send(message, options),
    close: async () => side.onclose?.(),
    setProtocolVersion: (version) => wire.setProtocolVersion?.(version),
  };
  if (wire.sessionId !== undefined) side.sessionId = wire.sessionId;
  return side;
};

interface Opened {
  readonly side: Transport;
  readonly served: Promise<Served>;
}

/** Serves a connection; settles when messages can come. */
export const connectEras = async (wire: Transport, sides: Sides): Promise<Served> => {
  const opened = new Map<keyof Sides, Opened>();
  const busy = new Map<keyof Sides, Pick<Served, "busy">>();
  let line: Promise<unknown> = Promise.resolve();

  const eraOf = (message: JSONRPCMessage): keyof Sides => {
    if (claimsModern(message)) return "modern";
    // Only requests need the envelope; a client that never opened a session sends no other notifications.
    const notification = "method" in message && !("id" in message);
    return notification && !opened.has("legacy") && opened.has("modern") ? "modern" : "legacy";
  };

  const open = (era: keyof Sides): Opened => {
    const side = sideOf(wire);
    const made = { side, served: sides[era](side) };
    opened.set(era, made);
    return made;
  };

  const deliver = async (message: JSONRPCMessage, extra: Extra): Promise<void> => {
    const era = eraOf(message);
    const { side, served } = opened.get(era) ?? open(era);
    busy.set(era, await served);
    side.onmessage?.(message, extra);
  };

  const onmessage: OnMessage = (message, extra) => {
    // In the order they came, also while a side is being opened.
    line = line.then(() => deliver(message, extra)).catch(() => {});
  };
  const onerror = (error: Error): void => {
    for (const { side } of opened.values()) side.onerror?.(error);
  };
  const closed = new Promise<void>((resolve) => {
    const onclose = (): void => {
      for (const { side } of opened.values()) side.onclose?.();
      resolve();
    };
    Object.assign(wire, { onmessage, onerror, onclose } satisfies Partial<Transport>);
  });
  await wire.start();
  return {
    closed,
    busy: () => [...busy.values()].reduce((sum, side) => sum + side.busy(), 0),
    close: async () => {
      await Promise.all([...opened.values()].map(async ({ served }) => (await served).close()));
      await wire.close();
    },
  };
};
