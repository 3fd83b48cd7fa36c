/** Shows a person on a terminal that something takes its time, and how long already. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import type { TextStream } from "./output.ts";

export interface Spinner {
  /** Runs the effect; shows the label when it takes longer than 300 ms. The label may change meanwhile. */
  readonly during: <A, E, R>(label: string | (() => string), effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>;
}

const patience = 300;
const interval = 100;
const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const clear = "\r\u001B[2K";

const seconds = (ms: number): string => (ms < 10_000 ? (ms / 1000).toFixed(1) : String(Math.round(ms / 1000)));

/** Does nothing unless `active`: on a terminal, and not among log lines. */
export const makeSpinner = (stream: TextStream, active: boolean): Spinner => {
  if (!active) return { during: (_label, effect) => effect };

  const draw = (label: string | (() => string), startedAt: number): Effect.Effect<void> => {
    let frame = 0;
    const one = Effect.map(Clock.currentTimeMillis, (now) => {
      const text = (typeof label === "string" ? label : label()).replace(/\s+/g, " ");
      const time = ` ${seconds(now - startedAt)} s`;
      const room = Math.max(10, (stream.columns || 80) - time.length - 3);
      stream.write(`${clear}${frames[frame++ % frames.length]} ${text.slice(0, room)}${time}`);
    });
    return Effect.andThen(
      Effect.sleep(patience),
      Effect.forever(Effect.andThen(one, Effect.sleep(interval))),
    ) as Effect.Effect<void>;
  };

  return {
    during: (label, effect) =>
      Effect.flatMap(Clock.currentTimeMillis, (startedAt) =>
        Effect.acquireUseRelease(
          // Forked as interruptible: a finalizer, where closing is shown, is not.
          Effect.forkChild(Effect.interruptible(draw(label, startedAt))),
          () => effect,
          (drawing) =>
            Effect.andThen(
              Fiber.interrupt(drawing),
              Effect.map(Clock.currentTimeMillis, (now) => {
                if (now - startedAt >= patience) stream.write(clear);
              }),
            ),
        ),
      ),
  };
};
