/** The credential flows that come with the runtime. */
import type { CredentialFlow } from "../../core/contracts.ts";
import { agentSecret } from "./agent-secret.ts";
import { agentSigningKey } from "./agent-signing-key.ts";
import { authorizationCode } from "./authorization-code.ts";
import { bearer } from "./bearer.ts";
import { dpop } from "./dpop.ts";
import { enterpriseManaged } from "./enterprise-managed.ts";
import { workloadIdentity } from "./workload-identity.ts";

/** All of them; what needs cryptography loads it at its first use. */
export const credentialFlowsBuiltins: ReadonlyArray<CredentialFlow> = [
  bearer,
  agentSecret,
  agentSigningKey,
  authorizationCode,
  enterpriseManaged,
  workloadIdentity,
  dpop,
];
