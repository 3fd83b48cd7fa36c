/** A hand-written peer for protocol engines: the test reads what the client sent and says what it likes. */
import * as Effect from "effect/Effect";
import type {
  EngineSession,
  HostHandlers,
  McpTransport,
  ProtocolEngine,
  SessionRequestOptions,
} from "../../src/core/contracts.ts";
import type { McpEndpoint } from "../../src/core/endpoint.ts";
import type { McpError, ProcessEnd } from "../../src/core/errors.ts";
import { resolveSettings } from "../../src/core/resolve-settings.ts";
import type { McpSettings } from "../../src/core/settings.ts";

export type Message = { readonly [key: string]: any };

export interface RawPeer {
  readonly transport: McpTransport;
  /** All that the client sent, in order. */
  readonly sent: ReadonlyArray<Message>;
  /** Delivers anything to the client. */
  readonly say: (message: unknown) => void;
  /** The next message with this method that no `next` saw before; waits for it. */
  readonly next: (method: string) => Promise<Message>;
  /** The client's answer to the server's request of this id; waits for it. */
  readonly answerTo: (id: unknown) => Promise<Message>;
  /** Answers the next `initialize` and waits for `notifications/initialized`. */
  readonly welcome: (result?: Message) => Promise<Message>;
  readonly hangUp: () => void;
  /** Protocol versions the engine set on the transport. */
  readonly versions: ReadonlyArray<string>;
  /** When set, `send` rejects with what it answers. */
  refuse: ((message: Message) => unknown) | undefined;
  end: ProcessEnd;
}

export const welcomeResult = (protocolVersion: string): Message => ({
  protocolVersion,
  capabilities: { tools: {} },
  serverInfo: { name: "peer", version: "1.2.3" },
});

export const rawPeer = (): RawPeer => {
  const sent: Array<Message> = [];
  const unseen: Array<Message> = [];
  const versions: Array<string> = [];
  let waiting: Array<{ readonly match: (message: Message) => boolean; readonly found: (message: Message) => void }> =
    [];
  const await_ = (match: (message: Message) => boolean): Promise<Message> => {
    const index = unseen.findIndex(match);
    if (index >= 0) return Promise.resolve(unseen.splice(index, 1)[0]!);
    return new Promise((found) => waiting.push({ match, found }));
  };
  const transport: McpTransport = {
    start: async () => {},
    send: async (message) => {
      const copy: Message = JSON.parse(JSON.stringify(message));
      const refusal = peer.refuse?.(copy);
      if (refusal !== undefined) throw refusal;
      sent.push(copy);
      const waiter = waiting.find(({ match }) => match(copy));
      waiting = waiting.filter((other) => other !== waiter);
      if (waiter) waiter.found(copy);
      else unseen.push(copy);
    },
    close: async () => {},
    setProtocolVersion: (version) => versions.push(version),
    end: () => peer.end,
  };
  const peer: RawPeer = {
    transport,
    sent,
    versions,
    refuse: undefined,
    end: {},
    say: (message) => transport.onmessage?.(message as never),
    next: (method) => await_((message) => message["method"] === method),
    answerTo: (id) => await_((message) => message["method"] === undefined && message["id"] === id),
    welcome: async (result) => {
      const hello = await peer.next("initialize");
      const answer = result ?? welcomeResult(hello["params"].protocolVersion);
      peer.say({ jsonrpc: "2.0", id: hello["id"], result: answer });
      await peer.next("notifications/initialized");
      return hello;
    },
    hangUp: () => transport.onclose?.(),
  };
  return peer;
};

export const testEndpoint: McpEndpoint = { transportType: "test", endpointId: "test:peer", name: "peer" };
export const testSettings: McpSettings = Effect.runSync(resolveSettings());

export interface Heard {
  readonly notifications: Array<readonly [string, Message]>;
  readonly diagnostics: Array<string>;
  readonly closed: Array<McpError | undefined>;
}

export interface Connected extends Heard {
  readonly session: EngineSession;
  /** A request with a signal of its own. */
  readonly ask: (
    method: string,
    params?: Record<string, unknown>,
    options?: Partial<SessionRequestOptions>,
  ) => Promise<any>;
}

export interface Given {
  readonly handlers?: HostHandlers;
  readonly signal?: AbortSignal;
  readonly heard?: Heard;
}

export const newHeard = (): Heard => ({ notifications: [], diagnostics: [], closed: [] });

export const connectEngine = async (
  engine: ProtocolEngine,
  transport: McpTransport,
  { handlers = {}, signal = new AbortController().signal, heard = newHeard() }: Given = {},
): Promise<Connected> => {
  const session = await (engine.connect({
    endpoint: testEndpoint,
    name: "peer",
    transport,
    clientInfo: { name: "test-host", version: "1.0.0" },
    handlers,
    settings: testSettings,
    listener: {
      onNotification: (method, params) => heard.notifications.push([method, params]),
      onDiagnostic: (message) => heard.diagnostics.push(message),
      onClose: (error) => heard.closed.push(error),
    },
    signal,
  }) as Promise<EngineSession>);
  return {
    ...heard,
    session,
    ask: (method, params, options) =>
      session.request(method, params, { signal: new AbortController().signal, ...options }),
  };
};

/** A session with a raw peer, past the handshake. */
export const greeted = async (
  engine: ProtocolEngine,
  given: Given = {},
): Promise<Connected & { readonly peer: RawPeer }> => {
  const peer = rawPeer();
  const [connected] = await Promise.all([connectEngine(engine, peer.transport, given), peer.welcome()]);
  return { ...connected, peer };
};

/** What a promise rejects with. */
export const rejection = async (promise: Promise<unknown>): Promise<any> => {
  try {
    await promise;
  } catch (cause) {
    return cause;
  }
  throw new Error("the promise was expected to reject");
};
