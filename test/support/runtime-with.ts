/** A runtime over the scripted transport and engine, for tests of the core. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import type { McpEvent } from "../../src/core/events.ts";
import {
  type InvalidConfig,
  make,
  type McpRuntime,
  type PluginFailed,
  ports,
  type RuntimeOptions,
} from "../../src/effect.ts";
import { scriptedEngine, scriptedTransport } from "./scripted-endpoint.ts";

export interface ScriptedRuntimeOptions extends RuntimeOptions {
  /** Collects every event. */
  readonly events?: Array<McpEvent>;
}

export const runtimeWith = (
  options: ScriptedRuntimeOptions = {},
): Effect.Effect<McpRuntime, PluginFailed | InvalidConfig, Scope.Scope> =>
  make({
    ...options,
    setup: (container) => {
      container.registerInstance(ports.transports.token, scriptedTransport());
      container.registerInstance(ports.engines.token, scriptedEngine);
      if (options.events) {
        container.registerInstance(ports.observers.token, {
          on: (event: McpEvent) => void options.events?.push(event),
        });
      }
      options.setup?.(container);
    },
  });

/** Lets fibers and promises that are ready run, without any time of the clock passing. */
export const settle: Effect.Effect<void> = Effect.andThen(
  Effect.promise(async () => {
    for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  }),
  TestClock.adjust(0),
);
