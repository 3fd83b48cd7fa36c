/** The one list of built-in plugins. A host's plugin of the same kind replaces one. */
import type { Builtins } from "./core/bridge.ts";
import * as Ports from "./core/ports.ts";
import { credentialFlowsBuiltins } from "./plugins/credentials/builtins.ts";
import { mcpJsonLoader } from "./plugins/endpoints/mcp-json.ts";
import { schemaValidator } from "./plugins/schemas/validator.ts";
import { legacyEngine } from "./plugins/engines/legacy.ts";
import { modernEngine } from "./plugins/engines/modern.ts";
import { inlineRefs } from "./plugins/schemas/inline-refs.ts";
import { artifactRehydrator } from "./plugins/rehydrators/artifact.ts";
import { ResultWalker } from "./plugins/results/walker.ts";
import { httpTransport } from "./transports/http.ts";
import { inMemoryTransport } from "./transports/in-memory.ts";
import { stdioTransport } from "./transports/stdio.ts";
import { websocketTransport } from "./transports/websocket.ts";

/** Built-ins by port; each loads what it needs when it is first used. */
export const defaults: Builtins = new Map<string, unknown>([
  [Ports.transports.name, [stdioTransport, httpTransport, websocketTransport, inMemoryTransport]],
  [Ports.credentialFlows.name, credentialFlowsBuiltins],
  [Ports.engines.name, [legacyEngine, modernEngine]],
  [Ports.resultNormalizer.name, new ResultWalker()],
  [Ports.artifactRehydrators.name, [artifactRehydrator]],
  [Ports.schemaNormalizers.name, [inlineRefs]],
  [Ports.schemaValidator.name, schemaValidator],
  [Ports.endpointLoaders.name, [mcpJsonLoader]],
]);
