/**
 * What was approved of one server. The first list with a tool in it is approved as it is
 * (trust on first use); after that, what changed or is new is held back until it is
 * approved. What is gone stays approved, and may come back unchanged.
 *
 * A store that cannot be read approves nothing: every tool is held back. One that cannot
 * be written costs nothing now: the first list then holds until the runtime closes.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Result from "effect/Result";
import { lift } from "../answer.ts";
import { isRecord } from "../artifact/json.ts";
import type { PinStore, ToolPin } from "../contracts.ts";
import { PluginFailed } from "../errors.ts";
import { changedFields, definitionOf, fingerprint, type PinnedDefinition } from "./fingerprint.ts";
import type { QuarantinedTool } from "./quarantine.ts";

type Pins = ReadonlyMap<string, ToolPin>;

/** A listed tool with its fingerprint. */
interface Offer {
  readonly tool: string;
  readonly digest: string;
  readonly definition: PinnedDefinition;
}

export interface Review {
  readonly quarantine: ReadonlyArray<QuarantinedTool>;
  /** True when this list was approved as the first one. */
  readonly first: boolean;
}

export interface ToolPins {
  /** Tells which of the listed tools are held back. Never fails. */
  readonly review: (tools: ReadonlyArray<Readonly<Record<string, unknown>>>) => Effect.Effect<Review>;
  /** Approves tools as they are offered in these entries. Fails when it cannot be kept; nothing is approved then. */
  readonly approve: (tools: ReadonlyArray<QuarantinedTool>) => Effect.Effect<void, PluginFailed>;
  /** True while another review of the same list may say something else: the store is to be asked again. */
  readonly unsettled: () => boolean;
}

const byTool = (kept: unknown): Pins | undefined | PluginFailed => {
  if (kept === undefined) return undefined;
  const usable = (pin: Partial<ToolPin> | null): boolean =>
    typeof pin?.tool === "string" && typeof pin.digest === "string" && isRecord(pin.definition);
  if (Array.isArray(kept) && kept.every(usable))
    return new Map((kept as ReadonlyArray<ToolPin>).map((pin) => [pin.tool, pin]));
  return new PluginFailed({ plugin: "pinStore", reason: "it answers something else than pins" });
};

const pinOf = ({ tool, digest, definition }: Offer, approvedAt: number): ToolPin => ({
  tool,
  digest,
  approvedAt,
  definition,
});

const compare = (pins: Pins | undefined, offers: ReadonlyArray<Offer>): ReadonlyArray<QuarantinedTool> =>
  offers.flatMap(({ tool, digest, definition: offered }): ReadonlyArray<QuarantinedTool> => {
    const held = { tool, digest, offered };
    if (!pins) return [{ ...held, change: "unknown", fields: [], approved: undefined }];
    const pin = pins.get(tool);
    if (!pin) return [{ ...held, change: "new", fields: [], approved: undefined }];
    if (pin.digest === digest) return [];
    return [{ ...held, change: "changed", fields: changedFields(pin.definition, offered), approved: pin.definition }];
  });

export const makeToolPins = (key: string, store: PinStore, onDiagnostic: (message: string) => void): ToolPins => {
  /** Undefined until the store was read, or the first list approved. */
  let pins: Pins | undefined;
  /** True while the store lacks what was approved. */
  let unsaved = false;
  /** True while tools are held back: somebody else may have approved them in the store. */
  let waiting = false;
  let told = "";

  /** A store that goes on failing is told of once. */
  const diagnose = (message: string): void => {
    if (message !== told) onDiagnostic(message);
    told = message;
  };

  const load: Effect.Effect<Pins | undefined, PluginFailed> = Effect.flatMap(
    lift<unknown>("pinStore", () => store.load(key) as never),
    (kept) => {
      const read = byTool(kept);
      return read instanceof PluginFailed ? Effect.fail(read) : Effect.succeed(read);
    },
  ) as Effect.Effect<Pins | undefined, PluginFailed>;
  const save = (next: Pins): Effect.Effect<void, PluginFailed> =>
    lift("pinStore", () => store.save(key, [...next.values()]) as never);

  /** Keeps what was approved; what fails is tried again with the next list. */
  const keep = (next: Pins): Effect.Effect<void> =>
    Effect.match(save(next), {
      onSuccess: () => void (unsaved = false),
      onFailure: ({ reason }) => {
        unsaved = true;
        diagnose(`the approval of its tools could not be kept, and ends with this runtime: ${reason}`);
      },
    });

  const review: ToolPins["review"] = (tools) =>
    Effect.gen(function* () {
      const offers = tools.map((tool): Offer => {
        const definition = definitionOf(tool);
        return { tool: String(tool["name"]), digest: fingerprint(definition), definition };
      });
      if (!pins || waiting) {
        const loaded = yield* Effect.result(load);
        if (Result.isFailure(loaded)) {
          diagnose(`what was approved of its tools could not be read: ${loaded.failure.reason}`);
          waiting = true;
          return { quarantine: compare(pins, offers), first: false };
        }
        pins = loaded.success ?? pins ?? new Map();
      }
      const first = pins.size === 0 && offers.length > 0;
      if (first) {
        const now = yield* Clock.currentTimeMillis;
        pins = new Map(offers.map((offer) => [offer.tool, pinOf(offer, now)]));
      }
      if (first || unsaved) yield* keep(pins);
      const quarantine = compare(pins, offers);
      waiting = quarantine.length > 0;
      return { quarantine, first };
    });

  return {
    review,
    unsettled: () => waiting || unsaved,
    approve: (tools) =>
      Effect.gen(function* () {
        // Another process may have approved others meanwhile.
        const kept = yield* load;
        const now = yield* Clock.currentTimeMillis;
        const next = new Map(kept ?? pins);
        for (const { tool, digest, offered } of tools)
          next.set(tool, pinOf({ tool, digest, definition: offered }, now));
        yield* save(next);
        pins = next;
        unsaved = false;
      }),
  };
};

/** Keeps pins as long as the runtime lives. */
export const memoryPinStore = (): PinStore => {
  const kept = new Map<string, ReadonlyArray<ToolPin>>();
  return {
    load: (key) => kept.get(key),
    save: (key, pins) => void kept.set(key, pins),
  };
};
