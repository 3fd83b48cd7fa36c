/**
 * Stores on files, for hosts that run where there are any. Not installed by themselves.
 *
 * ```ts
 * import { createRuntime, ports } from "nucleo-mcp";
 * import { fileArtifactStore, fileTokenStore } from "nucleo-mcp/stores";
 *
 * const runtime = await createRuntime({
 *   setup: (c) => {
 *     c.registerInstance(ports.artifactStore.token, fileArtifactStore({ directory: "/var/lib/my-agent/artifacts" }));
 *     c.registerInstance(ports.tokenStore.token, fileTokenStore({ directory: "/var/lib/my-agent/tokens" }));
 *   },
 * });
 * ```
 */
export { fileArtifactStore, type FileArtifactStoreOptions } from "./plugins/stores/file-artifacts.ts";
export {
  type FilePinStore,
  filePinStore,
  type FilePinStoreOptions,
  type KeptPins,
} from "./plugins/stores/file-pins.ts";
export {
  type FileTokenStore,
  fileTokenStore,
  type FileTokenStoreOptions,
  type KeptToken,
} from "./plugins/stores/file-tokens.ts";
export { fileVerdictStore, type FileVerdictStoreOptions } from "./plugins/stores/file-verdicts.ts";
