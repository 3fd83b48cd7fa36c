/**
 * A protected MCP server and its authorization server on two loopback ports, for tests. Both
 * behave well until a test says otherwise; every request is recorded in order.
 */
import type { StepsBy } from "./fault-program.ts";
import { type HttpExchange, type HttpHandler, type ScriptedHttp, startScriptedHttp } from "./http.ts";
import { Line } from "./http-line.ts";
import type { HttpProgram, HttpStep } from "./http-program.ts";
import { followProgram, makePlayer } from "./http-steps.ts";

export type Form = Readonly<Record<string, string>>;

/** What one token request carried. */
export interface TokenRequest {
  readonly form: Form;
  readonly authorization: string | undefined;
  readonly dpop: string | undefined;
}

/** Members of an answer, as they are or made for each. */
type Members<A extends ReadonlyArray<unknown>> = Record<string, unknown> | ((...about: A) => Record<string, unknown>);

/**
 * What the two servers do otherwise than well. Without functions it is plain JSON: a
 * fault program that can be generated, printed and kept.
 */
export interface OAuthScript {
  /** What the protected server does with requests that passed. Default: a polite server without sessions. */
  readonly program?: HttpProgram;
  /**
   * Steps by what is asked for: `token`, `register`, `server-metadata`, `resource-metadata`.
   * `default` gives the honest answer; a redirect may lead anywhere.
   */
  readonly on?: StepsBy<HttpStep>;
  /** Path of the issuer; default none. */
  readonly tenant?: string;
  /** The issuer as the protected resource advertises it. Default: origin and tenant. */
  readonly advertised?: (origin: string) => string;
  /** Members over those of the protected resource metadata. */
  readonly resourceMetadata?: Members<[world: OAuthWorld]>;
  /** Members over those of the authorization server metadata. */
  readonly serverMetadata?: Members<[world: OAuthWorld]>;
  /** Answers a well-known URL of either server in another way; `true` when it did. */
  readonly wellKnown?: (exchange: HttpExchange, world: OAuthWorld) => boolean;
  /** Members over those of a token answer, or a whole answer by `exchange`. */
  readonly token?: (
    request: TokenRequest,
    world: OAuthWorld,
    exchange: HttpExchange,
  ) => Record<string, unknown> | undefined | Promise<Record<string, unknown> | undefined>;
  /** Members over those of every token answer, where `token` makes none. */
  readonly tokenMembers?: Record<string, unknown>;
  /** Answers a request to the protected server in another way; `true` when it did. Default: any accepted token passes. */
  readonly guard?: (exchange: HttpExchange, token: string | undefined, world: OAuthWorld) => boolean;
  /** Parameters of the redirect of a login, over `code`, `state` and `iss`. */
  readonly redirect?: (asked: URLSearchParams, world: OAuthWorld) => Record<string, string | undefined>;
  /** Members over those of a registration answer. */
  readonly registration?: Members<[asked: Record<string, unknown>]>;
}

export const challengeOf = (params: Record<string, string | undefined>, scheme = "Bearer"): string =>
  `${scheme} ${Object.entries(params)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}="${value}"`)
    .join(", ")}`;

const made = <A extends ReadonlyArray<unknown>>(
  members: Members<A> | undefined,
  ...about: A
): Record<string, unknown> => (typeof members === "function" ? members(...about) : (members ?? {}));

export class OAuthWorld implements AsyncDisposable {
  readonly script: OAuthScript;
  resource!: ScriptedHttp;
  authorization!: ScriptedHttp;
  /** Every request to either server: `GET resource /path`. */
  readonly order: Array<string> = [];
  readonly tokenRequests: Array<TokenRequest> = [];
  readonly registrations: Array<Record<string, unknown>> = [];
  readonly logins: Array<URLSearchParams> = [];
  /** Tokens the protected server takes. */
  readonly accepted: Set<string> = new Set();
  /** Answer to `POST /mcp` requests, by token. */
  readonly passed: Array<string> = [];
  readonly #play: ReturnType<typeof makePlayer>;
  readonly #follow: HttpHandler;
  #minted = 0;

  constructor(script: OAuthScript) {
    this.script = script;
    this.#play = makePlayer(script.on);
    this.#follow = script.program ? followProgram(script.program) : (exchange) => exchange.mcp();
  }

  async start(): Promise<this> {
    this.resource = await startScriptedHttp(
      (exchange) => this.#note("resource", exchange, () => this.#protected(exchange)),
      { sessions: false, ...this.script.program },
    );
    this.authorization = await startScriptedHttp((exchange) =>
      this.#note("issuer", exchange, () => this.#issuer(exchange)),
    );
    return this;
  }

  get url(): string {
    return `${this.resource.origin}/mcp`;
  }

  get issuer(): string {
    return this.authorization.origin + (this.script.tenant ?? "");
  }

  get resourceMetadataUrl(): string {
    return `${this.resource.origin}/.well-known/oauth-protected-resource/mcp`;
  }

  /** A token the protected server takes, unlike any other. */
  mint(): string {
    const token = `access-${++this.#minted}-${crypto.randomUUID()}`;
    this.accepted.add(token);
    return token;
  }

  /** Refuses a request as an honest protected server does. */
  refuse(exchange: HttpExchange, params: Record<string, string | undefined> = {}, status = 401): void {
    const challenge = challengeOf({ resource_metadata: this.resourceMetadataUrl, ...params });
    exchange.json({ error: params["error"] ?? "unauthorized" }, status, { "www-authenticate": challenge });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.resource[Symbol.asyncDispose]();
    await this.authorization[Symbol.asyncDispose]();
  }

  async #note(server: string, exchange: HttpExchange, answer: () => void | Promise<void>): Promise<void> {
    this.order.push(`${exchange.request.method} ${server} ${exchange.request.path}`);
    if (exchange.request.path.includes("/.well-known/") && this.script.wellKnown?.(exchange, this)) return;
    await answer();
  }

  /** Answers with this JSON, unless the steps for the name do otherwise. */
  #honest(name: string, exchange: HttpExchange, answer: Record<string, unknown>, status = 200): Promise<void> {
    const line = new Line({ exchange, session: "", kind: "json" });
    const byDefault = (): void => line.status(status, JSON.stringify(answer), { "content-type": "application/json" });
    return this.#play({ exchange, line, message: {}, names: [name], byDefault });
  }

  #protected(exchange: HttpExchange): void | Promise<void> {
    const { path, headers } = exchange.request;
    if (path === "/.well-known/oauth-protected-resource/mcp") {
      const advertised = this.script.advertised?.(this.authorization.origin) ?? this.issuer;
      const metadata = {
        resource: this.url,
        authorization_servers: [advertised],
        ...made(this.script.resourceMetadata, this),
      };
      return this.#honest("resource-metadata", exchange, metadata);
    }
    if (path.includes("/.well-known/")) return exchange.text(404, "not here");
    const token = headers.authorization?.replace(/^(Bearer|DPoP) /, "");
    if (this.script.guard ? this.script.guard(exchange, token, this) : this.#turnedAway(exchange, token)) return;
    this.passed.push(token ?? "(none)");
    return this.#follow(exchange);
  }

  #turnedAway(exchange: HttpExchange, token: string | undefined): boolean {
    if (token !== undefined && this.accepted.has(token)) return false;
    this.refuse(exchange, token === undefined ? {} : { error: "invalid_token" });
    return true;
  }

  async #issuer(exchange: HttpExchange): Promise<void> {
    const url = new URL(exchange.request.path, this.authorization.origin);
    const { tenant = "" } = this.script;
    const at = (path: string): string => this.issuer + path;
    switch (url.pathname) {
      case `/.well-known/oauth-authorization-server${tenant}`:
        return this.#honest("server-metadata", exchange, {
          issuer: this.issuer,
          token_endpoint: at("/token"),
          authorization_endpoint: at("/authorize"),
          registration_endpoint: at("/register"),
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          ...made(this.script.serverMetadata, this),
        });
      case `${tenant}/token`:
        return this.#token(exchange);
      case `${tenant}/authorize`: {
        const asked = url.searchParams;
        this.logins.push(asked);
        const target = new URL(asked.get("redirect_uri")!);
        const answer = {
          code: `code-${crypto.randomUUID()}`,
          state: asked.get("state")!,
          ...this.script.redirect?.(asked, this),
        };
        for (const [name, value] of Object.entries(answer))
          if (value !== undefined) target.searchParams.set(name, value);
        return exchange.text(302, "", { location: target.href });
      }
      case `${tenant}/register`: {
        const asked = exchange.request.rpc as Record<string, unknown>;
        this.registrations.push(asked);
        const answer = {
          client_id: `registered-${this.registrations.length}`,
          ...made(this.script.registration, asked),
        };
        return this.#honest("register", exchange, { ...asked, ...answer }, 201);
      }
      default:
        return exchange.text(404, "not here");
    }
  }

  async #token(exchange: HttpExchange): Promise<void> {
    const { headers, body } = exchange.request;
    const request: TokenRequest = {
      form: Object.fromEntries(new URLSearchParams(body)),
      authorization: headers.authorization,
      dpop: headers["dpop"] as string | undefined,
    };
    this.tokenRequests.push(request);
    const { token, tokenMembers = {} } = this.script;
    const answer = token ? await token(request, this, exchange) : tokenMembers;
    if (answer === undefined) return;
    const members = { access_token: answer["access_token"] ?? this.mint(), token_type: "Bearer", ...answer };
    await this.#honest("token", exchange, members);
  }
}

export const startOAuth = (script: OAuthScript = {}): Promise<OAuthWorld> => new OAuthWorld(script).start();
