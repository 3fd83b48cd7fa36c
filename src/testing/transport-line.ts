/** A line to a real server for the transport contract: requests by id over a bare transport. */
import * as Effect from "effect/Effect";
import * as Scope from "effect/Scope";
import { lift } from "../core/answer.ts";
import type { McpTransport, TransportPlugin } from "../core/contracts.ts";
import { endpointName, type McpEndpoint } from "../core/endpoint.ts";
import type { McpError } from "../core/errors.ts";
import { resolveSettings } from "../core/resolve-settings.ts";
import type { McpSettingsInput } from "../core/settings.ts";

/** A request by method and params. */
export interface ContractRequest {
  readonly method: string;
  readonly params: Record<string, unknown>;
}

export interface TransportContractOptions<E extends McpEndpoint> {
  readonly plugin: TransportPlugin<E>;
  /** An endpoint that leads to a well-behaved MCP server of the legacy era. Asked anew for each connection. */
  readonly endpoint: () => E | Promise<E>;
  /** How the server gives a text back. Default: its tool `echo` answers its arguments as JSON text. */
  readonly echo?: {
    readonly request: (text: string) => ContractRequest;
    readonly answer: (result: any) => unknown;
  };
  /** Characters of the largest message tried. Default 1,000,000. */
  readonly largest?: number;
  /** Counts what the other side holds open (processes, sockets, sessions). Where given, nothing may stay behind. */
  readonly live?: () => number | Promise<number>;
  /** A request on which the server ends the connection without an answer. Leave out where there is none. */
  readonly hangUp?: ContractRequest;
  /** An endpoint nobody serves. */
  readonly unreachable?: () => E | Promise<E>;
  readonly settings?: McpSettingsInput;
}

type JSONRPCMessage = Parameters<McpTransport["send"]>[0];

export interface Line {
  readonly transport: McpTransport;
  readonly closes: () => number;
  readonly request: (request: ContractRequest) => Promise<any>;
  /** Closes the transport and the scope it was opened in. */
  readonly release: () => Promise<void>;
}

/** Opens an endpoint in the scope, without starting the transport. Closed with the scope, as the pool does it. */
export const openIn = <E extends McpEndpoint>(
  { plugin, settings }: TransportContractOptions<E>,
  endpoint: E,
  scope: Scope.Scope,
): Effect.Effect<McpTransport, McpError> =>
  Effect.flatMap(Effect.orDie(resolveSettings(settings)), (resolved) =>
    Effect.acquireRelease(
      lift<McpTransport, McpError, Scope.Scope>(plugin.kind, () =>
        plugin.open(endpoint, { name: endpointName(endpoint), settings: resolved, era: "legacy", diagnose: () => {} }),
      ),
      (opened) => Effect.promise(() => opened.close()),
      { interruptible: true },
    ),
  ).pipe(Scope.provide(scope));

export const wire = (transport: McpTransport): Omit<Line, "release"> => {
  const pending = new Map<unknown, { resolve: (result: unknown) => void; reject: (error: unknown) => void }>();
  let closes = 0;
  let lastId = 0;
  const onmessage = (message: JSONRPCMessage): void => {
    if ("method" in message) return;
    const waiter = pending.get(message.id);
    pending.delete(message.id);
    if (!("error" in message)) return waiter?.resolve(message.result);
    waiter?.reject(message.error.data instanceof Error ? message.error.data : message.error);
  };
  const onclose = (): void => {
    closes += 1;
    for (const waiter of pending.values()) waiter.reject(new Error("the connection closed"));
    pending.clear();
  };
  Object.assign(transport, { onmessage, onclose });
  const request: Line["request"] = ({ method, params }) =>
    new Promise((resolve, reject) => {
      const id = ++lastId;
      pending.set(id, { resolve, reject });
      transport.send({ jsonrpc: "2.0", id, method, params }).catch(reject);
    });
  return { transport, closes: () => closes, request };
};

export const handshake = async ({ transport, request }: Omit<Line, "release">): Promise<void> => {
  await transport.start();
  const clientInfo = { name: "contract", version: "1" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const result = await request({ method: "initialize", params });
  transport.setProtocolVersion?.(String(result.protocolVersion));
  await transport.send({ jsonrpc: "2.0", method: "notifications/initialized" });
};
