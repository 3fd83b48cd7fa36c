/**
 * A loopback HTTP server for tests: it records every request and answers as the test says,
 * down to single bytes and destroyed sockets, or as a well-behaved MCP server would.
 */
import * as Http from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { renderEvent } from "./http-line.ts";
import { answerMcp, type McpBehaviour } from "./http-mcp.ts";
import type { EventFields, HttpProgram } from "./http-program.ts";
import { followProgram } from "./http-steps.ts";

export interface RecordedRequest {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Http.IncomingHttpHeaders;
  readonly body: string;
  /** The body as JSON, when it is. */
  readonly rpc: any;
  /** What it was answered with; `undefined` while no head has been sent. */
  readonly status: number | undefined;
}

/** A started event stream. */
export interface EventWriter {
  /** True once the other side let go. */
  readonly closed: boolean;
  /** Writes one event; `data` that is no string is written as JSON. */
  readonly event: (event: EventFields) => void;
  readonly raw: (chunk: string | Uint8Array) => void;
  /** Settles when what was written has left, or the stream is closed. */
  readonly drained: () => Promise<void>;
  readonly end: () => void;
  /** Cuts the connection. */
  readonly destroy: () => void;
}

/** One request and the ways to answer it. */
export interface HttpExchange {
  readonly request: RecordedRequest;
  readonly server: ScriptedHttp;
  readonly json: (value: unknown, status?: number, headers?: Record<string, string>) => void;
  readonly text: (status: number, body?: string, headers?: Record<string, string>) => void;
  readonly stream: (headers?: Record<string, string>) => EventWriter;
  /** Sends this head, and leaves the body to the writer. */
  readonly open: (status: number, headers: Record<string, string>) => EventWriter;
  /** Answers the JSON-RPC request with a result, as JSON. */
  readonly result: (value: unknown) => void;
  /** Sends the head and this much of a body, and leaves it open. */
  readonly partial: (head: Record<string, string>, body: string) => void;
  /** Cuts the connection. */
  readonly destroy: () => void;
  /** True once the connection is gone. */
  readonly closed: boolean;
  /** Answers as a well-behaved MCP server. */
  readonly mcp: () => void;
}

export type HttpHandler = (exchange: HttpExchange) => void | Promise<void>;

const parse = (body: string): unknown => {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
};

const writer = (response: Http.ServerResponse): EventWriter => {
  const gone = new Promise<void>((resolve) => response.on("close", resolve));
  const state = { closed: false };
  let draining: Promise<void> | undefined;
  void gone.then(() => {
    state.closed = true;
  });
  const write = (chunk: string | Uint8Array): void => {
    if (!response.writableEnded && !response.destroyed) response.write(chunk);
  };
  return {
    get closed() {
      return state.closed;
    },
    event: (event) => write(renderEvent(event)),
    raw: write,
    // One listener for all who wait: many requests may write to one standing stream.
    drained: () => {
      if (state.closed || !response.writableNeedDrain) return Promise.resolve();
      draining ??= Promise.race([gone, new Promise<void>((resolve) => response.once("drain", resolve))]).finally(() => {
        draining = undefined;
      });
      return draining;
    },
    end: () => void response.end(),
    destroy: () => void response.socket?.destroy(),
  };
};

export class ScriptedHttp implements AsyncDisposable {
  readonly requests: Array<RecordedRequest> = [];
  /** Requests whose answer has not ended, and whose sender waits for it. */
  readonly inProgress: Set<RecordedRequest> = new Set();
  /** Open standing streams of the ready behaviour, by session. */
  readonly streams: Map<string, EventWriter> = new Map();
  readonly sessions: Set<string> = new Set();
  readonly sockets: Set<Socket> = new Set();
  /** Connections ever accepted. */
  connections = 0;
  handler: HttpHandler;
  readonly behaviour: McpBehaviour;
  readonly #server: Http.Server;
  readonly #ended = new AbortController();

  constructor(handler: HttpHandler, behaviour: McpBehaviour) {
    this.handler = handler;
    this.behaviour = behaviour;
    this.#server = Http.createServer((request, response) => this.#serve(request, response));
    this.#server.on("connection", (socket: Socket) => {
      this.connections += 1;
      this.sockets.add(socket);
      socket.on("close", () => this.sockets.delete(socket));
    });
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The MCP URL of the ready behaviour. */
  get url(): string {
    return `${this.origin}${this.behaviour.kind === "sse" ? "/sse" : "/mcp"}`;
  }

  /** The requests with this HTTP method, or the POSTs with this JSON-RPC method. */
  seen(method: string): ReadonlyArray<RecordedRequest> {
    return this.requests.filter((request) => request.method === method || request.rpc?.method === method);
  }

  /** Aborted when the server ends. */
  get ended(): AbortSignal {
    return this.#ended.signal;
  }

  /** Forgets all sessions and ends their standing streams. */
  restart(): void {
    this.sessions.clear();
    for (const stream of this.streams.values()) stream.destroy();
    this.streams.clear();
  }

  /** Forgets all sessions and cuts all connections, as a restart does. */
  cut(): void {
    this.restart();
    for (const socket of this.sockets) socket.destroy();
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    for (const socket of this.sockets) socket.destroy();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #serve(incoming: Http.IncomingMessage, response: Http.ServerResponse): void {
    const chunks: Array<Buffer> = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("end", () => {
      const body = Buffer.concat(chunks).toString("utf8");
      const { method = "GET", url: path = "/", headers } = incoming;
      const request = { method, path, headers, body, rpc: parse(body), status: undefined };
      this.requests.push(request);
      this.inProgress.add(request);
      response.on("close", () => this.inProgress.delete(request));
      void this.handler(this.#exchange(request, response));
    });
  }

  #exchange(
    request: { -readonly [K in keyof RecordedRequest]: RecordedRequest[K] },
    response: Http.ServerResponse,
  ): HttpExchange {
    const head = (status: number, headers: Record<string, string>): void => {
      request.status = status;
      response.writeHead(status, headers);
    };
    const open = (status: number, headers: Record<string, string>): EventWriter => {
      head(status, headers);
      response.flushHeaders();
      return writer(response);
    };
    const text = (status: number, body = "", headers: Record<string, string> = {}): void => {
      head(status, headers);
      response.end(body);
    };
    const json = (value: unknown, status = 200, headers: Record<string, string> = {}): void =>
      text(status, JSON.stringify(value), { "content-type": "application/json", ...headers });
    const exchange: HttpExchange = {
      request,
      server: this,
      text,
      json,
      result: (value) => json({ jsonrpc: "2.0", id: request.rpc?.id, result: value }),
      open,
      stream: (headers = {}) =>
        open(200, { "content-type": "text/event-stream", "cache-control": "no-cache", ...headers }),
      partial: (headers, body) => open(200, headers).raw(body),
      destroy: () => void response.socket?.destroy(),
      get closed() {
        return response.destroyed || (response.socket?.destroyed ?? false);
      },
      mcp: () => answerMcp(exchange),
    };
    return exchange;
  }
}

/**
 * Starts a server on a free loopback port. It does what the handler or the fault program
 * says; without either it behaves as an MCP server throughout.
 */
export const startScriptedHttp = (
  script: HttpHandler | HttpProgram = (exchange) => exchange.mcp(),
  behaviour: McpBehaviour = {},
): Promise<ScriptedHttp> =>
  typeof script === "function"
    ? new ScriptedHttp(script, behaviour).listen()
    : new ScriptedHttp(followProgram(script), { ...behaviour, ...script }).listen();
