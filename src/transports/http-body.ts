/** Reads response bodies: whole texts and event streams, both bounded. */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import { makeParser } from "effect/encoding/Sse";

/** How a body came to its end: `broken` when the connection did, `stopped` when the reader had enough. */
export type BodyEnd = "ended" | "broken" | "stopped";

/**
 * Feeds a body, decoded as UTF-8, to `take` until that answers false. Leaves nothing open.
 *
 * The loop is a plain one, so that the fiber is suspended once: Deno keeps each suspension
 * of a fiber (its async context) as long as the fiber lives, and an event stream lives long.
 */
const pump = (response: Response, take: (text: string, bytes: number) => boolean): Effect.Effect<BodyEnd> =>
  Effect.callback((resume) => {
    const reader = response.body?.getReader() as ReadableStreamDefaultReader<Uint8Array> | undefined;
    if (!reader) return resume(Effect.succeed("ended"));
    const decoder = new TextDecoder();
    let wanted = true;
    const release = (): void => {
      wanted = false;
      void reader.cancel().catch(() => {});
    };
    const run = async (): Promise<BodyEnd> => {
      for (;;) {
        const next = await reader.read().catch(() => undefined);
        if (!wanted) return "stopped";
        if (!next) return "broken";
        const more = take(decoder.decode(next.value, { stream: !next.done }), next.value?.length ?? 0);
        if (next.done) return "ended";
        if (!more) return "stopped";
      }
    };
    run()
      .finally(release)
      .then(
        (end) => resume(Effect.succeed(end)),
        (defect: unknown) => resume(Effect.die(defect)),
      );
    return Effect.sync(release);
  });

/** The media type of a body, without parameters, in lower case. */
export const mediaType = (response: Response): string | undefined =>
  response.headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase() || undefined;

export const isEventStream = (response: Response): boolean => mediaType(response) === "text/event-stream";

/** Lets go of a body nobody reads, so that its connection is free. */
export const discard = (response: Response): Effect.Effect<void> =>
  Effect.sync(() => void response.body?.cancel().catch(() => {}));

export interface BodyText {
  readonly text: string;
  /** `stopped`: the body is larger than the limit, `text` is its beginning. */
  readonly end: BodyEnd;
  /** Bytes read. */
  readonly size: number;
}

/** Reads a text body of at most `limit` bytes. */
export const readText = (response: Response, limit: number): Effect.Effect<BodyText> =>
  Effect.suspend(() => {
    const announced = Number(response.headers.get("content-length") ?? 0);
    const parts: Array<string> = [];
    let size = 0;
    const reading = pump(response, (text, bytes) => {
      parts.push(text);
      size += bytes;
      return size <= limit && announced <= limit;
    });
    return Effect.map(reading, (end) => ({ text: parts.join(""), end, size: Math.max(size, announced) }));
  });

export interface EventReader {
  readonly onEvent: (event: StreamEvent) => void;
  /** The server names the wait before a reconnect, ms. */
  readonly onRetry?: (delay: number) => void;
}

export interface StreamEvent {
  /** `message` when the server named none. */
  readonly event: string;
  /** The last id the stream gave, as a header carries it. */
  readonly id: string | undefined;
  readonly data: string;
}

/** Longer event ids are not sent back: servers refuse long heads. */
const ID_MAX = 4096;

/**
 * An id as `Last-Event-ID` can carry it: the bytes of its UTF-8 (WHATWG HTML 9.2.4). One
 * that holds control characters, or is too long, cannot be sent back: it counts as none.
 */
const sendableId = (id: string | undefined): string | undefined => {
  if (id === undefined || id.length > ID_MAX || /\p{Cc}/u.test(id)) return undefined;
  return /^[ -~]*$/.test(id) ? id : String.fromCharCode(...new TextEncoder().encode(id));
};

/**
 * Reads an event stream (WHATWG HTML 9.2.6) and hands on each event and `retry` field.
 * An event of more than `limit` characters ends the reading with its size. Effect's parser
 * is used because it dispatches an event whose line ends with a CR at once; the parser of
 * the MCP SDK waits for the next character, which may never come.
 */
export const readEvents = (
  response: Response,
  limit: number,
  reader: EventReader,
): Effect.Effect<BodyEnd | { readonly tooLarge: number }> =>
  Effect.suspend(() => {
    let tooLarge = 0;
    let size = 0;
    const parser = makeParser(
      (event) => {
        if (event._tag === "Retry") reader.onRetry?.(Duration.toMillis(event.duration));
        else if (event.data.length > limit) tooLarge = event.data.length;
        else if (tooLarge === 0) reader.onEvent({ ...event, id: sendableId(event.id) });
        size = 0;
      },
      { maxEventSize: limit },
    );
    const reading = pump(response, (text, bytes) => {
      size += bytes;
      if (parser.feed(text)) tooLarge ||= size;
      return tooLarge === 0;
    });
    return Effect.map(reading, (end) => (tooLarge > 0 ? { tooLarge } : end));
  });
