/** Event streams whose fields are mutated: names, ids, waits, data, comments, line ends. */
import * as fc from "fast-check";
import { wireText } from "./bytes.ts";

export interface SseEvent {
  readonly end: string;
  readonly fields: ReadonlyArray<string>;
  readonly data: string;
  /** How the data is written: as one line, or split over lines. */
  readonly lines: number;
  readonly closed: boolean;
}

const field = fc.constantFrom(
  "event: message",
  "event: endpoint",
  "event: error",
  "event:",
  "event",
  "event:  message",
  "Event: message",
  "event: message\u0000",
  "id: 1",
  "id: 2",
  "id:",
  "id",
  "id: \u0000",
  "id: \ud800",
  `id: ${"x".repeat(3000)}`,
  "retry: 1",
  "retry: 0",
  "retry: 999999999999999999999",
  "retry: -1",
  "retry: 1.5",
  "retry: abc",
  "retry:",
  ": keep-alive",
  ":",
  "data:",
  "data",
  "data: x",
  "data: {",
  "\ufeffdata: x",
  "foo: bar",
  " data: x",
);

/** An event with the given data, and what may stand around it. */
export const sseEvent: fc.Arbitrary<Omit<SseEvent, "data">> = fc.record({
  end: fc.oneof({ weight: 4, arbitrary: fc.constant("\n") }, { weight: 1, arbitrary: fc.constantFrom("\r", "\r\n") }),
  fields: fc.array(field, { maxLength: 3, size: "max" }),
  lines: fc.oneof({ weight: 6, arbitrary: fc.constant(1) }, { weight: 1, arbitrary: fc.integer({ min: 2, max: 5 }) }),
  closed: fc.oneof({ weight: 15, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
});

const cutInto = (text: string, count: number): ReadonlyArray<string> => {
  const length = Math.ceil(text.length / count) || 1;
  return Array.from({ length: count }, (_, i) => text.slice(i * length, (i + 1) * length));
};

export const sseText = (event: Omit<SseEvent, "data">, message: unknown): string => {
  const lines = [...event.fields, ...cutInto(wireText(message), event.lines).map((line) => `data: ${line}`)];
  return lines.join(event.end) + event.end + (event.closed ? event.end : "");
};
