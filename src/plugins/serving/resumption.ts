/**
 * Lets a client that lost the stream of a response come back for the rest, as MCP
 * 2025-11-25 asks (basic/transports, "Resumability and Redelivery"): a lost stream is no
 * cancellation. Its call goes on for `within`; then nobody can want it any more.
 */
import type { EventStore } from "@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js";
import { isRecord, sizeWithin } from "../../core/artifact/json.ts";
import { later } from "./background-timer.ts";

type Message = Parameters<EventStore["storeEvent"]>[1];

interface Stream {
  readonly events: Array<{
    readonly id: string;
    readonly at: number;
    readonly message: Message;
    readonly size: number;
  }>;
  /** Grows with every connection that reads the stream: only the last one's end counts. */
  reader: number;
  /** Ends the call. */
  lost: () => void;
  expiry?: ReturnType<typeof setTimeout> | undefined;
}

export interface Resumption {
  readonly events: EventStore;
  /** The stream that an event id belongs to, while it can be resumed. */
  readonly streamOf: (eventId: string) => string | undefined;
  /** What is left of a stream whose answer is there, as an event stream's text; undefined while it is not. */
  readonly rest: (eventId: string) => string | undefined;
  /**
   * Notes a reader of an event's stream; answers what to call when its connection ends. The
   * first reader says what to do when nobody came back in time.
   */
  readonly reads: (eventId: string, lost?: () => void) => (givenUp: boolean) => void;
  readonly close: () => void;
}

/** Events that one session keeps, and bytes as JSON: beyond, the oldest stream can no longer be resumed. */
const eventsMax = 1_000;
const bytesMax = 4 * 1024 * 1024;
const depthMax = 10_000;
/** The SDK's name of the stream that belongs to no request: it never ends, so its oldest events go first. */
const standing = "_GET_stream";

const isAnswer = (message: Message): boolean => isRecord(message) && ("result" in message || "error" in message);
const numberOf = (eventId: string): number => Number(eventId.slice(eventId.lastIndexOf("~") + 1));

export const makeResumption = (within: number): Resumption => {
  const streams = new Map<string, Stream>();
  let last = 0;
  let count = 0;
  let bytes = 0;

  const release = (dropped: Stream["events"]): void => {
    count -= dropped.length;
    for (const { size } of dropped) bytes -= size;
  };
  const forget = (streamId: string): void => {
    const stream = streams.get(streamId);
    if (!stream) return;
    clearTimeout(stream.expiry);
    streams.delete(streamId);
    release(stream.events);
  };
  const isFull = (): boolean => count > eventsMax || bytes > bytesMax;
  const trim = (): void => {
    while (isFull()) {
      const [oldest] = [...streams].filter(([, { events }]) => events.length > 0);
      if (!oldest) return;
      if (oldest[0] === standing) release(oldest[1].events.splice(0, 1));
      else forget(oldest[0]);
    }
  };
  const streamOf = (eventId: string): string | undefined => {
    const streamId = eventId.slice(0, eventId.lastIndexOf("~"));
    return streams.has(streamId) ? streamId : undefined;
  };
  const after = (eventId: string): Stream["events"] =>
    (streams.get(streamOf(eventId) ?? "")?.events ?? []).filter(({ at }) => at > numberOf(eventId));

  return {
    streamOf,
    events: {
      storeEvent: async (streamId, message) => {
        const id = `${streamId}~${++last}`;
        // The first event of a response is empty and opens its stream. What was forgotten stays so.
        const opens = !isRecord(message) || Object.keys(message).length === 0;
        const stream = streams.get(streamId) ?? { events: [], reader: 0, lost: () => {} };
        if (opens || streamId === standing) streams.set(streamId, stream);
        if (opens || !streams.has(streamId)) return id;
        const size = sizeWithin(message, bytesMax, depthMax) ?? bytesMax + 1;
        stream.events.push({ id, at: last, message, size });
        count++;
        bytes += size;
        trim();
        return id;
      },
      replayEventsAfter: async (eventId, { send }) => {
        for (const { id, message } of after(eventId)) await send(id, message);
        return streamOf(eventId) ?? "";
      },
    },
    rest: (eventId) => {
      const events = after(eventId);
      if (!events.some(({ message }) => isAnswer(message))) return undefined;
      return events
        .map(({ id, message }) => `id: ${id}\nevent: message\ndata: ${JSON.stringify(message)}\n\n`)
        .join("");
    },
    reads: (eventId, lost = () => {}) => {
      const streamId = streamOf(eventId);
      const stream = streamId === undefined ? undefined : streams.get(streamId);
      if (!stream || streamId === undefined) return (givenUp) => void (givenUp && lost());
      const reader = ++stream.reader;
      if (reader === 1) stream.lost = lost;
      clearTimeout(stream.expiry);
      return (givenUp) => {
        if (stream.reader !== reader || streamId === standing) return;
        if (streams.get(streamId) !== stream) return void (givenUp && stream.lost());
        // Also when all was written: what a connection took is not what the client got.
        stream.expiry = later(within, () => {
          forget(streamId);
          stream.lost();
        });
      };
    },
    close: () => {
      for (const streamId of streams.keys()) forget(streamId);
    },
  };
};
