/**
 * Contract suites: what every plugin of a kind has to do, as cases for any test runner.
 *
 * ```ts
 * import { it } from "node:test";
 * import { transportContract } from "nucleo-mcp/testing";
 *
 * for (const { name, run } of transportContract({ plugin, endpoint: () => new MyEndpoint() })) it(name, run);
 * ```
 *
 * A case rejects with `ContractBreach`, which says what the plugin did instead. The
 * built-in plugins pass the same suites.
 */
export { artifactTypeContract, type ArtifactTypeContractOptions } from "./testing/artifact-type.ts";
export { ContractBreach, type ContractCase, type ContractSuite } from "./testing/contract-case.ts";
export { credentialFlowContract, type CredentialFlowContractOptions } from "./testing/credential-flow.ts";
export { endpointLoaderContract, type EndpointLoaderContractOptions } from "./testing/endpoint-loader.ts";
export { engineContract, type EngineContractOptions } from "./testing/engine.ts";
export {
  catalogPolicyContract,
  type CatalogPolicyContractOptions,
  errorPresenterContract,
  type ErrorPresenterContractOptions,
  hostHandlersContract,
  type HostHandlersContractOptions,
} from "./testing/host.ts";
export { observerContract, type ObserverContractOptions } from "./testing/observer.ts";
export { pinStoreContract, type PinStoreContractOptions } from "./testing/pin-store.ts";
export {
  artifactRehydratorContract,
  type ArtifactRehydratorContractOptions,
  resultNormalizerContract,
  type ResultNormalizerContractOptions,
} from "./testing/results.ts";
export {
  schemaNormalizerContract,
  type SchemaNormalizerContractOptions,
  schemaValidatorContract,
  type SchemaValidatorContractOptions,
} from "./testing/schemas.ts";
export {
  artifactStoreContract,
  type ArtifactStoreContractOptions,
  tokenStoreContract,
  type TokenStoreContractOptions,
  verdictStoreContract,
  type VerdictStoreContractOptions,
} from "./testing/stores.ts";
export { type ContractRequest, transportContract, type TransportContractOptions } from "./testing/transport.ts";

// Servers that misbehave as told. They are real: processes and sockets on loopback.
export { readLog, scriptedStdio, type ScriptedStdioOptions } from "./testing/servers/stdio.ts";
export type {
  ActingStep,
  AnsweringStep,
  Drip,
  Json,
  ServerDescription,
  StepsBy,
} from "./testing/servers/fault-program.ts";
export type { Grandchild, LogLine, ProcessStep, StdioProgram, Step } from "./testing/servers/stdio-program.ts";
export type { EventFields, HttpOnlyStep, HttpProgram, HttpStep } from "./testing/servers/http-program.ts";
export {
  type EventWriter,
  type HttpExchange,
  type HttpHandler,
  type RecordedRequest,
  type ScriptedHttp,
  startScriptedHttp,
} from "./testing/servers/http.ts";
export type { McpBehaviour } from "./testing/servers/http-mcp.ts";
export {
  type Form,
  type OAuthScript,
  type OAuthWorld,
  startOAuth,
  type TokenRequest,
} from "./testing/servers/oauth.ts";
