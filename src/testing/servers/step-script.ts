/** How the steps of a fault program are taken, on any transport. */
import type { Message } from "./default-answers.ts";
import type { Json, StepsBy } from "./fault-program.ts";

/** Waits, at least for a turn of the event loop; the signal ends it early. */
export const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (ms <= 0 || signal?.aborted) return void setImmediate(resolve);
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal?.addEventListener("abort", done);
  });

/** Puts the request's own values in place of `$id`, `$token` and `$params`. */
export const fill = (value: Json, message: Message): Json => {
  if (value === "$id") return message.id;
  if (value === "$token") return message.params?.["_meta"]?.progressToken;
  if (value === "$params") return message.params;
  if (Array.isArray(value)) return value.map((item) => fill(item, message));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fill(item, message)]));
};

/** Puts the request's id in place of `$id` in a text. */
export const fillText = (text: string, message: Message): string =>
  text.replaceAll("$id", () => JSON.stringify(message.id) ?? "");

export interface Latch {
  readonly opened: Promise<void>;
  readonly open: () => void;
}

/** Latches by key, made when first asked for, by whoever comes first. */
export const makeLatches = (): ((key: string) => Latch) => {
  const latches = new Map<string, Latch>();
  return (key) => {
    let found = latches.get(key);
    if (!found) {
      let open!: () => void;
      const opened = new Promise<void>((resolve) => (open = resolve));
      found = { opened, open };
      latches.set(key, found);
    }
    return found;
  };
};

/** Answers the steps of the next message of that name. */
export const makeTaking = <S>(on: StepsBy<S> = {}): ((name: string) => ReadonlyArray<S> | undefined) => {
  const taken = new Map<string, number>();
  return (name) => {
    const given = Object.hasOwn(on, name) ? on[name] : undefined;
    if (!given || !Array.isArray(given[0])) return given as ReadonlyArray<S> | undefined;
    const count = taken.get(name) ?? 0;
    taken.set(name, count + 1);
    return given[Math.min(count, given.length - 1)] as ReadonlyArray<S>;
  };
};
