/** Timers of housekeeping: they alone keep no process running. */

type Timer = ReturnType<typeof setTimeout>;

/** Node and Bun let go of the process; elsewhere a timer is a number, and there is nothing to let go. */
const inBackground = (timer: Timer): Timer => {
  (timer as { unref?: () => void }).unref?.();
  return timer;
};

/** Calls `work` once after `ms`. */
export const later = (ms: number, work: () => void): Timer => inBackground(setTimeout(work, ms));

/** Calls `work` every `ms`, until the timer is cleared. */
export const every = (ms: number, work: () => void): Timer => inBackground(setInterval(work, ms));
