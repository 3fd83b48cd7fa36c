/** How a client becomes known to an authorization server: beforehand, by its own document, or by registering (RFC 7591). */
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { InvalidEndpoint, type McpError, TokenEndpointFailed } from "../../core/errors.ts";
import type { Grant } from "./oauth-credential.ts";
import { post } from "./token-endpoint.ts";
import type { RegisteredClient } from "./token-set.ts";
import { isNative, isSecure, sameIssuer, shown } from "./url-rules.ts";

export interface ClientDescription {
  /** Known beforehand. */
  readonly clientId: string | undefined;
  readonly clientSecret: Redacted.Redacted<string> | undefined;
  readonly method: string | undefined;
  /** https URL of the client id metadata document. */
  readonly metadataUrl: string | undefined;
  /** Sent when registering, over the defaults. */
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly redirectUri: string;
}

export const fault = (field: string, reason: string, fix: string): InvalidEndpoint =>
  new InvalidEndpoint({ field: `credential.${field}`, reason, fix });

/** What is wrong with a description; the redirect URI matters where somebody may log in. */
export const faultOf = (
  { metadataUrl, redirectUri }: ClientDescription,
  login: boolean,
): InvalidEndpoint | undefined => {
  if (login && (!URL.canParse(redirectUri) || (!isSecure(redirectUri) && !isNative(redirectUri))))
    return fault("redirectUri", "is no https, loopback or application URL", "Give the one receiveRedirect listens on.");
  const document = metadataUrl !== undefined && URL.canParse(metadataUrl) ? new URL(metadataUrl) : undefined;
  if (metadataUrl !== undefined && (document?.protocol !== "https:" || document.pathname === "/"))
    return fault("clientMetadataUrl", "is no https URL with a path", "Give the URL of the metadata document.");
  return undefined;
};

const register = (
  grant: Grant,
  client: ClientDescription,
  endpoint: string,
): Effect.Effect<RegisteredClient, McpError> =>
  Effect.gen(function* () {
    const { issuer, token_endpoint_auth_methods_supported: methods } = grant.discovered.authorizationServer;
    const { redirectUri } = client;
    const document = yield* post({ ...grant, binding: undefined }, endpoint, {
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        client_name: "nucleo-mcp",
        redirect_uris: [redirectUri],
        grant_types: ["authorization_code", "refresh_token"],
        response_types: ["code"],
        token_endpoint_auth_method: !methods || methods.includes("none") ? "none" : methods[0],
        application_type: isNative(redirectUri) ? "native" : "web",
        ...(grant.scope === undefined ? {} : { scope: grant.scope }),
        ...client.metadata,
      }),
    });
    const { client_id: clientId, client_secret: secret, token_endpoint_auth_method: method } = document;
    if (typeof clientId !== "string" || clientId === "") {
      const reason = "its answer to the registration holds no client_id";
      const fields = { server: grant.server, tokenEndpoint: shown(endpoint), reason, retryable: false };
      return yield* new TokenEndpointFailed(fields);
    }
    return {
      issuer,
      clientId,
      clientSecret: typeof secret === "string" && secret !== "" ? Redacted.make(secret) : undefined,
      method: typeof method === "string" ? method : undefined,
      redirectUri,
    };
  });

/** The client that was registered beforehand. */
export const ownClient = (grant: Grant, client: ClientDescription): RegisteredClient | undefined => {
  const { clientId, clientSecret, method, redirectUri } = client;
  const { issuer } = grant.discovered.authorizationServer;
  return clientId === undefined ? undefined : { issuer, clientId, clientSecret, method, redirectUri };
};

/**
 * The client for a login at the discovered authorization server. One that was registered on
 * the way is used again only at the issuer and for the redirect URI it was registered with.
 */
export const clientFor = (
  grant: Grant,
  client: ClientDescription,
  known: RegisteredClient | undefined,
): Effect.Effect<RegisteredClient, McpError> => {
  const server = grant.discovered.authorizationServer;
  const { issuer } = server;
  const { metadataUrl, redirectUri } = client;
  const own = ownClient(grant, client);
  if (own) return Effect.succeed(own);
  if (metadataUrl !== undefined && server.client_id_metadata_document_supported)
    return Effect.succeed({ issuer, clientId: metadataUrl, clientSecret: undefined, method: "none", redirectUri });
  if (known && sameIssuer(known.issuer, issuer) && known.redirectUri === redirectUri) return Effect.succeed(known);
  if (server.registration_endpoint !== undefined) return register(grant, client, server.registration_endpoint);
  return Effect.fail(
    new TokenEndpointFailed({
      server: grant.server,
      tokenEndpoint: shown(server.token_endpoint),
      reason: "the client is not registered, and the authorization server registers none by itself; give it a clientId",
      retryable: false,
    }),
  );
};
