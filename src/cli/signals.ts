/** What signals do to a run. */
import type * as Fiber from "effect/Fiber";

const signals = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
type Signal = keyof typeof signals;

/**
 * The first signal interrupts the fiber: the running call is cancelled, the server
 * told, every process ended. The second one exits at once. Answers the exit code that
 * a shell expects after a signal, undefined as long as there was none.
 */
export const interruptOnSignal = (fiber: Fiber.Fiber<unknown, unknown>): (() => number | undefined) => {
  let received: Signal | undefined;
  const code = (): number | undefined => (received === undefined ? undefined : 128 + signals[received]);
  for (const signal of Object.keys(signals) as Array<Signal>) {
    process.on(signal, () => {
      if (received !== undefined) process.exit(code());
      received = signal;
      fiber.interruptUnsafe();
    });
  }
  return code;
};
