/** What fault programs of every transport are made of. */
import * as fc from "fast-check";

export const oneOf = <A>(values: ReadonlyArray<A>): fc.Arbitrary<A> => fc.constantFrom(...values);

/** Keeps out what is undefined, as JSON does. */
export const asJson = <A>(value: A): A => JSON.parse(JSON.stringify(value)) as A;

export const echoTool = { name: "echo", description: "Answers its arguments.", inputSchema: { type: "object" } };

/** Short waits, and one beyond every request timeout. */
export const wait: fc.Arbitrary<number> = fc.constantFrom(0, 1, 10, 50, 150, 500);

export const drip: fc.Arbitrary<{ readonly size: number; readonly delay: number }> = fc.record({
  size: fc.constantFrom(1, 7, 64, 4096),
  delay: fc.constantFrom(0, 0, 5),
});

/** JSON of the wrong shape. */
export const oddities: ReadonlyArray<unknown> = [
  null,
  [],
  {},
  "text",
  5,
  true,
  { content: "no list" },
  { content: [null, 5] },
];

export const oddIds: ReadonlyArray<unknown> = ["text", null, 999_999, -1, 0, 1, 2, 3, 1.5, {}, []];

/** Invalid UTF-8, a lone continuation byte, NULs, a byte order mark. */
export const bytes: ReadonlyArray<string> = ["/////w==", "gAo=", "AAAAAA==", "77u/Cg==", "wwo=", "eyJ4IjoiwyJ9Cg=="];

export const form = { message: "Who?", requestedSchema: { type: "object", properties: { name: { type: "string" } } } };

/** What one request gets: what disturbs it, an answer or the default one, and perhaps something after it. */
export const handlingOf = <S>(disturbance: fc.Arbitrary<S>, answer: fc.Arbitrary<S>): fc.Arbitrary<ReadonlyArray<S>> =>
  fc
    .tuple(
      fc.array(disturbance, { maxLength: 2 }),
      fc.array(answer, { maxLength: 2 }),
      fc.oneof(
        { weight: 3, arbitrary: fc.constant<ReadonlyArray<S>>([]) },
        { weight: 1, arbitrary: fc.array(disturbance, { maxLength: 2 }) },
      ),
    )
    .map((parts) => parts.flat());
