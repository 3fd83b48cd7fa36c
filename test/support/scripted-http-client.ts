/** Drives an HTTP transport by plain JSON-RPC messages, as an engine would. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { lift } from "../../src/core/answer.ts";
import type { McpTransport, TransportContext } from "../../src/core/contracts.ts";
import { HttpEndpoint, type HttpEndpointOptions } from "../../src/core/endpoint.ts";
import type { McpError } from "../../src/core/errors.ts";
import { resolveSettings } from "../../src/core/resolve-settings.ts";
import type { McpSettingsInput } from "../../src/core/settings.ts";
import { httpTransport } from "../../src/transports/http.ts";
import { type HttpHandler, ScriptedHttp } from "../../src/testing/servers/http.ts";
import type { McpBehaviour } from "../../src/testing/servers/http-mcp.ts";

export interface HttpDriver {
  readonly transport: McpTransport;
  /** All messages but answers to requests of this driver. */
  readonly messages: Array<any>;
  readonly diagnostics: Array<string>;
  readonly closes: () => number;
  /** The result; fails with the typed error, or the server's JSON-RPC error object. */
  readonly request: (method: string, params?: Record<string, unknown>) => Effect.Effect<any, any>;
  /** As `request`, started at once. */
  readonly start: (
    method: string,
    params?: Record<string, unknown>,
  ) => { readonly id: number; readonly answer: Promise<any> };
  readonly send: (message: Record<string, unknown>) => Effect.Effect<void, McpError>;
  /** `initialize`, the protocol version, `notifications/initialized`. */
  readonly handshake: Effect.Effect<any, any>;
}

export interface DriverOptions extends Partial<HttpEndpointOptions> {
  readonly settings?: McpSettingsInput;
  readonly authorize?: TransportContext["authorize"];
  /** The era to open the transport for. Default: legacy. */
  readonly opens?: TransportContext["era"];
}

/** Opens the transport of an endpoint in the scope. */
export const openDriver = (
  url: string,
  { settings, authorize, opens = "legacy", ...endpoint }: DriverOptions = {},
): Effect.Effect<HttpDriver, any, Scope.Scope> =>
  Effect.gen(function* () {
    const diagnostics: Array<string> = [];
    const context: TransportContext = {
      name: "scripted",
      settings: yield* resolveSettings(settings),
      era: opens,
      diagnose: (message) => diagnostics.push(message),
      authorize,
    };
    const transport = yield* lift("http", () =>
      httpTransport.open(new HttpEndpoint({ flavor: "streamable-http", ...endpoint, url }), context),
    );
    const messages: Array<any> = [];
    const waiting = new Map<number, { resolve: (value: any) => void; reject: (error: unknown) => void }>();
    let closes = 0;
    let lastId = 0;
    const onmessage = (message: any): void => {
      const waiter = message.method === undefined ? waiting.get(message.id) : undefined;
      if (!waiter) return void messages.push(message);
      waiting.delete(message.id);
      if (message.error) waiter.reject(message.error.data instanceof Error ? message.error.data : message.error);
      else waiter.resolve(message.result);
    };
    const onclose = (): void => {
      closes += 1;
      for (const waiter of waiting.values()) waiter.reject(new Error("closed before any answer"));
      waiting.clear();
    };
    Object.assign(transport, { onmessage, onclose });
    const start: HttpDriver["start"] = (method, params) => {
      const id = ++lastId;
      const answer = new Promise<any>((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        transport.send({ jsonrpc: "2.0", id, method, ...(params ? { params } : {}) }).catch(reject);
      });
      answer.catch(() => {});
      return { id, answer };
    };
    const request: HttpDriver["request"] = (method, params) =>
      Effect.tryPromise({ try: () => start(method, params).answer, catch: (error) => error });
    const send: HttpDriver["send"] = (message) =>
      Effect.tryPromise({
        try: () => transport.send({ jsonrpc: "2.0", ...message } as any),
        catch: (error) => error as McpError,
      });
    yield* Effect.promise(() => transport.start());
    const handshake = Effect.gen(function* () {
      const result = yield* request("initialize", {
        protocolVersion: "2025-11-25",
        capabilities: {},
        clientInfo: { name: "test", version: "1" },
      });
      transport.setProtocolVersion?.(result.protocolVersion);
      yield* send({ method: "notifications/initialized" });
      return result;
    });
    return { transport, messages, diagnostics, closes: () => closes, request, start, send, handshake };
  });

/** A scripted server that ends with the scope. */
export const scriptedServer = (
  handler?: HttpHandler,
  behaviour?: McpBehaviour,
): Effect.Effect<ScriptedHttp, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(() => new ScriptedHttp(handler ?? ((exchange) => exchange.mcp()), behaviour ?? {}).listen()),
    (server) => Effect.promise(() => server[Symbol.asyncDispose]()),
  );

/** Waits, in real time, until a condition holds; dies after five seconds. */
export const until = (what: string, condition: () => boolean): Effect.Effect<void> =>
  Effect.promise(async () => {
    const deadline = performance.now() + 5000;
    while (!condition()) {
      if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  });
