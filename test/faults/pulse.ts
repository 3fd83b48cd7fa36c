/**
 * Time as the host's own event loop lives it, ms: while a crowded machine gives the
 * process no turn, it stands still. So a bound that passes is the fault of the code, and a
 * loop that the code itself kept busy shows as `blocked`.
 */
import process from "node:process";

const step = 25;
/** A turn that took the process this much of the processor, ms, is no accident. */
const longestTurn = 2000;

let now = 0;
let turnBegan = performance.now();
let used = process.cpuUsage();
const blocked: Array<string> = [];

const beat = (): void => {
  now += step;
  const busy = process.cpuUsage(used);
  const waited = performance.now() - turnBegan;
  const spent = (busy.user + busy.system) / 1000;
  if (waited > longestTurn && spent > longestTurn)
    blocked.push(`the event loop stood still for ${Math.round(waited)} ms, ${Math.round(spent)} ms of them at work`);
  used = process.cpuUsage();
  turnBegan = performance.now();
};
let timer: ReturnType<typeof setInterval> | undefined;

export const pulse = {
  /** Starts with the first question. */
  now: (): number => {
    timer ??= setInterval(beat, step);
    timer.unref?.();
    return now;
  },
  /** What kept the loop busy since the last time. */
  blocked: (): ReadonlyArray<string> => blocked.splice(0),
};
