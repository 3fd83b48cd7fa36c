/**
 * A program that is its own user: it proves itself to an authorization server with a private
 * key, and calls a protected MCP server. Both servers are started here, on loopback; of the
 * key pair only the public half is known to the authorization server.
 */
import { exportPKCS8, generateKeyPair } from "jose";
import { AgentSigningKey, createRuntime, HttpEndpoint, TokenEndpointFailed } from "../src/mod.ts";
import { startAuthorizationServer, startProtectedServer } from "./support/protected-server.ts";

const check = (held: boolean, what: string): void => {
  if (!held) throw new Error(`this did not hold: ${what}`);
  console.log(`ok: ${what}`);
};

const { privateKey, publicKey } = await generateKeyPair("ES256", { extractable: true });
await using authorization = await startAuthorizationServer({ clientId: "report-agent", publicKey });
await using server = await startProtectedServer(authorization);
await using runtime = await createRuntime();

const credential = new AgentSigningKey({
  clientId: "report-agent",
  privateKey: await exportPKCS8(privateKey),
  issuer: authorization.issuer,
  scope: "reports:read",
});
const endpoint = new HttpEndpoint({ name: "reports", url: server.url, credential });
await runtime.attach("reports", endpoint);
check(endpoint.endpointId.endsWith("#as:report-agent"), `the endpoint stands for one identity: ${endpoint.endpointId}`);

const whoami = () => runtime.callTool({ tool: "reports__whoami", arguments: {} });
const results = await Promise.all(Array.from({ length: 10 }, whoami));
check(
  results.every(({ textContent }) => textContent === "report-agent may reports:read"),
  "ten calls at once are let in as report-agent, with the scope reports:read",
);
check(authorization.tokensIssued() === 1, "they share one token");

server.revokeTokens();
await Promise.all(Array.from({ length: 10 }, whoami));
check(authorization.tokensIssued() === 2, "revoked, it is replaced once for ten calls, and all go through");

const stranger = new AgentSigningKey({
  clientId: "report-agent",
  user: "stranger",
  privateKey: await exportPKCS8((await generateKeyPair("ES256", { extractable: true })).privateKey),
});
const refusal: unknown = await runtime
  .client(new HttpEndpoint({ name: "reports", url: server.url, credential: stranger }))
  .catch((error: unknown) => error);
check(refusal instanceof TokenEndpointFailed && refusal.error === "invalid_client", "another key gets no token:");
console.log(`    ${(refusal as TokenEndpointFailed).message}`);
