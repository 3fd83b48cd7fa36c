/**
 * The client that the official referee judges: `client.ts <server URL>`, with the scenario
 * in the environment. It uses nucleo-mcp as a host would, and nothing else.
 */
import {
  AgentSecret,
  AgentSigningKey,
  AuthorizationCode,
  type AuthorizationCodeOptions,
  createRuntime,
  type Credential,
  DpopBound,
  EnterpriseManaged,
  HttpEndpoint,
  type McpClient,
  type McpTool,
  ports,
  WorkloadIdentity,
} from "../../src/mod.ts";
import { loadSkill } from "./skills.ts";

type Json = Record<string, any>;

const scenario = process.env["MCP_CONFORMANCE_SCENARIO"] ?? "";
const given: Json = JSON.parse(process.env["MCP_CONFORMANCE_CONTEXT"] ?? "{}");
const url = process.argv.at(-1)!;

/** A browser and a person in one: follows the login page's redirect and reports where it leads. */
const login = (options: Partial<AuthorizationCodeOptions> = {}): AuthorizationCode => {
  let arrived!: (url: string) => void;
  return new AuthorizationCode({
    redirectUri: "http://127.0.0.1:3118/callback",
    receiveRedirect: () => new Promise((resolve) => (arrived = resolve)),
    openBrowser: async (page) => {
      const response = await fetch(page, { redirect: "manual" });
      arrived(response.headers.get("location") ?? "");
    },
    ...options,
  });
};

const credentialOf = (name: string): Credential | undefined => {
  const { client_id: clientId, client_secret: clientSecret } = given;
  switch (name) {
    case "auth/client-credentials-basic":
      return new AgentSecret({ clientId, clientSecret });
    case "auth/client-credentials-jwt":
      return new AgentSigningKey({
        clientId,
        privateKey: given["private_key_pem"],
        algorithm: given["signing_algorithm"],
      });
    case "auth/enterprise-managed-authorization":
      return new EnterpriseManaged({
        clientId,
        clientSecret,
        user: "conformance",
        identityProvider: {
          issuer: given["idp_issuer"],
          tokenEndpoint: given["idp_token_endpoint"],
          clientId: given["idp_client_id"],
        },
        subjectToken: () => given["idp_id_token"],
      });
    case "auth/wif-jwt-bearer":
      return new WorkloadIdentity({ clientId, token: () => given["valid_jwt"] });
    case "auth/dpop":
    case "auth/dpop-nonce":
      return new DpopBound({ credential: login() });
    case "auth/pre-registration":
      return login({ clientId, clientSecret, issuer: given["issuer"] });
    default:
      return name.startsWith("auth/")
        ? login({ clientMetadataUrl: "https://conformance-test.local/client-metadata.json" })
        : undefined;
  }
};

/** Arguments that fit the tool: the scenario's own, or a value for each required property. */
const argumentsFor = (tool: McpTool): Json => {
  const schema = (tool.inputSchema ?? {}) as Json;
  const values: Json = { number: 2, integer: 2, string: "text", boolean: true, object: {}, array: [] };
  const required: ReadonlyArray<string> = schema["required"] ?? [];
  return Object.fromEntries(required.map((name) => [name, values[schema["properties"]?.[name]?.type] ?? null]));
};

/** Uses all that the server offers, as a curious host would. */
const explore = async (client: McpClient): Promise<void> => {
  const tools = await client.listTools();
  const calls: ReadonlyArray<Json> =
    given["toolCalls"] ?? tools.map((tool) => ({ name: tool.name, arguments: argumentsFor(tool) }));
  for (const call of calls) await client.callTool(call["name"], call["arguments"]);
  for (const { uri } of await client.listResources()) await client.readResource(uri as string);
  for (const { name } of await client.listPrompts()) await client.getPrompt(name as string);
};

/** Sends a schema back as it came. */
const echoSchema = async (client: McpClient): Promise<void> => {
  const tools = await client.listTools();
  const focal = tools.find((tool) => tool.name !== "json_schema_echo");
  await client.callTool("json_schema_echo", { schema: focal?.inputSchema });
};

const run = (client: McpClient): Promise<unknown> => {
  if (scenario === "json-schema-2020-12-preservation") return echoSchema(client);
  if (scenario === "json-schema-ref-no-deref") return client.listTools();
  if (scenario === "sep-2640-client-no-prefetch") return client.request("skills/list");
  if (scenario.startsWith("sep-2640-")) return loadSkill(client);
  return explore(client);
};

await using runtime = await createRuntime({
  // The referee's patience counts, not that of a busy machine.
  settings: { connectTimeout: "50 seconds", requestTimeout: "50 seconds" },
  setup: (container) => {
    container.registerInstance(ports.hostHandlers.token, {
      elicitation: { form: () => ({ action: "accept", content: {} }) },
      sampling: () => ({ role: "assistant", model: "none", content: { type: "text", text: "hello" } }),
      roots: () => [{ uri: "file:///" }],
    });
  },
});
await using client = await runtime.client(new HttpEndpoint({ url, credential: credentialOf(scenario) }));
await run(client);
