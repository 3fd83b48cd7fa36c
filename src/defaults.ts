/** The one list of built-in plugins. A host's plugin of the same kind replaces one. */
import type { Builtins } from "./core/bridge.ts";
import * as Ports from "./core/ports.ts";
import { schemaValidator } from "./plugins/schemas/validator.ts";
import { legacyEngine } from "./plugins/engines/legacy.ts";
import { inlineRefs } from "./plugins/schemas/inline-refs.ts";
import { inMemoryTransport } from "./transports/in-memory.ts";
import { websocketTransport } from "./transports/websocket.ts";

/** Built-ins by port; each loads what it needs when it is first used. */
export const defaults: Builtins = new Map<string, unknown>([
  [Ports.transports.name, [inMemoryTransport, websocketTransport]],
  [Ports.engines.name, [legacyEngine]],
  [Ports.schemaNormalizers.name, [inlineRefs]],
  [Ports.schemaValidator.name, schemaValidator],
]);
