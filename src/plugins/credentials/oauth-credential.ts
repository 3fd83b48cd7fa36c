/** What a credential has to offer so that the OAuth flow can use it. Types only. */
import type * as Effect from "effect/Effect";
import type { Credential } from "../../core/endpoint.ts";
import type { McpError } from "../../core/errors.ts";
import type { AuthorizationServer, Discovered } from "./discovery.ts";
import type { Mask } from "./masking.ts";
import type { NetworkReach } from "./network-reach.ts";
import type { TokenSet } from "./token-set.ts";

/** A credential that gets its tokens from an authorization server. */
export interface OAuthCredential extends Credential {
  /** Tells identities apart: a digest of all that makes this one, no secret. */
  readonly fingerprint: string;
  /** Scopes the host asks for, space-separated. Default: those the server names. */
  readonly scope: string | undefined;
  /** The issuer the credential is registered at; nothing of it goes to another one. */
  readonly issuer: string | undefined;
  /** True when only one authorization server knows the client; the first one found, where `issuer` names none. */
  readonly registered: boolean;
  /** True to use the endpoints of MCP 2025-03-26 where there is no metadata at all. */
  readonly guess?: boolean | undefined;
  /** What must not show in messages. */
  readonly secrets: () => ReadonlyArray<string>;
  readonly mint: (grant: Grant) => Effect.Effect<TokenSet, McpError>;
}

/** Ties tokens to a key (RFC 9449): proofs for requests, and the nonces servers ask for. */
export interface TokenBinding {
  /** Tells keys apart. */
  readonly id: string;
  readonly proof: (request: {
    readonly method: string;
    readonly url: string;
    readonly accessToken?: string | undefined;
  }) => Effect.Effect<string, McpError>;
  readonly keepNonce: (url: string, nonce: string) => void;
  /** Fails when the authorization server does not take proofs of this key's algorithm. */
  readonly check: (authorizationServer: AuthorizationServer) => Effect.Effect<void, McpError>;
}

/** What a flow is given to get a token with. */
export interface Grant {
  /** Label for messages. */
  readonly server: string;
  readonly mask: Mask;
  readonly discovered: Discovered;
  /** Where requests for the grant may lead. */
  readonly reach: NetworkReach;
  /** Space-separated; `undefined`: the server's default. */
  readonly scope: string | undefined;
  /** The last token, whether it expires or was refused. */
  readonly previous: TokenSet | undefined;
  /** Why a token is wanted: the last one nears its end, is gone, or has too narrow a scope. */
  readonly reason: "early" | "needed" | "wider";
  readonly binding: TokenBinding | undefined;
}
