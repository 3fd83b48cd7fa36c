/** For plugin authors: the contracts, the ports they register in, and the errors they raise. */
export type { Answer } from "./core/answer.ts";
export { lift } from "./core/answer.ts";
export type * from "./core/contracts.ts";
export * from "./core/endpoint.ts";
export * from "./core/errors.ts";
export type { McpEvent } from "./core/events.ts";
export { digest, digestEntries, normalizeUrl } from "./core/identity.ts";
export * as ports from "./core/ports.ts";
export type { McpSettings } from "./core/settings.ts";
