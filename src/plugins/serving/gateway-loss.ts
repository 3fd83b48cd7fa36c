/** What the shim knows of its gateway, and how it tells that the gateway is lost. */

/** Where a gateway is served. */
export interface GatewayAddress {
  readonly url: string;
  readonly token: string;
}

/** What a host is told of the requests that were under way. */
export const lost = "The gateway was lost. The request may have run; check before repeating it.";

/** Whether a message certainly did not reach a gateway: then it is safe to send it again. */
export const notDelivered = (cause: unknown): boolean => {
  const { message, code, cause: inner } = cause as { message?: unknown; code?: unknown; cause?: unknown };
  return /refused/i.test(`${String(message)} ${String(code)}`) || (inner !== undefined && notDelivered(inner));
};
