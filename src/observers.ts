/**
 * Observers that come with the package and are not installed by themselves.
 *
 * ```ts
 * import { createRuntime, ports } from "nucleo-mcp";
 * import { loggerObserver } from "nucleo-mcp/observers";
 *
 * const runtime = await createRuntime({ setup: (c) => c.registerInstance(ports.observers.token, loggerObserver) });
 * ```
 */
export { loggerObserver } from "./plugins/observers/logger.ts";
export { metricsObserver } from "./plugins/observers/metrics.ts";
