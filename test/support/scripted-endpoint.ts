/**
 * A transport and an engine as plugins under the test's control: how each connection
 * attempt goes, what the session answers, when it dies. For tests of the core by
 * TestClock, where no real process may decide the timing.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type {
  EngineSession,
  McpTransport,
  ProtocolEngine,
  SessionListener,
  TransportPlugin,
} from "../../src/core/contracts.ts";
import type { McpEndpoint } from "../../src/core/endpoint.ts";
import { Cancelled, ConnectFailed, type McpError } from "../../src/core/errors.ts";

/** How one connection attempt goes. */
export type Attempt = "ok" | "fail" | "hang" | Deferred.Deferred<void, McpError>;

export interface ScriptedCall {
  readonly method: string;
  readonly params: Record<string, unknown> | undefined;
  readonly answer: (value: unknown) => void;
  readonly fail: (error: McpError) => void;
  /** Set when the request was cancelled. */
  cancelled: unknown;
  readonly progress: () => void;
}

export class ScriptedEndpoint implements McpEndpoint {
  readonly transportType = "scripted";
  readonly endpointId: string;
  readonly name: string;
  /** Successive attempts; the last one repeats. */
  attempts: Array<Attempt> = ["ok"];
  /** Answers requests at once when set; else they wait in `calls`. */
  answer: ((method: string, params: Record<string, unknown> | undefined) => unknown) | undefined = undefined;
  tools: ReadonlyArray<unknown> = [{ name: "echo", inputSchema: { type: "object" } }];
  opened = 0;
  closed = 0;
  live = 0;
  calls: Array<ScriptedCall> = [];
  listeners: Array<SessionListener> = [];

  constructor(name: string) {
    this.name = name;
    this.endpointId = `scripted:${name}`;
  }

  /** The live connection dies. */
  die(error?: McpError): void {
    this.listeners.at(-1)?.onClose(error);
  }
}

const idleTransport = (): McpTransport => ({
  start: async () => {},
  send: async () => {},
  close: async () => {},
});

export const scriptedTransport = (
  options: { readonly subprocess?: boolean } = {},
): TransportPlugin<ScriptedEndpoint> => ({
  kind: "scripted",
  subprocess: options.subprocess ?? true,
  gates: (endpoint, settings) => [
    { name: `mcp:${endpoint.name}`, capacity: settings.stdioEndpointMax },
    { name: "mcp:stdio", capacity: settings.stdioPoolMax },
  ],
  open: (endpoint) =>
    Effect.gen(function* () {
      endpoint.opened++;
      yield* Effect.acquireRelease(
        Effect.sync(() => endpoint.live++),
        () =>
          Effect.sync(() => {
            endpoint.live--;
            endpoint.closed++;
          }),
      );
      return idleTransport();
    }),
});

const session = (endpoint: ScriptedEndpoint): EngineSession => ({
  era: "legacy",
  protocolVersion: "2025-11-25",
  serverInfo: { name: endpoint.name, version: "1" },
  capabilities: { tools: { listChanged: true } },
  instructions: undefined,
  request: (method, params, { signal, onProgress }) =>
    new Promise((resolve, reject) => {
      if (method === "tools/list") return resolve({ tools: endpoint.tools });
      if (endpoint.answer) return resolve(endpoint.answer(method, params));
      const call: ScriptedCall = {
        method,
        params,
        answer: resolve,
        fail: reject,
        cancelled: undefined,
        progress: () => onProgress?.({ progress: 1 }),
      };
      endpoint.calls.push(call);
      signal.addEventListener("abort", () => {
        call.cancelled = signal.reason;
        reject(signal.reason);
      });
    }),
  notify: async () => {},
  close: async () => {},
});

export const scriptedEngine: ProtocolEngine = {
  era: "legacy",
  connect: (options) =>
    Effect.suspend(() => {
      const endpoint = options.endpoint as ScriptedEndpoint;
      const attempt = endpoint.attempts.length > 1 ? endpoint.attempts.shift()! : endpoint.attempts[0]!;
      const established = Effect.sync(() => {
        endpoint.listeners.push(options.listener);
        return session(endpoint);
      });
      if (attempt === "ok") return established;
      if (attempt === "hang") return Effect.never;
      if (attempt === "fail") {
        const { name: server, endpointId } = endpoint;
        return Effect.fail(new ConnectFailed({ server, endpointId, phase: "handshake", reason: "scripted failure" }));
      }
      return Effect.andThen(Deferred.await(attempt), established);
    }),
};

/** A cancellation the test itself asks for. */
export const cancelledByTest: Cancelled = new Cancelled({ reason: "test" });
