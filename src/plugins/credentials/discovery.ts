/**
 * From a protected server's URL to its authorization server: protected resource
 * metadata (RFC 9728), then authorization server metadata (RFC 8414, OpenID Connect Discovery).
 */
import * as Effect from "effect/Effect";
import { AuthorizationDiscoveryFailed } from "../../core/errors.ts";
import { jsonObject, type JsonObject, textOf, textsOf } from "./json-fields.ts";
import type { Mask } from "./masking.ts";
import type { NetworkReach } from "./network-reach.ts";
import { exchange, type HttpAnswer, refusalOf } from "./oauth-http.ts";
import { covers, resourceMetadataUrls, resourceOf, sameIssuer, serverMetadataUrls, shown } from "./url-rules.ts";

/** Metadata of an authorization server (RFC 8414 section 2); the issuer was checked. */
export interface AuthorizationServer {
  readonly issuer: string;
  readonly token_endpoint: string;
  readonly authorization_endpoint?: string | undefined;
  readonly registration_endpoint?: string | undefined;
  readonly scopes_supported?: ReadonlyArray<string> | undefined;
  readonly code_challenge_methods_supported?: ReadonlyArray<string> | undefined;
  readonly token_endpoint_auth_methods_supported?: ReadonlyArray<string> | undefined;
  readonly token_endpoint_auth_signing_alg_values_supported?: ReadonlyArray<string> | undefined;
  readonly dpop_signing_alg_values_supported?: ReadonlyArray<string> | undefined;
  readonly authorization_response_iss_parameter_supported?: boolean | undefined;
  readonly client_id_metadata_document_supported?: boolean | undefined;
}

const readServerMetadata = (document: JsonObject | undefined) => {
  const tokenEndpoint = textOf(document?.["token_endpoint"]);
  if (!document || tokenEndpoint === undefined) return undefined;
  return {
    issuer: textOf(document["issuer"]),
    token_endpoint: tokenEndpoint,
    authorization_endpoint: textOf(document["authorization_endpoint"]),
    registration_endpoint: textOf(document["registration_endpoint"]),
    scopes_supported: textsOf(document["scopes_supported"]),
    code_challenge_methods_supported: textsOf(document["code_challenge_methods_supported"]),
    token_endpoint_auth_methods_supported: textsOf(document["token_endpoint_auth_methods_supported"]),
    token_endpoint_auth_signing_alg_values_supported: textsOf(
      document["token_endpoint_auth_signing_alg_values_supported"],
    ),
    dpop_signing_alg_values_supported: textsOf(document["dpop_signing_alg_values_supported"]),
    authorization_response_iss_parameter_supported: document["authorization_response_iss_parameter_supported"] === true,
    client_id_metadata_document_supported: document["client_id_metadata_document_supported"] === true,
  };
};

export interface Discovered {
  /** The resource indicator, letter by letter as published (RFC 8707 section 2). */
  readonly resource: string;
  readonly scopes: ReadonlyArray<string> | undefined;
  readonly authorizationServer: AuthorizationServer;
}

export interface DiscoveryRequest {
  /** Label for messages. */
  readonly server: string;
  readonly mask: Mask;
  /** URL of the protected server. */
  readonly url: string;
  /** Where the URLs of the metadata may lead. */
  readonly reach: NetworkReach;
  /** `resource_metadata` of the challenge. */
  readonly challenged?: string | undefined;
  /** The issuer the credential is registered at; no other is used. */
  readonly issuer?: string | undefined;
  /** Without any metadata, use `/authorize`, `/token` and `/register` of the origin (MCP 2025-03-26). */
  readonly guess?: boolean | undefined;
}

const failed = (request: DiscoveryRequest, url: string, reason: string, retryable = false) =>
  new AuthorizationDiscoveryFailed({
    server: request.server,
    url: shown(url),
    reason: request.mask(reason),
    retryable,
  });

/** A document that may be there: any 3xx, 4xx or something else than JSON says it is not, 5xx and silence fail. */
const fetchDocument = (request: DiscoveryRequest, url: string) =>
  exchange(url, request.reach, { headers: { Accept: "application/json" } }).pipe(
    Effect.mapError((fault) => failed(request, url, fault.reason, fault.retryable)),
    Effect.filterOrFail(
      (answer: HttpAnswer) => answer.status < 500,
      (answer) => failed(request, url, `answers HTTP ${answer.status}`, true),
    ),
    Effect.map(({ status, text: body }) => (status === 200 ? jsonObject(body) : undefined)),
  );

const findResource = (request: DiscoveryRequest) =>
  Effect.gen(function* () {
    const { url, challenged } = request;
    for (const candidate of new Set([
      ...(challenged === undefined ? [] : [challenged]),
      ...resourceMetadataUrls(url),
    ])) {
      const document = yield* fetchDocument(request, candidate);
      const resource = textOf(document?.["resource"]);
      if (!document || resource === undefined) continue;
      if (!covers(resource, url)) {
        const reason = `describes the resource '${resource}', which does not cover ${shown(url)}`;
        return yield* failed(request, candidate, reason);
      }
      const servers = textsOf(document["authorization_servers"]) ?? [];
      return { resource, servers, scopes: textsOf(document["scopes_supported"]), from: candidate };
    }
    return undefined;
  });

/** A secret or a person goes to these, so each is checked wherever the metadata came from; says what is wrong. */
const refusedEndpoint = (metadata: Omit<AuthorizationServer, "issuer">, reach: NetworkReach): string | undefined => {
  for (const name of ["token_endpoint", "authorization_endpoint", "registration_endpoint"] as const) {
    const endpoint = metadata[name];
    const refused = endpoint === undefined ? undefined : refusalOf(endpoint, reach);
    if (refused !== undefined) return `has a ${name}, ${shown(endpoint!)}, that ${refused}`;
  }
  return undefined;
};

/** Metadata of one issuer. A document without issuer, or of another one, is not used (RFC 8414 section 3.3). */
const findAuthorizationServer = (
  request: DiscoveryRequest,
  issuer: string,
): Effect.Effect<AuthorizationServer | undefined, AuthorizationDiscoveryFailed> =>
  Effect.gen(function* () {
    const unasked = refusalOf(issuer, request.reach);
    if (unasked !== undefined) return yield* failed(request, issuer, unasked);
    let refused: AuthorizationDiscoveryFailed | undefined;
    for (const url of serverMetadataUrls(issuer)) {
      const document = yield* fetchDocument(request, url);
      const metadata = readServerMetadata(document);
      if (!metadata) continue;
      if (metadata.issuer === undefined || !sameIssuer(issuer, metadata.issuer)) {
        const other = metadata.issuer === undefined ? "none" : `'${metadata.issuer}'`;
        refused ??= failed(request, url, `is to describe the issuer '${issuer}' and names ${other}`);
        continue;
      }
      const wrong = refusedEndpoint(metadata, request.reach);
      if (wrong !== undefined) return yield* failed(request, url, wrong);
      return { ...metadata, issuer: metadata.issuer };
    }
    if (refused) return yield* refused;
    return undefined;
  });

/** As `findAuthorizationServer`, and fails where there is none. */
export const requireAuthorizationServer = (
  request: DiscoveryRequest,
  issuer: string,
): Effect.Effect<AuthorizationServer, AuthorizationDiscoveryFailed> =>
  Effect.flatMap(findAuthorizationServer(request, issuer), (found) =>
    found ? Effect.succeed(found) : Effect.fail(failed(request, issuer, "publishes no usable metadata")),
  );

const guessed = (origin: string): AuthorizationServer => ({
  issuer: origin,
  token_endpoint: `${origin}/token`,
  authorization_endpoint: `${origin}/authorize`,
  registration_endpoint: `${origin}/register`,
  code_challenge_methods_supported: ["S256"],
});

/** The whole way. Without protected resource metadata the server's origin is the issuer. */
export const discover = (request: DiscoveryRequest): Effect.Effect<Discovered, AuthorizationDiscoveryFailed> =>
  Effect.gen(function* () {
    const found = yield* findResource(request);
    const { origin } = new URL(request.url);
    const named = found?.servers ?? [];
    const wanted = request.issuer;
    const issuer =
      wanted === undefined ? (named[0] ?? origin) : (named.find((one) => sameIssuer(one, wanted)) ?? wanted);
    if (wanted !== undefined && named.length > 0 && !named.some((one) => sameIssuer(one, wanted))) {
      const reason = `names ${named.map((one) => `'${one}'`).join(", ")}, and the credential belongs to '${wanted}'`;
      return yield* failed(request, found!.from, reason);
    }
    const mayGuess = request.guess && named.length === 0 && issuer === origin;
    const authorizationServer = mayGuess
      ? ((yield* findAuthorizationServer(request, issuer)) ?? guessed(origin))
      : yield* requireAuthorizationServer(request, issuer);
    return {
      resource: found?.resource ?? resourceOf(request.url),
      scopes: found?.scopes,
      authorizationServer,
    };
  });
