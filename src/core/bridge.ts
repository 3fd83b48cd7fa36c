/**
 * Container to Effect, one way, read once when the runtime is built. The container
 * says what is installed; the Effect context says what is running. The container
 * disposes of nothing: scopes do.
 */
import "reflect-metadata";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import { container as rootContainer, type DependencyContainer } from "tsyringe";
import { isRecord } from "./artifact/json.ts";
import { PluginFailed } from "./errors.ts";
import { verbFaults } from "./plugin-verbs.ts";
import { type ListPort, listPorts, type Port, singlePorts } from "./ports.ts";

export type { DependencyContainer };

/** The built-in plugins: for list ports a list, for single ports a value, keyed by port name. */
export type Builtins = ReadonlyMap<string, unknown>;

export interface InstallOptions {
  /** Registers plugins in a container of the runtime's own. */
  readonly setup?: ((container: DependencyContainer) => void) | undefined;
  /** The host's own container; read once, never disposed of. */
  readonly container?: DependencyContainer | undefined;
}

const fromContainer = (
  container: DependencyContainer,
  token: symbol,
  faults: Array<string>,
): ReadonlyArray<unknown> => {
  if (!container.isRegistered(token, true)) return [];
  try {
    return container.resolveAll<unknown>(token);
  } catch (cause) {
    faults.push(`${String(token.description)}: the container cannot build it: ${String(cause)}`);
    return [];
  }
};

const duplicates = (keys: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(keys.filter((key, i) => keys.indexOf(key) !== i)),
];

const mergeList = (
  port: ListPort<unknown>,
  hosts: ReadonlyArray<unknown>,
  builtins: ReadonlyArray<unknown>,
  faults: Array<string>,
): ReadonlyArray<unknown> => {
  const { keyOf } = port;
  for (const plugin of hosts) {
    const key = isRecord(plugin) ? keyOf?.(plugin) : undefined;
    const who = typeof key === "string" && key !== "" ? `'${key}'` : "a plugin";
    faults.push(...verbFaults(port, plugin).map((fault) => `${port.name}: ${who} ${fault}`));
  }
  if (!keyOf) return [...builtins, ...hosts];
  const keys: Array<string> = [];
  for (const plugin of hosts) {
    const key = (isRecord(plugin) ? keyOf(plugin) : undefined) as unknown;
    if (typeof key === "string" && key !== "") keys.push(key);
    else faults.push(`${port.name}: a plugin has no kind or name; give it one`);
  }
  for (const key of duplicates(keys)) {
    faults.push(`${port.name}: '${key}' is registered more than once; remove one or give it another kind`);
  }
  return [...builtins.filter((plugin) => !keys.includes(keyOf(plugin))), ...hosts];
};

/**
 * What is installed, as an Effect context holding every port. A host's plugin wins
 * over a built-in of the same kind. Fails once, naming every fault and its fix.
 */
export const install = (
  options: InstallOptions,
  builtins: Builtins,
): Effect.Effect<Context.Context<never>, PluginFailed> =>
  Effect.gen(function* () {
    const outer = yield* Effect.context<never>();
    const container = options.container ?? rootContainer.createChildContainer();
    const faults: Array<string> = [];
    try {
      options.setup?.(container);
    } catch (cause) {
      faults.push(`setup threw: ${cause instanceof Error ? cause.message : String(cause)}`);
    }
    let context = Context.empty() as Context.Context<never>;
    const put = (port: Port<any>, value: unknown): void => {
      context = Context.add(context, port.service, value) as Context.Context<never>;
    };
    for (const port of listPorts) {
      const hosts = [...Context.get(outer, port.service), ...fromContainer(container, port.token, faults)];
      put(port, mergeList(port, hosts, (builtins.get(port.name) as ReadonlyArray<unknown>) ?? [], faults));
    }
    for (const port of singlePorts) {
      const hosts = fromContainer(container, port.token, faults);
      if (hosts.length > 1) faults.push(`${port.name}: ${hosts.length} plugins are registered; keep one`);
      const given = Context.getOrUndefined(outer, port.service);
      const provided = outer.mapUnsafe.has(port.service.key) ? given : undefined;
      for (const plugin of hosts.length === 0 && provided !== undefined ? [provided] : hosts)
        faults.push(...verbFaults(port, plugin).map((fault) => `${port.name}: the plugin ${fault}`));
      const value = hosts[0] ?? provided ?? builtins.get(port.name);
      if (value !== undefined) put(port, value);
    }
    if (faults.length > 0) return yield* new PluginFailed({ plugin: "registration", reason: faults.join("; ") });
    return context;
  });
