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

/** Whose login it is where nobody was named. */
export const nobody = "user";

/** A kept login; the token in it is secret. */
export interface StoredGrant {
  readonly key: string;
  readonly user: string;
  /** Id of a client that was registered beforehand; empty for one that was registered on the way. */
  readonly client: string;
  readonly resource: string;
  readonly token: TokenSet;
}

/** All that can be read. */
export const readGrants = (kept: ReadonlyArray<KeptToken>): ReadonlyArray<StoredGrant> =>
  kept.flatMap(({ key, secret }) => {
    const [whose, grant] = [parseGrantKey(key), readGrant(secret)];
    return whose && grant ? [{ key, ...whose, token: grant.token }] : [];
  });

/** The logins that are for an endpoint: of the user, or of all, those without a name first. */
export const grantsFor = (
  grants: ReadonlyArray<StoredGrant>,
  { url }: HttpEndpoint,
  user: string | undefined,
): ReadonlyArray<StoredGrant> => {
  const own = grants.filter((grant) => covers(grant.resource, url) && (user === undefined || grant.user === user));
  const rank = (grant: StoredGrant): string => (grant.user === nobody ? "" : grant.user);
  return own.toSorted((a, b) => (rank(a) < rank(b) ? -1 : 1));
};

/** The same endpoint, used with a credential. */
export const withCredential = (endpoint: HttpEndpoint, credential: Credential): HttpEndpoint => {
  const { url, name, headers, flavor, requestTimeout, era } = endpoint;
  return new HttpEndpoint({ url, name, headers, flavor, requestTimeout, era, credential });
};

const advice = (handle: string): string =>
  `run 'nucleo-mcp auth login ${/^[\w.-]+$/.test(handle) ? handle : JSON.stringify(handle)}'`;

const authMethodOf = (method: string | undefined) =>
  method === "client_secret_basic" || method === "client_secret_post" ? method : undefined;

/** A login that is used and refreshed, and never asks a person. */
class StoredLogin extends AuthorizationCode {
  readonly #handle: string;

  constructor(handle: string, kept: StoredGrant | undefined) {
    const { clientSecret, method } = kept?.token.client ?? {};
    super({
      user: kept?.user,
      // Only a client that was known beforehand is part of what the login is kept under.
      ...(kept && kept.client !== "" && { clientId: kept.client, clientSecret, authMethod: authMethodOf(method) }),
    });
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
const withStoredLogin = (handle: string, endpoint: McpEndpoint, kept?: StoredGrant): HttpEndpoint | undefined => {
  if (!(endpoint instanceof HttpEndpoint) || endpoint.credential) return undefined;
  const made = withCredential(endpoint, new StoredLogin(handle, kept));
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
    const servers: Array<LoadedEndpoint> = [];
    for (const server of config.servers) {
      const { handle, endpoint } = server;
      const own = endpoint instanceof HttpEndpoint ? grantsFor(grants, endpoint, options.user) : [];
      const made = own[0] && withStoredLogin(handle, endpoint, own[0]);
      servers.push(made ? { ...server, endpoint: made } : server);
      if (!made || options.user !== undefined || own.length < 2) continue;
      const users = own.map(({ user }) => user).join(", ");
      yield* output.warn(`Logins of ${users} are kept for '${handle}'. The first one is used; --user names another.`);
    }
    return { ...config, servers };
  });
