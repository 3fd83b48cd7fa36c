/** How a client proves itself to a token endpoint (RFC 6749 section 2.3.1). */
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { InvalidEndpoint, type McpError } from "../../core/errors.ts";
import type { AuthorizationServer } from "./discovery.ts";

/** What a token request carries beside its grant. */
export interface ClientParts {
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly form?: Readonly<Record<string, string>> | undefined;
}

export type ClientAuthentication = (authorizationServer: AuthorizationServer) => Effect.Effect<ClientParts, McpError>;

export type ClientAuthMethod = "client_secret_basic" | "client_secret_post" | "none";

/** A secret as the host gives it. */
export type Secret = string | Redacted.Redacted<string>;

export const redacted = (secret: Secret): Redacted.Redacted<string> =>
  Redacted.isRedacted(secret) ? secret : Redacted.make(secret);

/** The fault of a value the host has to give and does not. */
export const missing = (field: string, value: unknown): InvalidEndpoint | undefined =>
  value !== undefined && value !== null && value !== ""
    ? undefined
    : new InvalidEndpoint({ field: `credential.${field}`, reason: "is missing", fix: "Give it to the credential." });

export const redactedIfAny = (secret: Secret | undefined): Redacted.Redacted<string> | undefined =>
  secret === undefined ? undefined : redacted(secret);

const METHODS: ReadonlyArray<ClientAuthMethod> = ["client_secret_basic", "client_secret_post", "none"];

/** The method to use: the client's own, else the first the server lists; listing none means basic (RFC 8414 section 2). */
const methodFor = (server: AuthorizationServer, own: string | undefined): ClientAuthMethod =>
  METHODS.find((method) => method === own) ??
  METHODS.find((method) => server.token_endpoint_auth_methods_supported?.includes(method)) ??
  "client_secret_basic";

/** Form encoding comes before base64 (RFC 6749 section 2.3.1 and appendix B). */
const formEncode = (text: string): string => new URLSearchParams({ "": text }).toString().slice(1);

export interface SecretClient {
  readonly clientId: string;
  readonly clientSecret?: Redacted.Redacted<string> | undefined;
  /** What the host or a registration says; the server's list is asked otherwise. */
  readonly method?: string | undefined;
}

/** Authentication by secret, or none for a public client, which only names itself. */
export const secretAuthentication =
  (client: SecretClient): ClientAuthentication =>
  (server) => {
    const { clientId, clientSecret } = client;
    const method = clientSecret === undefined ? "none" : methodFor(server, client.method);
    if (clientSecret === undefined || method === "none") return Effect.succeed({ form: { client_id: clientId } });
    const secret = Redacted.value(clientSecret);
    return Effect.succeed(
      method === "client_secret_post"
        ? { form: { client_id: clientId, client_secret: secret } }
        : { headers: { Authorization: `Basic ${btoa(`${formEncode(clientId)}:${formEncode(secret)}`)}` } },
    );
  };
