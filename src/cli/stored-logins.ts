/** Logins that `auth login` has kept, and their use by commands that ask nobody. */
import * as Effect from "effect/Effect";
import { type Credential, HttpEndpoint, type McpEndpoint } from "../core/endpoint.ts";
import { type InvalidConfig, type McpError, Unauthorized } from "../core/errors.ts";
import { AuthorizationCode } from "../plugins/credentials/authorization-code.ts";
import type { Grant } from "../plugins/credentials/oauth-credential.ts";
import { parseGrantKey, readGrant } from "../plugins/credentials/stored-grant.ts";
import type { TokenSet } from "../plugins/credentials/token-set.ts";
import { covers } from "../plugins/credentials/url-rules.ts";
import type { LoadedEndpoint, McpJson } from "../plugins/endpoints/mcp-json.ts";
import type { KeptToken } from "../plugins/stores/file-tokens.ts";
import { attempt } from "./attempt.ts";
import { openConfig } from "./config.ts";
import type { Session } from "./session.ts";
import { userTokens } from "./user-folders.ts";

/** A kept login; the token in it is secret. */
export interface StoredGrant {
  readonly key: string;
  readonly user: string;
  readonly resource: string;
  readonly token: TokenSet;
}

/** All that can be read. */
export const readGrants = (kept: ReadonlyArray<KeptToken>): ReadonlyArray<StoredGrant> =>
  kept.flatMap(({ key, secret }) => {
    const [whose, grant] = [parseGrantKey(key), readGrant(secret)];
    return whose && grant ? [{ key, user: whose.user, resource: whose.resource, token: grant.token }] : [];
  });

/** The same endpoint, used with a credential. */
export const withCredential = (endpoint: HttpEndpoint, credential: Credential): HttpEndpoint => {
  const { url, name, headers, flavor, requestTimeout, era } = endpoint;
  return new HttpEndpoint({ url, name, headers, flavor, requestTimeout, era, credential });
};

const advice = (handle: string): string =>
  `run 'nucleo-mcp auth login ${/^[\w.-]+$/.test(handle) ? handle : JSON.stringify(handle)}'`;

/** A login that is used and refreshed, and never asks a person. */
class StoredLogin extends AuthorizationCode {
  readonly #handle: string;

  constructor(handle: string) {
    super({});
    this.#handle = handle;
  }

  override mint(grant: Grant): Effect.Effect<TokenSet, McpError> {
    return Effect.mapError(super.mint(grant), (error) => {
      if (!(error instanceof Unauthorized)) return error;
      const { server, reason } = error;
      return new Unauthorized({ server, reason, detail: `its login has ended; ${advice(this.#handle)}` }, error);
    });
  }
}

/** The endpoint with the kept login; `undefined` where it can have none: a header or SSE stands against it. */
const withStoredLogin = (handle: string, endpoint: McpEndpoint): HttpEndpoint | undefined => {
  if (!(endpoint instanceof HttpEndpoint) || endpoint.credential) return undefined;
  const made = withCredential(endpoint, new StoredLogin(handle));
  return made.validate() === undefined ? made : undefined;
};

/** Where a login may be what is missing, the error says how to log in. */
export const adviseLogin = <E extends McpError>({ handle, endpoint }: LoadedEndpoint, error: E): E | Unauthorized => {
  if (!(error instanceof Unauthorized) || error.reason === "forbidden") return error;
  const { server, reason, detail } = error;
  const stored = endpoint instanceof HttpEndpoint && endpoint.credential instanceof StoredLogin;
  if (detail?.includes(advice(handle)) || !(stored || withStoredLogin(handle, endpoint))) return error;
  const to = `to log in, ${advice(handle)}`;
  return new Unauthorized({ server, reason, detail: detail === undefined ? to : `${detail}; ${to}` }, error);
};

/** The configuration, with the kept login of each HTTP server that has one. */
export const openServers = ({ options, output }: Session): Effect.Effect<McpJson, InvalidConfig> =>
  Effect.gen(function* () {
    const config = yield* openConfig(options.config);
    if (!config.servers.some(({ endpoint }) => endpoint instanceof HttpEndpoint)) return config;
    const kept = yield* Effect.catch(
      attempt("tokenStore", async () => (await userTokens()).list()),
      (error) => Effect.as(output.warn(`Kept logins are not used. ${error.message}`), []),
    );
    const grants = readGrants(kept);
    const servers = config.servers.map((server) => {
      const { handle, endpoint } = server;
      const made = withStoredLogin(handle, endpoint);
      return made && grants.some(({ resource }) => covers(resource, made.url)) ? { ...server, endpoint: made } : server;
    });
    return { ...config, servers };
  });
