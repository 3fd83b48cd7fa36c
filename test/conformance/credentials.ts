/** The credentials of the public API. */
export type { Credential } from "../../src/mod.ts";
export { AgentSecret } from "../../src/plugins/credentials/agent-secret.ts";
export { AgentSigningKey } from "../../src/plugins/credentials/agent-signing-key.ts";
export { AuthorizationCode, type AuthorizationCodeOptions } from "../../src/plugins/credentials/authorization-code.ts";
export { credentialFlowsBuiltins } from "../../src/plugins/credentials/builtins.ts";
export { DpopBound } from "../../src/plugins/credentials/dpop.ts";
export { EnterpriseManaged } from "../../src/plugins/credentials/enterprise-managed.ts";
export { WorkloadIdentity } from "../../src/plugins/credentials/workload-identity.ts";
