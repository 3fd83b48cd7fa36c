/**
 * The part of the shim for hosts of 2026-07-28: each request of the host is a request to
 * the gateway. There is no session to open again, but the streams that the host listens
 * on are: when another gateway is joined, they are opened there, and the host is told
 * that what it listens for may have changed.
 */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type { JSONRPCMessage, JSONRPCRequest, RequestId } from "@modelcontextprotocol/sdk/types.js";
import { isRecord } from "../../core/artifact/json.ts";
import { isMcpError } from "../../core/errors.ts";
import { claimsModern } from "./http-era.ts";
import { type GatewayAddress, lost, notDelivered } from "./gateway-loss.ts";

export interface ModernLane {
  /** Whether a message of the host is of this era. */
  readonly takes: (message: JSONRPCMessage) => boolean;
  readonly deliver: (message: JSONRPCMessage) => void;
  readonly close: () => Promise<void>;
}

interface Remote {
  readonly send: (message: JSONRPCMessage, options: object) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** A request of the host that has no answer yet. */
interface Flight {
  readonly message: JSONRPCRequest;
  readonly stop: AbortController;
  readonly listens: boolean;
  /** What a stream was acknowledged to tell of. */
  agreed: Readonly<Record<string, unknown>> | undefined;
  /** Its stream broke, and waits for the next gateway. */
  broken: boolean;
}

const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";
const listChanges: Readonly<Record<string, string>> = {
  toolsListChanged: "notifications/tools/list_changed",
  promptsListChanged: "notifications/prompts/list_changed",
  resourcesListChanged: "notifications/resources/list_changed",
};

/** The JSON-RPC error in an HTTP refusal. */
const refusalOf = (cause: unknown): unknown => {
  const { data } = cause as { readonly data?: { readonly text?: unknown } };
  try {
    return (JSON.parse(String(data?.text)) as { readonly error?: unknown }).error;
  } catch {
    return undefined;
  }
};

/** All that may have changed for a stream while it was broken. */
const missed = (agreed: Readonly<Record<string, unknown>>, id: RequestId): ReadonlyArray<JSONRPCMessage> => {
  const _meta = { [SUBSCRIPTION_ID]: id };
  const { resourceSubscriptions: uris } = agreed;
  const notifications = [
    ...Object.entries(listChanges).flatMap(([key, method]) =>
      agreed[key] === true ? [{ method, params: { _meta } }] : [],
    ),
    ...(Array.isArray(uris) ? uris : []).map((uri: unknown) => ({
      method: "notifications/resources/updated",
      params: { uri, _meta },
    })),
  ];
  return notifications.map((one) => ({ jsonrpc: "2.0" as const, ...one }));
};

export const makeModernLane = (
  join: () => Promise<GatewayAddress>,
  toHost: (message: JSONRPCMessage) => void,
): ModernLane => {
  const flights = new Map<RequestId, Flight>();
  let remote: Promise<Remote> | undefined;

  const fail = (flight: Flight, error: unknown): void => {
    const { id } = flight.message;
    if (flights.get(id) !== flight) return;
    flights.delete(id);
    toHost({ jsonrpc: "2.0", id, error: error as { code: number; message: string } });
  };

  const onAcknowledged = (message: JSONRPCMessage, params: Readonly<Record<string, unknown>>): void => {
    const meta = isRecord(params["_meta"]) ? params["_meta"] : {};
    const id = meta[SUBSCRIPTION_ID] as RequestId;
    const flight = flights.get(id);
    if (!flight) return;
    const known = flight.agreed;
    flight.agreed = isRecord(params["notifications"]) ? params["notifications"] : {};
    if (known === undefined) toHost(message);
    else for (const one of missed(known, id)) toHost(one);
  };

  const onmessage = (message: JSONRPCMessage): void => {
    if ("method" in message) {
      if (message.method === "notifications/subscriptions/acknowledged" && isRecord(message.params))
        return onAcknowledged(message, message.params);
      return toHost(message);
    }
    if (message.id !== undefined && flights.delete(message.id)) toHost(message);
  };

  const open = async (): Promise<Remote> => {
    const { url, token } = await join();
    const { StreamableHTTPClientTransport } = await import("@modelcontextprotocol/client");
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
    Object.assign(transport, { onmessage } satisfies Partial<Transport>);
    await transport.start();
    return transport as Remote;
  };

  const onStreamEnd = (flight: Flight, through: Promise<Remote>): void => {
    // It also ends after the answer.
    if (flights.get(flight.message.id) !== flight) return;
    if (remote === through) remote = undefined;
    if (flight.listens && flight.agreed) flight.broken = true;
    else fail(flight, { code: -32000, message: lost });
  };

  const request = async (flight: Flight, mayRepeat: boolean): Promise<void> => {
    const through = (remote ??= open());
    const { message, stop } = flight;
    try {
      const current = await through;
      stop.signal.throwIfAborted();
      await current.send(message, {
        requestSignal: stop.signal,
        onRequestStreamEnd: () => onStreamEnd(flight, through),
      });
      for (const other of flights.values()) {
        if (!other.broken) continue;
        other.broken = false;
        void request(other, true);
      }
    } catch (cause) {
      if (stop.signal.aborted) return;
      const refusal = refusalOf(cause);
      if (refusal !== undefined) return fail(flight, refusal);
      if (remote === through) remote = undefined;
      if (mayRepeat && notDelivered(cause)) return request(flight, false);
      fail(flight, { code: -32000, message: isMcpError(cause) ? cause.message : lost });
    }
  };

  const cancel = (id: RequestId): void => {
    flights.get(id)?.stop.abort();
    flights.delete(id);
  };

  return {
    takes: (message) => {
      if (claimsModern(message)) return true;
      const { method, params } = message as {
        readonly method?: string;
        readonly params?: { readonly requestId?: RequestId };
      };
      return method === "notifications/cancelled" && flights.has(params?.requestId as RequestId);
    },
    deliver: (message) => {
      if (!("method" in message)) return;
      if ("id" in message) {
        const listens = message.method === "subscriptions/listen";
        const flight: Flight = { message, stop: new AbortController(), listens, agreed: undefined, broken: false };
        flights.set(message.id, flight);
        return void request(flight, true);
      }
      // The gateway is told by the end of the request's stream.
      if (message.method === "notifications/cancelled") cancel(message.params?.["requestId"] as RequestId);
    },
    close: async () => {
      for (const id of flights.keys()) cancel(id);
      await (await remote?.catch(() => undefined))?.close();
    },
  };
};
