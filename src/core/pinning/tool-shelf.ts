/** The last good list of one server: what is offered, what is left out, and what is held back until approved. */
import * as Effect from "effect/Effect";
import type { Adapter } from "../adapter.ts";
import { isDeep } from "../artifact/json.ts";
import type { PinStore, SchemaNormalizer } from "../contracts.ts";
import { endpointName, type McpEndpoint } from "../endpoint.ts";
import { type AcquireError, type PluginFailed, ToolNotFound, type ToolQuarantined } from "../errors.ts";
import type { McpEventBody } from "../events.ts";
import { withoutSecretParts } from "../identity.ts";
import { buildProviders, type Provider, type SkippedTool } from "../provider.ts";
import { definitionOf } from "./fingerprint.ts";
import { type QuarantinedTool, quarantineError, quarantineReason } from "./quarantine.ts";
import { makeToolPins, type ToolPins } from "./tool-pins.ts";

/** A usable tool that is held back. */
export interface HeldTool {
  readonly provider: Provider;
  readonly quarantined: QuarantinedTool;
}

type EventOf<Type> = Omit<Extract<McpEventBody, { type: Type }>, "handle" | "endpointId" | "server">;

export interface ToolShelfDeps {
  readonly handle: string;
  readonly endpoint: McpEndpoint;
  readonly pinStore: PinStore;
  readonly schemaNormalizers: ReadonlyArray<SchemaNormalizer>;
  readonly createAdapter: (provider: Provider) => Effect.Effect<Adapter, AcquireError>;
  /** The tools offered are others now. */
  readonly onListed: () => void;
  readonly onDiagnostic: (message: string) => void;
  readonly publish: (event: EventOf<"tool.quarantined"> | EventOf<"tools.released">) => void;
}

/** `fill`, `review` and `approve` must not run at the same time. */
export interface ToolShelf {
  /** Takes a list. The very list it has already changes nothing. */
  readonly fill: (items: ReadonlyArray<unknown>) => Effect.Effect<void>;
  /** Compares the list at hand with what is approved by now. */
  readonly review: Effect.Effect<void>;
  readonly approve: (
    tool: string | QuarantinedTool | undefined,
  ) => Effect.Effect<ReadonlyArray<string>, ToolNotFound | ToolQuarantined | PluginFailed>;
  readonly offered: () => ReadonlyArray<Provider>;
  readonly skipped: () => ReadonlyArray<SkippedTool>;
  readonly held: () => ReadonlyArray<HeldTool>;
  readonly filled: () => boolean;
  readonly pin: () => void;
  readonly pinned: () => boolean;
  /** True when a review may say something else than the last one. */
  readonly unsettled: () => boolean;
}

/** What a pin is kept under: one handle and one server, whatever secrets it is used with. */
export const pinKey = (handle: string, endpoint: McpEndpoint): string =>
  JSON.stringify([handle, withoutSecretParts(endpoint.endpointId)]);

export const makeToolShelf = (deps: ToolShelfDeps): ToolShelf => {
  const { handle, endpoint } = deps;
  let items: ReadonlyArray<unknown> | undefined;
  let usable: ReadonlyArray<Provider> = [];
  let unusable: ReadonlyArray<SkippedTool> = [];
  let offered: ReadonlyArray<Provider> = [];
  /** The usable tools that were divided last. */
  let divided: ReadonlyArray<Provider> | undefined;
  /** By the server's own name. */
  let held: ReadonlyMap<string, HeldTool> = new Map();
  let pins: ToolPins | undefined;

  const quarantine = (): ReadonlyArray<QuarantinedTool> => [...held.values()].map(({ quarantined }) => quarantined);

  /** An adapter made before its tool was held back calls it no more. */
  const guarded = (provider: Provider): Effect.Effect<Adapter, AcquireError> =>
    Effect.map(deps.createAdapter(provider), (adapter) => ({
      ...adapter,
      execute: (input, options) =>
        Effect.suspend(() => {
          const now = held.get(provider.tool);
          return now
            ? Effect.fail(quarantineError(provider.name, endpointName(endpoint), now.quarantined))
            : adapter.execute(input, options);
        }),
    }));

  /** Divides the usable tools, and tells of what was held back or released by it. */
  const divide = (found: ReadonlyArray<QuarantinedTool>, by: "approval" | "review"): void => {
    const before = held;
    const wasHeld = ({ tool, digest, change }: QuarantinedTool): boolean => {
      const then = before.get(tool)?.quarantined;
      return then?.digest === digest && then.change === change;
    };
    if (divided === usable && found.length === before.size && found.every(wasHeld)) return;
    divided = usable;
    const byTool = new Map(found.map((one) => [one.tool, one]));
    offered = usable.filter(({ tool }) => !byTool.has(tool));
    held = new Map(
      usable.flatMap((provider) => {
        const quarantined = byTool.get(provider.tool);
        return quarantined ? [[provider.tool, { provider, quarantined }]] : [];
      }),
    );
    deps.onListed();
    for (const one of found) {
      if (wasHeld(one)) continue;
      const { tool, change, fields, digest } = one;
      deps.publish({ type: "tool.quarantined", tool, change, fields, digest });
      deps.onDiagnostic(`tool '${tool}' is held back: ${quarantineReason(one)}`);
    }
    const tools = offered.map(({ tool }) => tool).filter((tool) => before.has(tool));
    if (tools.length > 0) deps.publish({ type: "tools.released", tools, by });
  };

  const reviewAfter = (by: "approval" | "review"): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (!pins) return Effect.sync(() => divide([], by));
      return Effect.map(pins.review(usable.map(({ raw }) => raw)), ({ quarantine: found, first }) => {
        divide(found, by);
        const tools = offered.map(({ tool }) => tool);
        if (first) deps.publish({ type: "tools.released", tools, by: "first-use" });
      });
    });

  const build = (listed: ReadonlyArray<unknown>): void => {
    const create = pins ? guarded : deps.createAdapter;
    const built = buildProviders(listed, handle, endpoint, deps.schemaNormalizers, create);
    const tooDeep = new Set(pins ? built.providers.filter(({ raw }) => isDeep(definitionOf(raw))) : []);
    usable = built.providers.filter((provider) => !tooDeep.has(provider));
    const reason = "it is nested too deep to be pinned";
    unusable = [...built.skipped, ...[...tooDeep].map(({ tool }) => ({ tool, reason }))];
    for (const { tool, reason } of unusable) deps.onDiagnostic(`tool '${tool}' is left out: ${reason}`);
  };

  /** The quarantined tools meant, as they are offered now. */
  const chosen = (
    wanted: string | QuarantinedTool | undefined,
  ): ReadonlyArray<QuarantinedTool> | ToolNotFound | ToolQuarantined => {
    if (wanted === undefined) return quarantine();
    const name = typeof wanted === "string" ? wanted : wanted.tool;
    const found = held.get(name)?.quarantined;
    if (!found && offered.some(({ tool }) => tool === name)) return [];
    if (!found) return new ToolNotFound({ tool: name, similar: [...held.keys()].slice(0, 5) });
    if (typeof wanted === "string" || wanted.digest === found.digest) return [found];
    return quarantineError(name, endpointName(endpoint), found);
  };

  return {
    fill: (listed) =>
      Effect.suspend(() => {
        if (listed === items && !pins?.unsettled()) return Effect.void;
        if (listed !== items) build(listed);
        return Effect.map(reviewAfter("review"), () => void (items = listed));
      }),
    review: reviewAfter("review"),
    approve: (wanted) =>
      Effect.gen(function* () {
        const tools = chosen(wanted);
        if (tools instanceof Error) return yield* tools;
        if (!pins || tools.length === 0) return [];
        yield* pins.approve(tools);
        yield* reviewAfter("approval");
        return tools.map(({ tool }) => tool);
      }),
    offered: () => offered,
    skipped: () => [...unusable, ...quarantine().map((one) => ({ tool: one.tool, reason: quarantineReason(one) }))],
    held: () => [...held.values()],
    filled: () => items !== undefined,
    pinned: () => pins !== undefined,
    unsettled: () => pins?.unsettled() === true,
    pin: () => {
      if (pins) return;
      pins = makeToolPins(pinKey(handle, endpoint), deps.pinStore, deps.onDiagnostic);
      // What was listed before was not compared with anything: it is listed anew.
      items = undefined;
      usable = offered = [];
      unusable = [];
      held = new Map();
      deps.onListed();
    },
  };
};
