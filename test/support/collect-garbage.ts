/** Asks the runtime to collect garbage now. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type Bun = { readonly gc: (force: boolean) => void };

const make = (): (() => void) => {
  const { gc, Bun } = globalThis as { readonly gc?: () => void; readonly Bun?: Bun };
  if (gc) return gc;
  if (Bun) return () => Bun.gc(true);
  setFlagsFromString("--expose_gc");
  return runInNewContext("gc") as () => void;
};

export const collectGarbage: () => void = make();

/** How many of the objects that `make` answers are still held by somebody, once nobody here holds them. */
export const survivors = async (count: number, make: (index: number) => Promise<object>): Promise<number> => {
  const refs: Array<WeakRef<object>> = [];
  for (let index = 0; index < count; index++) refs.push(new WeakRef(await make(index)));
  // An object that a WeakRef was made of lives to the end of the turn.
  for (let round = 0; round < 3; round++) {
    await new Promise((resolve) => setImmediate(resolve));
    collectGarbage();
  }
  return refs.filter((ref) => ref.deref() !== undefined).length;
};
