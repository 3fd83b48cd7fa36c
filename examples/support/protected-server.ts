/** An authorization server that knows one client by its public key, and an MCP server that takes only its tokens. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { type CryptoKey, generateKeyPair, jwtVerify, SignJWT } from "jose";

const listen = async (handle: (origin: string) => RequestListener): Promise<{ origin: string; server: Server }> => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.on("request", handle(origin));
  return { origin, server };
};

const close = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
};

export interface AuthorizationServer extends AsyncDisposable {
  readonly issuer: string;
  readonly tokensIssued: () => number;
  /** The claims of an access token for this resource; rejects when it is none. */
  readonly verify: (token: string, resource: string) => Promise<{ subject: string; scope: string; id: string }>;
}

/** OAuth 2.1 client credentials with private_key_jwt, for one client. */
export const startAuthorizationServer = async (client: {
  readonly clientId: string;
  readonly publicKey: CryptoKey;
}): Promise<AuthorizationServer> => {
  const own = await generateKeyPair("ES256");
  let issued = 0;
  const { origin: issuer, server } = await listen((origin) => async (request, response) => {
    const json = (status: number, value: unknown): void => {
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(value));
    };
    if (request.url === "/.well-known/oauth-authorization-server") {
      return json(200, {
        issuer: origin,
        token_endpoint: `${origin}/token`,
        token_endpoint_auth_methods_supported: ["private_key_jwt"],
        token_endpoint_auth_signing_alg_values_supported: ["ES256"],
        grant_types_supported: ["client_credentials"],
      });
    }
    if (request.url !== "/token") return json(404, {});
    const form = new URLSearchParams(await bodyOf(request));
    try {
      const { clientId } = client;
      const options = { issuer: clientId, subject: clientId, audience: origin };
      await jwtVerify(form.get("client_assertion") ?? "", client.publicKey, options);
    } catch {
      return json(401, { error: "invalid_client", error_description: "the assertion is not signed by this client" });
    }
    issued += 1;
    const token = await new SignJWT({ scope: form.get("scope") ?? "", jti: crypto.randomUUID() })
      .setProtectedHeader({ alg: "ES256", typ: "at+jwt" })
      .setIssuer(origin)
      .setSubject(client.clientId)
      .setAudience(form.get("resource") ?? "")
      .setExpirationTime("5 minutes")
      .sign(own.privateKey);
    json(200, { access_token: token, token_type: "Bearer", expires_in: 300 });
  });
  return {
    issuer,
    tokensIssued: () => issued,
    verify: async (token, resource) => {
      const { payload } = await jwtVerify(token, own.publicKey, { issuer, audience: resource });
      return { subject: payload.sub ?? "", scope: String(payload["scope"]), id: payload.jti ?? "" };
    },
    [Symbol.asyncDispose]: () => close(server),
  };
};

export interface ProtectedServer extends AsyncDisposable {
  readonly url: string;
  /** From now on no token given so far is good. */
  readonly revokeTokens: () => void;
}

/** An MCP server with one tool, `whoami`, behind that authorization server. */
export const startProtectedServer = async (authorization: AuthorizationServer): Promise<ProtectedServer> => {
  const seen = new Set<string>();
  let revoked = new Set<string>();
  const { origin, server } = await listen((origin_) => async (request, response) => {
    const resource = `${origin_}/mcp`;
    const metadata = `${origin_}/.well-known/oauth-protected-resource/mcp`;
    if (`${origin_}${request.url}` === metadata) {
      const document = { resource, authorization_servers: [authorization.issuer] };
      return void response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(document));
    }
    const token = request.headers.authorization?.replace(/^Bearer /, "") ?? "";
    const claims = await authorization.verify(token, resource).catch(() => undefined);
    if (!claims || revoked.has(claims.id)) {
      const challenge = `Bearer ${token ? 'error="invalid_token", ' : ""}resource_metadata="${metadata}"`;
      return void response.writeHead(401, { "WWW-Authenticate": challenge }).end();
    }
    seen.add(claims.id);
    const mcp = new McpServer({ name: "reports", version: "1.0.0" });
    mcp.registerTool("whoami", { description: "Says whose token it is" }, () => ({
      content: [{ type: "text", text: `${claims.subject} may ${claims.scope}` }],
    }));
    const transport = new StreamableHTTPServerTransport({ enableJsonResponse: true });
    // The SDK's transport does not fit its own interface under exactOptionalPropertyTypes.
    await mcp.connect(transport as Parameters<McpServer["connect"]>[0]);
    response.once("close", () => void mcp.close());
    await transport.handleRequest(request, response);
  });
  return {
    url: `${origin}/mcp`,
    revokeTokens: () => {
      revoked = new Set(seen);
    },
    [Symbol.asyncDispose]: () => close(server),
  };
};
