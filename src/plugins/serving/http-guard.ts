/** Who may speak to the gateway over HTTP: a bearer token, and protection against DNS rebinding. */
import { sha256 } from "@noble/hashes/sha2.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { InvalidConfig } from "../../core/errors.ts";
import { refusal } from "./http-response.ts";

export interface GuardOptions {
  /** Every request must carry it as `Authorization: Bearer …`. Mandatory where others than this machine may connect. */
  readonly token?: string | undefined;
  /** Names in the Host header, without port. Default: those of loopback. */
  readonly allowedHosts?: ReadonlyArray<string> | undefined;
  /** Origins of web pages that may connect, for example `https://app.example`. Loopback origins always may. */
  readonly allowedOrigins?: ReadonlyArray<string> | undefined;
}

/** How Host headers name this machine. */
export const loopbackHosts: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"];

export const isLoopback = (hostname: string): boolean => loopbackHosts.includes(hostname) || hostname === "::1";

/** The host name of `host:port` or of an origin, as URLs write it; undefined when it is none. */
const hostnameOf = (url: string): string | undefined => {
  try {
    return new URL(url).hostname;
  } catch {
    return undefined;
  }
};

/** Takes the same time for every wrong token. */
const equal = (a: Uint8Array, b: Uint8Array): boolean => a.reduce((sum, byte, i) => sum | (byte ^ b[i]!), 0) === 0;

/**
 * Answers the refusal of a request, or undefined. Throws `InvalidConfig` when hosts beyond
 * this machine are allowed without a token. Source: MCP transports, security warning.
 */
export const makeGuard = (options: GuardOptions): ((request: Request) => Response | undefined) => {
  const { token, allowedOrigins = [] } = options;
  const hosts = options.allowedHosts ?? loopbackHosts;
  if (token === undefined && !hosts.every(isLoopback))
    throw new InvalidConfig({
      source: "gateway",
      field: "token",
      reason: "is missing, and others than this machine may connect",
      fix: "Give a token that clients send as 'Authorization: Bearer …', or serve on 127.0.0.1.",
    });
  if (token === "")
    throw new InvalidConfig({ source: "gateway", field: "token", reason: "is empty", fix: "Give a long random text." });
  const expected = token === undefined ? undefined : sha256(utf8ToBytes(token));

  const originAllowed = (origin: string): boolean =>
    allowedOrigins.includes(origin) || (hostnameOf(origin) !== undefined && isLoopback(hostnameOf(origin)!));

  return ({ headers, url }) => {
    const host = headers.get("host");
    const hostname = hostnameOf(host === null ? url : `http://${host}`);
    if (hostname === undefined || !hosts.includes(hostname)) return refusal(403, "This host name is not served here");
    const origin = headers.get("origin");
    if (origin !== null && !originAllowed(origin)) return refusal(403, "This origin may not connect");
    if (expected === undefined) return undefined;
    const [, given] = /^Bearer +(.+)$/i.exec(headers.get("authorization") ?? "") ?? [];
    if (given !== undefined && equal(sha256(utf8ToBytes(given)), expected)) return undefined;
    return refusal(401, "A valid bearer token is needed", { "www-authenticate": "Bearer" });
  };
};
