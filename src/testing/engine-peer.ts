/** The server that the engine contract plays, and sessions with it. */
import * as Effect from "effect/Effect";
import type {
  EngineSession,
  HostHandlers,
  McpTransport,
  ProtocolEngine,
  SessionRequestOptions,
} from "../core/contracts.ts";
import { ConnectionLost, type McpError } from "../core/errors.ts";
import { resolveSettings } from "../core/resolve-settings.ts";
import { answerOf, eventually, runs, within } from "./contract-case.ts";

export type Message = { readonly [key: string]: any };

export interface EngineContractOptions {
  readonly engine: ProtocolEngine;
  /**
   * Results of the requests that open a session, by method. Default: those of a server
   * with tools for `initialize` and `server/discover`.
   */
  readonly opening?: Readonly<Record<string, (params: any) => unknown>>;
}

export const capabilities = { tools: {} };
export const serverInfo = { name: "contract", version: "1.2.3" };

export const defaultOpening: NonNullable<EngineContractOptions["opening"]> = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities, serverInfo, instructions: "Hi." }),
  "server/discover": (params) => ({
    supportedVersions: [params._meta["io.modelcontextprotocol/protocolVersion"]],
    capabilities,
    serverInfo,
    instructions: "Hi.",
    _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
  }),
};

/** The server's side, in the hands of a case. */
export class Peer {
  readonly sent: Array<Message> = [];
  readonly transport: McpTransport;
  /** Makes `send` reject. */
  refuse: ((message: Message) => unknown) | undefined = undefined;
  #ended = false;

  constructor(opening: NonNullable<EngineContractOptions["opening"]>) {
    this.transport = {
      start: async () => {},
      send: async (message) => {
        const copy: Message = JSON.parse(JSON.stringify(message));
        const refusal = this.refuse?.(copy);
        if (refusal !== undefined) throw refusal;
        if (this.#ended) throw new ConnectionLost({ server: "peer", outcome: "not-sent", reason: "it is closed" });
        this.sent.push(copy);
        const answer = opening[copy["method"]];
        if (answer) queueMicrotask(() => this.say({ id: copy["id"], result: answer(copy["params"]) }));
      },
      close: async () => this.hangUp(),
    };
  }

  say(message: Message): void {
    this.transport.onmessage?.({ jsonrpc: "2.0", ...message } as never);
  }

  hangUp(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.transport.onclose?.();
  }

  /** Waits for `count` messages of the method. */
  async heard(method: string, count = 1): Promise<ReadonlyArray<Message>> {
    const those = () => this.sent.filter((message) => message["method"] === method);
    await eventually(`${count} message(s) ${method}`, () => those().length >= count);
    return those();
  }

  /** Waits for the engine's answer to the server's own request. */
  async answerTo(id: unknown): Promise<Message> {
    const found = () => this.sent.find((message) => message["method"] === undefined && message["id"] === id);
    await eventually(`an answer to request ${String(id)}`, () => found() !== undefined);
    return found()!;
  }
}

export interface Live {
  readonly peer: Peer;
  readonly session: EngineSession;
  readonly notifications: Array<readonly [string, Message]>;
  readonly closed: Array<McpError | undefined>;
  /** A tools/call of this name. */
  readonly call: (name: string, options?: Partial<SessionRequestOptions>) => Promise<any>;
}

export interface Given {
  readonly handlers?: HostHandlers;
  readonly signal?: AbortSignal;
  /** Sees the peer before the engine does. */
  readonly use?: (peer: Peer) => void;
}

export const connect = async (
  { engine, opening = defaultOpening }: EngineContractOptions,
  given: Given = {},
): Promise<Live> => {
  const peer = new Peer(opening);
  given.use?.(peer);
  const notifications: Live["notifications"] = [];
  const closed: Live["closed"] = [];
  const settings = await runs(Effect.orDie(resolveSettings()));
  const session = await answerOf("connect", () =>
    engine.connect({
      endpoint: { transportType: "contract", endpointId: "contract:peer", name: "peer" },
      name: "peer",
      transport: peer.transport,
      clientInfo: { name: "contract-host", version: "1.0.0" },
      handlers: given.handlers ?? {},
      settings,
      listener: {
        onNotification: (method, params) => notifications.push([method, params]),
        onClose: (error) => closed.push(error),
        onDiagnostic: () => {},
      },
      signal: given.signal ?? new AbortController().signal,
    }),
  );
  const call: Live["call"] = (name, options) =>
    session.request("tools/call", { name, arguments: {} }, { signal: new AbortController().signal, ...options });
  return { peer, session, notifications, closed, call };
};

export type WithSession = (use: (live: Live) => Promise<void>, given?: Given) => () => Promise<void>;

/** A case that runs in a session of its own and ends it. */
export const sessionsOf =
  (options: EngineContractOptions): WithSession =>
  (use, given) =>
  async () => {
    const live = await connect(options, given);
    await use(live);
    await within("close()", live.session.close());
  };
