/** The credentials a host makes for its endpoints. */
export { AgentSecret, type AgentSecretOptions } from "./agent-secret.ts";
export { AgentSigningKey, type AgentSigningKeyOptions } from "./agent-signing-key.ts";
export { AuthorizationCode, type AuthorizationCodeOptions } from "./authorization-code.ts";
export { BearerToken, type BearerTokenOptions } from "./bearer.ts";
export { DpopBound, type DpopBoundOptions } from "./dpop.ts";
export { EnterpriseManaged, type EnterpriseManagedOptions } from "./enterprise-managed.ts";
export { WorkloadIdentity, type WorkloadAudience, type WorkloadIdentityOptions } from "./workload-identity.ts";
