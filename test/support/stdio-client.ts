/** The least of a client: requests by id over a stdio transport, so that a test sees the transport alone. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { lift } from "../../src/core/answer.ts";
import type { McpTransport } from "../../src/core/contracts.ts";
import { StdioEndpoint, type StdioEndpointOptions } from "../../src/core/endpoint.ts";
import type { McpError } from "../../src/core/errors.ts";
import { resolveSettings } from "../../src/core/resolve-settings.ts";
import type { McpSettingsInput } from "../../src/core/settings.ts";
import { stdioTransport } from "../../src/transports/stdio.ts";

export interface StdioClient {
  readonly transport: McpTransport;
  /** Every message received, in order. */
  readonly received: ReadonlyArray<any>;
  readonly diagnostics: ReadonlyArray<string>;
  /** How often `onclose` fired. */
  readonly closes: () => number;
  /** Settles at the first `onclose`. */
  readonly closed: Promise<void>;
  /** The response message, result or error; rejects when the connection ends. */
  readonly request: (method: string, params?: Record<string, unknown>) => Promise<any>;
  /** A tools/call; answers the text of its first content. */
  readonly call: (name: string, args?: Record<string, unknown>) => Promise<string>;
  readonly handshake: () => Promise<any>;
}

/** Opens the transport in the scope, without starting it; diagnostics are pushed to the list. */
export const openTransport = (
  options: Partial<StdioEndpointOptions> & { readonly command: string },
  settings: McpSettingsInput = {},
  diagnostics: Array<string> = [],
): Effect.Effect<McpTransport, McpError, Scope.Scope> =>
  Effect.gen(function* () {
    const endpoint = new StdioEndpoint({ name: "test", ...options });
    const context = {
      name: endpoint.name,
      settings: yield* resolveSettings(settings),
      era: "legacy",
      diagnose: (message: string) => void diagnostics.push(message),
    } as const;
    return yield* lift<McpTransport, McpError, Scope.Scope>("stdio", () => stdioTransport.open(endpoint, context));
  });

/** Opens the transport in the scope and starts it. */
export const openStdio = (
  options: Partial<StdioEndpointOptions> & { readonly command: string },
  settings: McpSettingsInput = {},
): Effect.Effect<StdioClient, McpError, Scope.Scope> =>
  Effect.gen(function* () {
    const diagnostics: Array<string> = [];
    const transport = yield* openTransport(options, settings, diagnostics);
    const received: Array<any> = [];
    const pending = new Map<number, { resolve: (message: any) => void; reject: (error: Error) => void }>();
    let closes = 0;
    let next = 1;
    let onClosed!: () => void;
    const closed = new Promise<void>((resolve) => (onClosed = resolve));
    Object.assign(transport, {
      onmessage: (message: any) => {
        received.push(message);
        if (message.method !== undefined) return;
        pending.get(message.id)?.resolve(message);
        pending.delete(message.id);
      },
      onclose: () => {
        closes += 1;
        for (const { reject } of pending.values()) reject(new Error("closed"));
        pending.clear();
        onClosed();
      },
    });
    yield* Effect.promise(() => transport.start());

    const request = (method: string, params: Record<string, unknown> = {}): Promise<any> =>
      new Promise((resolve, reject) => {
        const id = next++;
        pending.set(id, { resolve, reject });
        transport.send({ jsonrpc: "2.0", id, method, params }).catch((error: Error) => {
          pending.delete(id);
          reject(error);
        });
      });
    return {
      transport,
      received,
      diagnostics,
      closes: () => closes,
      closed,
      request,
      call: async (name, args = {}) =>
        (await request("tools/call", { name, arguments: args })).result.content[0].text as string,
      handshake: async () => {
        const answer = await request("initialize", {
          protocolVersion: "2025-06-18",
          capabilities: {},
          clientInfo: { name: "test", version: "1" },
        });
        await transport.send({ jsonrpc: "2.0", method: "notifications/initialized" });
        return answer;
      },
    };
  });
