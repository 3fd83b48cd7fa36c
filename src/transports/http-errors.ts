/** Turns what HTTP says went wrong into our typed errors. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import {
  ConnectFailed,
  ConnectionLost,
  HttpFailed,
  InsufficientScope,
  type McpError,
  Unauthorized,
} from "../core/errors.ts";
import { readText } from "./http-body.ts";
import { parseError } from "./http-message.ts";
import { retryAfter } from "./http-retry-after.ts";

/** Whom an error speaks of. */
export interface HttpSite {
  readonly server: string;
  readonly endpointId: string;
  /** Makes a text of the server fit to be shown: short, plain, without any configured value. */
  readonly show: (text: string) => string;
}

/** At most 200 characters of plain text: no tags, no scripts, no control characters. */
const sample = (text: string): string => {
  const plain = text
    .slice(0, 16_384)
    .replace(/<(script|style)\b[\s\S]*?<\/\1\s*>/gi, " ")
    .replace(/<[^>]*>/g, " ")
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim();
  const characters = [...plain];
  return characters.length > 200 ? `${characters.slice(0, 199).join("")}…` : plain;
};

/** Servers like to echo headers and queries in their error pages: takes the secrets out, before the text is cut. */
export const showWithout =
  (secrets: () => Iterable<string>) =>
  (text: string): string => {
    let masked = text;
    for (const secret of secrets())
      for (const word of [secret, ...secret.split(/\s+/)])
        if (word.length >= 6) masked = masked.replaceAll(word, "***").replaceAll(encodeURIComponent(word), "***");
    return sample(masked);
  };

const textual = (response: Response): boolean =>
  /^(text\/|application\/([\w.+-]*\+)?(json|xml|xhtml))/i.test(response.headers.get("content-type") ?? "text/");

/** Reads the start of a refused response's body; waits at most `limit` ms for it. */
export const errorText = (response: Response, limit: number): Effect.Effect<string> =>
  textual(response)
    ? readText(response, 65_536).pipe(
        Effect.timeoutOption(limit),
        Effect.map((body) => (body._tag === "Some" ? body.value.text : "")),
      )
    : Effect.succeed("");

const parameter = (challenge: string, name: string): string | undefined => {
  const match = new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"([^"]*)"|([^\\s,"]+))`, "i").exec(challenge);
  return match?.[1] ?? match?.[2];
};

/**
 * The error of a refused response. 401 and 403 are told apart by the challenge
 * (RFC 6750 section 3.1): a missing scope, a rejected token, no credential, or a ban.
 */
export const refusal = (
  site: HttpSite,
  response: Response,
  body: string,
  sentCredential = false,
): Effect.Effect<McpError> =>
  Effect.map(Clock.currentTimeMillis, (now) => {
    const { status } = response;
    const { server } = site;
    const said = site.show(parseError(body)?.error.message ?? body);
    if (status !== 401 && status !== 403) {
      return new HttpFailed({
        server,
        status,
        reason: said || site.show(response.statusText) || "no explanation",
        retryAfter: retryAfter(response.headers.get("retry-after"), now),
      });
    }
    const challenge = response.headers.get("www-authenticate") ?? "";
    const code = parameter(challenge, "error");
    if (code === "insufficient_scope") {
      const scopes = (parameter(challenge, "scope") ?? "").split(" ").filter(Boolean);
      return new InsufficientScope({ server, scopes });
    }
    const described = site.show(parameter(challenge, "error_description") ?? "") || said;
    const reason = code === "invalid_token" ? "token-rejected" : status === 403 ? "forbidden" : "unauthenticated";
    const unsatisfied = reason === "unauthenticated" && sentCredential ? "the credential sent does not satisfy it" : "";
    const detail = [unsatisfied, described].filter(Boolean).join("; ");
    return new Unauthorized({ server, reason, ...(detail ? { detail } : {}) });
  });

const codeOf = (cause: unknown): string | undefined => {
  const { code, cause: inner } = (cause ?? {}) as { code?: unknown; cause?: unknown };
  return typeof code === "string" ? code : inner ? codeOf(inner) : undefined;
};

const messageOf = (cause: unknown): string => {
  const { message, cause: inner } = (cause ?? {}) as { message?: unknown; cause?: unknown };
  return inner ? messageOf(inner) : typeof message === "string" ? message : String(cause);
};

/** No byte of the request left: no name, no route, no listener, or no TLS. Node and Bun give codes, Deno words. */
const neverSent = (cause: unknown): boolean =>
  /^(ECONNREFUSED|ENOTFOUND|EAI_|EHOSTUNREACH|ENETUNREACH|ConnectionRefused|UND_ERR_CONNECT)|CERT|TLS|SSL/.test(
    codeOf(cause) ?? "",
  ) || /client error \(Connect\)|bad port|ports? .*blocked/i.test(messageOf(cause));

/** The error of a fetch that gave no response. `contacted`: the server had answered before. */
export const unreachable = (site: HttpSite, cause: unknown, contacted: boolean): McpError => {
  // Deno's words hold the whole URL, query and all; what follows the last "client error" does not.
  const words = messageOf(cause).replace(/^.*client error \(\w+\): /s, "");
  const reason = site.show(words) || "the connection failed";
  const { server, endpointId } = site;
  return contacted
    ? new ConnectionLost({ server, outcome: neverSent(cause) ? "not-sent" : "unknown", reason })
    : new ConnectFailed({
        server,
        endpointId,
        phase: "transport",
        reason,
        fix: "Check the URL and that the server is running.",
      });
};
