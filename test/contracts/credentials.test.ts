import { afterAll, beforeAll } from "@effect/vitest";
import * as Jose from "jose";
import { AgentSecret, agentSecret } from "../../src/plugins/credentials/agent-secret.ts";
import { AgentSigningKey, agentSigningKey } from "../../src/plugins/credentials/agent-signing-key.ts";
import { AuthorizationCode, authorizationCode } from "../../src/plugins/credentials/authorization-code.ts";
import { BearerToken, bearer } from "../../src/plugins/credentials/bearer.ts";
import { DpopBound, dpop } from "../../src/plugins/credentials/dpop.ts";
import { EnterpriseManaged, enterpriseManaged } from "../../src/plugins/credentials/enterprise-managed.ts";
import { WorkloadIdentity, workloadIdentity } from "../../src/plugins/credentials/workload-identity.ts";
import { credentialFlowContract } from "../../src/testing.ts";
import { type OAuthWorld, startOAuth } from "../../src/testing/servers/oauth.ts";
import { person } from "../support/oauth-login.ts";
import { checkSuite } from "./check-suite.ts";

const secret = "c0ntract-s3cret-value";
let world: OAuthWorld;
let company: OAuthWorld;
beforeAll(async () => {
  world = await startOAuth({ token: ({ dpop: proof }) => (proof === undefined ? {} : { token_type: "DPoP" }) });
});
beforeAll(async () => {
  const grant = { access_token: "the-id-jag", issued_token_type: "urn:ietf:params:oauth:token-type:id-jag" };
  company = await startOAuth({ token: () => ({ ...grant, token_type: "N_A" }) });
});
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await company[Symbol.asyncDispose]();
});
const url = (): string => world.url;
const secrets = [secret];
let clients = 0;
const clientId = (): string => `agent-${++clients}`;

checkSuite(
  "bearer",
  credentialFlowContract({
    flow: bearer,
    credential: () => {
      world.accepted.add(secret);
      return new BearerToken({ token: secret });
    },
    url,
    secrets,
  }),
);

const withSecret = () => new AgentSecret({ clientId: clientId(), clientSecret: secret });
checkSuite("agent secret", credentialFlowContract({ flow: agentSecret, credential: withSecret, url, secrets }));
checkSuite(
  "DPoP over an agent secret",
  credentialFlowContract({ flow: dpop, credential: () => new DpopBound({ credential: withSecret() }), url, secrets }),
);

checkSuite(
  "agent signing key",
  credentialFlowContract({
    flow: agentSigningKey,
    credential: async () => {
      const { privateKey } = await Jose.generateKeyPair("ES256", { extractable: true });
      return new AgentSigningKey({ clientId: clientId(), privateKey: await Jose.exportJWK(privateKey) });
    },
    url,
  }),
);

checkSuite(
  "workload identity",
  credentialFlowContract({
    flow: workloadIdentity,
    credential: () => new WorkloadIdentity({ user: clientId(), token: async () => secret }),
    url,
    secrets,
  }),
);

checkSuite(
  "authorization code",
  credentialFlowContract({
    flow: authorizationCode,
    credential: () =>
      new AuthorizationCode({ clientId: "app", clientSecret: secret, user: clientId(), ...person().host }),
    url,
    secrets,
  }),
);

checkSuite(
  "enterprise-managed",
  credentialFlowContract({
    flow: enterpriseManaged,
    credential: () =>
      new EnterpriseManaged({
        user: clientId(),
        clientId: "robot",
        clientSecret: secret,
        identityProvider: { issuer: company.issuer, clientId: "robot" },
        subjectToken: () => secret,
      }),
    url,
    secrets,
  }),
);
