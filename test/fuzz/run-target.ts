/** Plays scripts on a target until enough messages were sent, or something broke. */
import * as fc from "fast-check";
import { Broken, demand, type Target, turn, type World } from "./target.ts";

export interface RunOptions {
  readonly seed: number;
  /** Messages to send. */
  readonly messages: number;
  /** Plays this one script again, as a break named it. */
  readonly path?: string | undefined;
  readonly onProgress?: ((messages: number) => void) | undefined;
}

export interface Break {
  readonly seed: number;
  readonly path: string;
  readonly script: unknown;
  readonly error: unknown;
}

export interface Outcome {
  readonly name: string;
  readonly messages: number;
  readonly elapsed: number;
  /** Growth of the heap from an early point to the end, bytes. */
  readonly growth: number;
  readonly broken?: Break;
}

/** A script that takes longer than this hangs, ms. */
const scriptMax = 20_000;
/** Scripts between two looks at the clock and the heap. */
const runsPerCheck = 20;
/** More growth than this is a leak, bytes. */
const growthMax = 256 * 1024 * 1024;

/** Faults that nobody caught; a host would end by them. */
const uncaught: Array<unknown> = [];
let listening = false;
const listen = (): void => {
  if (listening) return;
  listening = true;
  for (const event of ["unhandledRejection", "uncaughtException"] as const)
    process.on(event as "uncaughtException", (cause: unknown) => void uncaught.push(cause));
};

const within = async (work: Promise<void>): Promise<void> => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Broken(`it did not end within ${scriptMax} ms`)), scriptMax);
  });
  await Promise.race([work, late]).finally(() => clearTimeout(timer));
};

const heap = (): number => {
  (globalThis as { gc?: () => void }).gc?.();
  return process.memoryUsage().heapUsed;
};

export const runTarget = async (target: Target, options: RunOptions): Promise<Outcome> => {
  listen();
  const startedAt = performance.now();
  const { scriptsPerWorld = 100 } = target;
  let world: World<unknown> | undefined;
  let fed = 0;
  let messages = 0;
  let early: number | undefined;

  const close = async (): Promise<void> => {
    const ended = world;
    world = undefined;
    if (ended) await within(ended.close());
  };

  const play = async (script: unknown): Promise<void> => {
    messages += target.count(script);
    try {
      if (fed++ % scriptsPerWorld === 0) await close();
      world ??= await target.open();
      await within(world.feed(script));
      await turn();
      const cause = uncaught.shift();
      demand(!("polluted" in {}), "all objects have a property that a message named");
      if (cause !== undefined) throw cause instanceof Error ? cause : new Broken(`uncaught: ${String(cause)}`);
    } catch (error) {
      uncaught.length = 0;
      // The next script must not find what this one left behind.
      const left = world;
      world = undefined;
      await left?.close().catch(() => {});
      throw error;
    }
  };

  /** The one part of a script that breaks the target by itself, where there is one: fast-check keeps what follows it. */
  const alone = async (script: unknown): Promise<unknown> => {
    for (const part of Array.isArray(script) && script.length > 1 ? script : [])
      if (
        await play([part]).then(
          () => false,
          () => true,
        )
      )
        return [part];
    return script;
  };

  const property = fc.asyncProperty(target.script, play);
  const ended = (broken?: Break): Outcome => ({
    name: target.name,
    messages,
    elapsed: performance.now() - startedAt,
    growth: heap() - (early ?? heap()),
    ...(broken && { broken }),
  });

  for (let seed = options.seed; messages < options.messages; seed++) {
    const path = options.path === undefined ? {} : { path: options.path, numRuns: 1 };
    const details = await fc.check(property, {
      seed,
      numRuns: runsPerCheck,
      interruptAfterTimeLimit: 120_000,
      markInterruptAsFailure: false,
      ...path,
    });
    options.onProgress?.(messages);
    if (details.failed) {
      const { counterexample, counterexamplePath, errorInstance } = details;
      const script = await alone(counterexample?.[0]);
      return ended({ seed, path: counterexamplePath ?? "", script, error: errorInstance });
    }
    if (options.path !== undefined) break;
    if (early === undefined && messages > options.messages / 5) early = heap();
  }
  await close();
  const outcome = ended();
  if (outcome.growth <= growthMax) return outcome;
  const error = new Broken(`the heap grew by ${outcome.growth} bytes`);
  return { ...outcome, broken: { seed: options.seed, path: "", script: undefined, error } };
};
