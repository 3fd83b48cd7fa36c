/**
 * Joins a host that only knows stdio to a gateway: its messages go to the gateway over
 * Streamable HTTP, the gateway's messages come back. When the gateway is lost, requests
 * under way fail, and the next message joins another one, without the host's notice.
 * A host speaks the revision it likes; this file is for those with a session.
 */
import { StreamableHTTPClientTransport, StreamableHTTPError } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import {
  isInitializeRequest,
  isJSONRPCRequest,
  isJSONRPCResultResponse,
  type JSONRPCMessage,
  type JSONRPCRequest,
  type RequestId,
} from "@modelcontextprotocol/sdk/types.js";
import { isMcpError } from "../../core/errors.ts";
import { type GatewayAddress, lost, notDelivered } from "./gateway-loss.ts";
import { makeModernLane } from "./shim-modern.ts";

export interface ShimOptions {
  /** Finds a gateway, or starts one. */
  readonly join: () => Promise<GatewayAddress>;
  readonly isAlive: (address: GatewayAddress) => Promise<boolean>;
}

type Remote = StreamableHTTPClientTransport & { readonly address: GatewayAddress };

const reopening = "nucleo-mcp-reopening";

/** Whether a message certainly did not reach a session. */
const notRun = (cause: unknown): boolean =>
  cause instanceof StreamableHTTPError ? cause.code === 404 : notDelivered(cause);

/** Settles when the host has gone. */
export const joinStdio = async ({ join, isAlive }: ShimOptions): Promise<void> => {
  const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
  const { stdin } = await import("node:process");
  const host = new StdioServerTransport();
  const pending = new Set<RequestId>();
  let initialize: JSONRPCRequest | undefined;
  let remote: Promise<Remote> | undefined;

  const toHost = (message: JSONRPCMessage): void => void host.send(message).catch(() => {});
  const fail = (id: RequestId, reason: string): void => {
    if (pending.delete(id)) toHost({ jsonrpc: "2.0", id, error: { code: -32000, message: reason } });
  };

  const onError = async (connection: Remote, lose: (error: Error) => void): Promise<void> => {
    if (await isAlive(connection.address)) return;
    lose(new Error("The gateway was lost"));
    if ((await remote?.catch(() => undefined)) === connection) remote = undefined;
    for (const id of pending) fail(id, lost);
    await connection.close();
  };

  /** Opens the session again that the host believes to have. */
  const reopen = async (connection: Remote, first: JSONRPCRequest, opened: Promise<void>): Promise<void> => {
    await connection.send({ ...first, id: reopening });
    await opened;
    await connection.send({ jsonrpc: "2.0", method: "notifications/initialized" });
    toHost({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
  };

  const open = async (): Promise<Remote> => {
    const address = await join();
    const requestInit = { headers: { authorization: `Bearer ${address.token}` } };
    const connection: Remote = Object.assign(new StreamableHTTPClientTransport(new URL(address.url), { requestInit }), {
      address,
    });
    const opened = new Promise<void>((resolve, reject) => {
      const onmessage = (message: JSONRPCMessage): void => {
        if ("id" in message && !("method" in message)) {
          if (isJSONRPCResultResponse(message) && (message.id === initialize?.id || message.id === reopening))
            connection.setProtocolVersion(String(message.result["protocolVersion"]));
          if (message.id === reopening) return resolve();
          if (message.id !== undefined) pending.delete(message.id);
        }
        toHost(message);
      };
      const onerror = (): void => void onError(connection, reject).catch(() => {});
      Object.assign(connection, { onmessage, onerror } satisfies Partial<Remote>);
    });
    opened.catch(() => {});
    await connection.start();
    if (initialize) await reopen(connection, initialize, opened);
    return connection;
  };

  const deliver = async (message: JSONRPCMessage, mayRepeat: boolean): Promise<void> => {
    const current = (remote ??= open());
    try {
      const connection = await current;
      if (isInitializeRequest(message)) initialize = message as JSONRPCRequest;
      await connection.send(message);
    } catch (cause) {
      if (remote === current) remote = undefined;
      if (initialize === message) initialize = undefined;
      if (mayRepeat && notRun(cause)) return deliver(message, false);
      // What the gateway answered, or why there is none, tells more than that a connection broke.
      const told = cause instanceof StreamableHTTPError || isMcpError(cause);
      if (isJSONRPCRequest(message)) fail(message.id, told ? cause.message : lost);
    }
  };

  const modern = makeModernLane(join, toHost);

  const onmessage = (message: JSONRPCMessage): void => {
    if (modern.takes(message)) return modern.deliver(message);
    if (isJSONRPCRequest(message)) pending.add(message.id);
    void deliver(message, true);
  };
  const gone = new Promise<void>((resolve) => {
    Object.assign(host, { onmessage, onclose: resolve } satisfies Partial<Transport>);
    for (const event of ["end", "close", "error"] as const) stdin.once(event, () => resolve());
  });
  await host.start();
  await gone;
  await modern.close();
  const last = await remote?.catch(() => undefined);
  await last?.terminateSession().catch(() => {});
  await last?.close();
};
