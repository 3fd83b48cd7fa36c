/**
 * The one door to the network of the HTTP transports: configured headers and
 * credentials, redirects, authorization and rate limits, for any caller of `fetch`.
 */
import type { FetchLike } from "@modelcontextprotocol/sdk/shared/transport.js";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { asMcpError } from "../core/answer.ts";
import type { Authorization, AuthorizeRequest, TransportContext } from "../core/contracts.ts";
import type { HttpEndpoint } from "../core/endpoint.ts";
import { ConnectFailed, HttpFailed, type McpError } from "../core/errors.ts";
import { discard } from "./http-body.ts";
import { errorText, type HttpSite, showWithout, refusal, unreachable } from "./http-errors.ts";
import { honourRetryAfter } from "./http-retry-after.ts";

/**
 * Sends one request. Any status but 401 and 403 is a response; those two, refused
 * redirects and connections that fail are typed errors. `init.signal` ends it.
 */
export type HttpRequest = (url: URL, init: RequestInit) => Effect.Effect<Response, McpError>;

export interface HttpClient {
  /** The endpoint's URL without userinfo and fragment. */
  readonly url: URL;
  readonly request: HttpRequest;
  readonly site: HttpSite;
}

const REDIRECTS = 5;
/** Refusals of one request that the credential flow may answer; the contract says so. */
const REFUSALS = 3;
const isRedirect = (status: number): boolean => [301, 302, 303, 307, 308].includes(status);

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/**
 * Deno's fetch sends a request again by itself when a kept connection is reset before the
 * answer, so that a tool would run twice; a body that is a Blob it never repeats.
 */
const sentOnce = (init: RequestInit): RequestInit =>
  typeof init.body === "string" ? { ...init, body: new Blob([init.body]) } : init;

/** What is sent with every request, and the URL without what became a header. */
const split = (endpoint: HttpEndpoint): { readonly url: URL; readonly configured: Headers } => {
  const url = new URL(endpoint.url);
  const configured = new Headers(endpoint.headers);
  // `fetch` refuses a URL with userinfo; RFC 7617 says how it is sent.
  if ((url.username || url.password) && !configured.has("authorization")) {
    const pair = new TextEncoder().encode(`${decoded(url.username)}:${decoded(url.password)}`);
    configured.set("authorization", `Basic ${btoa(String.fromCharCode(...pair))}`);
  }
  url.username = url.password = url.hash = "";
  return { url, configured };
};

/** Prepares the requests of one endpoint. Nothing is sent yet. */
export const makeHttpClient = (endpoint: HttpEndpoint, context: TransportContext): HttpClient => {
  const { url: home, configured } = split(endpoint);
  const { authorize, name: server, settings } = context;
  const { endpointId } = endpoint;
  let contacted = false;
  let lastAuthorization: Authorization | undefined;
  const site: HttpSite = {
    server,
    endpointId,
    show: showWithout(() => [
      ...configured.values(),
      ...home.searchParams.values(),
      ...Object.values(lastAuthorization?.headers ?? {}),
    ]),
  };

  const headersOf = (init: RequestInit, authorization: Authorization | undefined): Headers => {
    const headers = new Headers(configured);
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    for (const [name, value] of Object.entries(authorization?.headers ?? {})) headers.set(name, value);
    return headers;
  };

  /**
   * RFC 9110 section 15.4: only 307 and 308 keep the method, and only the endpoint's own
   * origin may see its headers, its session and its messages.
   */
  const redirect = (response: Response, from: URL): Effect.Effect<URL, McpError> => {
    const location = response.headers.get("location") ?? "";
    const target = URL.canParse(location, from) ? new URL(location, from) : undefined;
    const refuse = (reason: string) => Effect.fail(new HttpFailed({ server, status: response.status, reason }));
    if (!target) return refuse("a redirect to nowhere");
    if (target.origin !== home.origin)
      return refuse(
        `a redirect to another origin, ${target.origin}, was not followed. If it is right, make it the endpoint's url`,
      );
    if (response.status !== 307 && response.status !== 308)
      return refuse(`a redirect to ${site.show(target.pathname)} that would drop the message was not followed`);
    target.username = target.password = "";
    return Effect.succeed(target);
  };

  const follow = (url: URL, init: RequestInit, hops = 0): Effect.Effect<Response, McpError> =>
    Effect.tryPromise({
      try: () => fetch(url, { ...sentOnce(init), redirect: "manual" }),
      catch: (cause) => unreachable(site, cause, contacted),
    }).pipe(
      Effect.flatMap((response) => {
        contacted = true;
        if (!isRedirect(response.status)) return Effect.succeed(response);
        if (hops === REDIRECTS)
          return Effect.fail(
            new HttpFailed({ server, status: response.status, reason: `more than ${REDIRECTS} redirects` }),
          );
        return discard(response).pipe(
          Effect.andThen(redirect(response, url)),
          Effect.flatMap((target) => follow(target, init, hops + 1)),
        );
      }),
    );

  const authorization = (request: AuthorizeRequest): Effect.Effect<Authorization | undefined, McpError> =>
    authorize
      ? Effect.tryPromise({
          try: () => authorize(request),
          catch: (cause) => asMcpError<McpError>("credential flow", cause),
        }).pipe(Effect.tap((given) => Effect.sync(() => (lastAuthorization = given))))
      : Effect.succeed(undefined);

  /** Asks for authorization, and again after each refusal: a token, a scope and a nonce may be missing in turn. */
  const authorized: HttpRequest = (url, init) =>
    Effect.gen(function* () {
      if (url.origin !== home.origin)
        return yield* new ConnectFailed({
          server,
          endpointId,
          phase: "transport",
          reason: `a request to another origin, ${url.origin}, was refused`,
        });
      const asked = { url: url.href, method: init.method ?? "GET", server };
      let rejected: AuthorizeRequest["rejected"];
      for (let refusals = 0; ; refusals++) {
        const given = yield* authorization(rejected ? { ...asked, rejected } : asked);
        const headers = headersOf(init, given);
        const response = yield* follow(url, { ...init, headers });
        if (response.status !== 401 && response.status !== 403) return response;
        const body = yield* errorText(response, settings.closeGrace);
        if (!authorize || refusals === REFUSALS)
          return yield* Effect.flatMap(refusal(site, response, body, headers.has("authorization")), Effect.fail);
        rejected = {
          status: response.status,
          challenge: response.headers.get("www-authenticate") ?? undefined,
          authorization: given,
          nonce: response.headers.get("dpop-nonce") ?? undefined,
          detail: site.show(body) || undefined,
        };
      }
    });

  const limit = Duration.toMillis(Duration.fromInputUnsafe(endpoint.requestTimeout ?? settings.requestTimeout));
  return { url: home, request: honourRetryAfter(authorized, limit), site };
};

/** As `request`, for a response that lives as long as the scope: its end cuts what is not read. */
export const scopedRequest = (
  request: HttpRequest,
  url: URL,
  init: RequestInit,
): Effect.Effect<Response, McpError, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new AbortController()),
    (controller) => Effect.sync(() => controller.abort()),
  ).pipe(Effect.flatMap((controller) => request(url, { ...init, signal: controller.signal })));

/**
 * The same door as a plain `fetch`, for SDK transports. Rejects with typed errors;
 * with the signal's own reason when `init.signal` aborted it.
 */
export const hardenedFetch = (endpoint: HttpEndpoint, context: TransportContext): Effect.Effect<FetchLike> =>
  Effect.map(Effect.context<never>(), (services) => {
    const { request } = makeHttpClient(endpoint, context);
    const run = Effect.runPromiseWith(services);
    return (url, init = {}) =>
      run(request(new URL(url), init), init.signal ? { signal: init.signal } : {}).catch((error: unknown) => {
        throw init.signal?.aborted ? init.signal.reason : error;
      });
  });
