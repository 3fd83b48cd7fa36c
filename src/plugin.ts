/** For plugin authors: the contracts, the ports they register in, the errors they raise, and the base of typed artifacts. */
export type { Answer } from "./core/answer.ts";
export { lift } from "./core/answer.ts";
export { type ArtifactClass, artifactType } from "./core/artifact/alias.ts";
export { Artifact, ListArtifact, typeAlias } from "./core/artifact/artifact.ts";
export type * from "./core/contracts.ts";
export type { PinnedDefinition, PinnedField } from "./core/pinning/fingerprint.ts";
export * from "./core/endpoint.ts";
export * from "./core/errors.ts";
export type { McpEvent } from "./core/events.ts";
export { digest, digestEntries, normalizeUrl } from "./core/identity.ts";
export * as ports from "./core/ports.ts";
export type { McpSettings } from "./core/settings.ts";
