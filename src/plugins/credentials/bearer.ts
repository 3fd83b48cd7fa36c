/** A token the host has, or fetches itself. */
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { type Answer, lift } from "../../core/answer.ts";
import type { Authorization, CredentialFlow } from "../../core/contracts.ts";
import type { Credential } from "../../core/endpoint.ts";
import { InvalidEndpoint, type McpError } from "../../core/errors.ts";
import { digest } from "../../core/identity.ts";
import { redacted, type Secret } from "./client-authentication.ts";
import { maskOf } from "./masking.ts";
import { labelOf, refusalOf, refuseInsecure, withHeaders } from "./oauth-flow.ts";

export interface BearerTokenOptions {
  /**
   * The token, or what fetches it. A callback is asked for every request, so it should
   * keep its token; after a 401 it is asked again, and a different token is tried.
   */
  readonly token: Secret | (() => Answer<Secret, McpError>);
  /** Who the token stands for. Default: a name of its own for each token, so that no two share a client. */
  readonly user?: string | undefined;
}

const USABLE = /^[\x21-\x7e]+$/;

const unusable = (): InvalidEndpoint =>
  new InvalidEndpoint({
    field: "credential.token",
    reason: "is empty or holds blanks, line breaks or other characters a header cannot carry",
    fix: "Give the bare token, without 'Bearer'.",
  });

/** Sends `Authorization: Bearer <token>` (RFC 6750 section 2.1). Tokens are never shown. */
export class BearerToken implements Credential {
  readonly kind = "bearer" as const;
  readonly user: string;
  /** Fetches the token, not enumerable. */
  declare readonly token: Redacted.Redacted<string> | (() => Answer<Secret, McpError>);

  constructor(options: BearerTokenOptions) {
    const token = typeof options.token === "function" ? options.token : redacted(options.token);
    this.user =
      options.user ?? `bearer-${Redacted.isRedacted(token) ? digest(Redacted.value(token)) : crypto.randomUUID()}`;
    Object.defineProperty(this, "token", { value: token, enumerable: false });
  }

  validate(): InvalidEndpoint | undefined {
    return Redacted.isRedacted(this.token) && !USABLE.test(Redacted.value(this.token)) ? unusable() : undefined;
  }
}

const sent = new WeakMap<Authorization, string>();

/** The flow of `BearerToken`. */
export const bearer: CredentialFlow = {
  kind: "bearer",
  authorize: (credential, { rejected, ...request }) =>
    Effect.gen(function* () {
      const { token } = credential as BearerToken;
      yield* refuseInsecure(request.url);
      const given = Redacted.isRedacted(token) ? token : yield* lift("bearer", token);
      const value = Redacted.value(redacted(given));
      if (!USABLE.test(value)) return yield* unusable();
      const before = rejected?.authorization && sent.get(rejected.authorization);
      if (rejected && (rejected.status !== 401 || before === undefined || before === value))
        return yield* refusalOf(rejected, labelOf(request), maskOf([value]));
      const authorization = withHeaders({ Authorization: `Bearer ${value}` });
      sent.set(authorization, value);
      return authorization;
    }),
};
