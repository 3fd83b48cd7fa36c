/** Fuzzes the WebSocket transport below a real engine, on a socket that lives in memory. */
import * as fc from "fast-check";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { lift } from "../../src/core/answer.ts";
import type { EngineSession } from "../../src/core/contracts.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { WebSocketEndpoint, websocketTransport } from "../../src/transports/websocket.ts";
import { connectEngine, type Heard, newHeard, testSettings } from "../support/engine-peer.ts";
import { damage, type Damage, damaged, wireText } from "./bytes.ts";
import { handlers } from "./host.ts";
import { goodResult, methods, paramsOf } from "./requests.ts";
import { addressed, countOf, serverMessage } from "./server-messages.ts";
import { Broken, demand, demandTyped, type Target, until, watch, type World } from "./target.ts";

interface Step {
  readonly method: string;
  readonly message: unknown;
  readonly damage: Damage;
  readonly frame: "text" | "binary" | "long" | "error" | "close";
}

/** The part of `WebSocket` that a client sees; the server's side is `onsend`. */
class FakeSocket extends EventTarget {
  static last: FakeSocket | undefined;
  readonly CONNECTING = 0;
  readonly OPEN = 1;
  readonly CLOSING = 2;
  readonly CLOSED = 3;
  readyState = 0;
  lastId = 0;
  held: string | undefined;

  constructor() {
    super();
    FakeSocket.last = this;
    queueMicrotask(() => {
      this.readyState = this.OPEN;
      this.dispatchEvent(new Event("open"));
    });
  }

  send(text: string): void {
    const { id, method } = JSON.parse(text) as { readonly id?: number; readonly method?: string };
    if (id === undefined || method === undefined) return;
    this.lastId = id;
    if (method === this.held) this.held = undefined;
    else queueMicrotask(() => this.say(JSON.stringify({ jsonrpc: "2.0", id, result: goodResult(method) })));
  }

  say(data: unknown): void {
    if (this.readyState === this.OPEN) this.dispatchEvent(new MessageEvent("message", { data }));
  }

  close(code = 1000): void {
    if (this.readyState === this.CLOSED) return;
    this.readyState = this.CLOSED;
    this.dispatchEvent(Object.assign(new Event("close"), { code, reason: "" }));
  }
}

class WebSocketWorld implements World<ReadonlyArray<Step>> {
  readonly #real = globalThis.WebSocket;
  #session: EngineSession | undefined;
  #scope: Scope.Closeable | undefined;
  #heard: Heard = newHeard();
  /** Faults in listeners; a host would end by them. */
  #thrown: unknown;
  readonly #onThrown = (event: Event): void => {
    event.preventDefault();
    this.#thrown ??= (event as ErrorEvent).error;
  };

  constructor() {
    globalThis.WebSocket = FakeSocket as unknown as typeof WebSocket;
    globalThis.addEventListener?.("error", this.#onThrown);
  }

  async #live(): Promise<EngineSession> {
    for (const error of this.#heard.closed) demandTyped(error, "the session");
    if (this.#session && this.#heard.closed.length === 0) return this.#session;
    await this.#disconnect();
    this.#heard = newHeard();
    this.#scope = Effect.runSync(Scope.make());
    const context = {
      name: "fuzz",
      settings: { ...testSettings, messageMax: 20_000 },
      era: "legacy" as const,
      diagnose: () => {},
    };
    const endpoint = new WebSocketEndpoint({ url: "ws://fuzz.test/mcp" });
    const opened = lift("websocket", () => websocketTransport.open(endpoint, context));
    const transport = await Effect.runPromise(Scope.provide(opened, this.#scope));
    const { session } = await connectEngine(legacyEngine, transport, { handlers, heard: this.#heard });
    return (this.#session = session);
  }

  async #disconnect(): Promise<void> {
    const [session, scope] = [this.#session, this.#scope];
    this.#session = this.#scope = undefined;
    await session?.close();
    if (scope) await Effect.runPromise(Scope.close(scope, Exit.void));
  }

  #deliver(socket: FakeSocket, { message, damage, frame }: Step): void {
    const text = wireText(addressed(message, socket.lastId));
    if (frame === "binary") return socket.say(new Blob([text]));
    if (frame === "error")
      return void socket.dispatchEvent(Object.assign(new Event("error"), { message: text.slice(0, 50) }));
    if (frame === "close") return socket.close(1006);
    // Runtimes refuse invalid UTF-8 in text frames themselves: what arrives is text.
    const bytes =
      frame === "long" ? damaged(`${" ".repeat(25_000)}${text}`, { ...damage, edits: [] }) : damaged(text, damage);
    socket.say(new TextDecoder().decode(bytes));
  }

  async #step(step: Step): Promise<void> {
    const { method } = step;
    const session = await this.#live();
    const socket = FakeSocket.last!;
    socket.held = method;
    const request = watch(session.request(method, paramsOf(method), { signal: new AbortController().signal }));
    await until(() => socket.held === undefined);
    const id = socket.lastId;
    this.#deliver(socket, step);
    socket.say(JSON.stringify({ jsonrpc: "2.0", id, result: goodResult(method) }));
    demand(await until(() => request.outcome() !== undefined), `${method} did not settle`);
    const outcome = request.outcome()!;
    if ("error" in outcome) demandTyped(outcome.error, method);
    if (this.#thrown) throw this.#thrown;
  }

  async feed(steps: ReadonlyArray<Step>): Promise<void> {
    for (const step of steps) await this.#step(step);
    const session = await this.#live();
    const result = await session.request("tools/call", { name: "echo" }, { signal: new AbortController().signal });
    if (JSON.stringify(result) !== JSON.stringify(goodResult("tools/call"))) throw new Broken(JSON.stringify(result));
    this.#heard.notifications.length = this.#heard.diagnostics.length = 0;
  }

  async close(): Promise<void> {
    await this.#disconnect();
    globalThis.WebSocket = this.#real;
    globalThis.removeEventListener?.("error", this.#onThrown);
  }
}

const step = (method: string): fc.Arbitrary<Step> =>
  fc.record({
    method: fc.constant(method),
    message: serverMessage(method),
    damage,
    frame: fc.oneof(
      { weight: 30, arbitrary: fc.constant("text" as const) },
      { weight: 2, arbitrary: fc.constantFrom("binary" as const, "error") },
      { weight: 3, arbitrary: fc.constant("long" as const) },
      { weight: 1, arbitrary: fc.constant("close" as const) },
    ),
  });

export const websocketTarget: Target<ReadonlyArray<Step>> = {
  name: "websocket",
  weight: 5,
  script: fc.array(fc.oneof(...methods.map(step)), { minLength: 1, maxLength: 40, size: "max" }),
  count: (steps) => steps.reduce((sum, { message }) => sum + countOf(message), 0),
  open: async () => new WebSocketWorld(),
};
