/** Fuzzes the engines over a transport that lives in memory: answers, questions and news, and openings. */
import * as fc from "fast-check";
import type { EngineSession, McpTransport, ProtocolEngine } from "../../src/core/contracts.ts";
import { Cancelled } from "../../src/core/errors.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { modernEngine } from "../../src/plugins/engines/modern.ts";
import { connectEngine, type Heard, newHeard } from "../support/engine-peer.ts";
import { handlers } from "./host.ts";
import { goodResult, type Json, methods, paramsOf } from "./requests.ts";
import { addressed, countOf, serverMessage } from "./server-messages.ts";
import { demand, demandTyped, microtasks, type Target, until, watch, type World } from "./target.ts";

/** A request of the client, and what the server says while it waits for its answer. */
export interface Step {
  readonly method: string;
  readonly message: unknown;
}

/** Steps whose requests are chosen of these methods. */
export const stepsOf = (chosen: ReadonlyArray<string>, maxLength = 50): fc.Arbitrary<ReadonlyArray<Step>> =>
  fc.array(
    fc.oneof(...chosen.map((method) => fc.record({ method: fc.constant(method), message: serverMessage(method) }))),
    { minLength: 1, maxLength, size: "max" },
  );

export const countSteps = (steps: ReadonlyArray<Step>): number =>
  steps.reduce((sum, { message }) => sum + countOf(message), 0);

/** The server's end: answers well, but for the one request that a step holds back. */
class Peer {
  lastId = 0;
  /** Methods whose first request is not answered. */
  held: string | undefined;
  pongs = 0;
  readonly transport: McpTransport = {
    start: async () => {},
    send: async (message) => {
      const { id, method } = message as Json;
      if (id === "fuzz-ping") this.pongs++;
      if (typeof method !== "string" || id === undefined) return;
      this.lastId = id as number;
      if (method === this.held) this.held = undefined;
      else queueMicrotask(() => this.answer(id, method));
    },
    close: async () => {},
  };

  say(message: unknown): void {
    this.transport.onmessage?.(message as never);
  }

  answer(id: unknown, method: string): void {
    this.say({ jsonrpc: "2.0", id, result: goodResult(method) });
  }
}

class EngineWorld implements World<ReadonlyArray<Step>> {
  readonly #engine: ProtocolEngine;
  #peer = new Peer();
  #heard: Heard = newHeard();
  #session: EngineSession | undefined;

  constructor(engine: ProtocolEngine) {
    this.#engine = engine;
  }

  async #live(): Promise<EngineSession> {
    if (this.#session && this.#heard.closed.length === 0) return this.#session;
    this.#peer = new Peer();
    this.#heard = newHeard();
    const { session } = await connectEngine(this.#engine, this.#peer.transport, { handlers, heard: this.#heard });
    return (this.#session = session);
  }

  async #step({ method, message }: Step): Promise<void> {
    const session = await this.#live();
    const peer = this.#peer;
    const controller = new AbortController();
    // What a subscription asks the server is a request of another name.
    const asked = method === "resources/subscribe" && session.era === "modern" ? "subscriptions/listen" : method;
    peer.held = asked;
    const request = watch(
      session.request(method, paramsOf(method), { signal: controller.signal, onProgress: () => {} }),
    );
    const id = peer.lastId;
    peer.say(addressed(message, id));
    await microtasks(4);
    if (!request.outcome()) {
      // The real answer comes after all; it may be the second one.
      if (peer.held === undefined) peer.answer(id, asked);
      await microtasks(8);
    }
    if (!request.outcome()) await until(() => request.outcome() !== undefined, 3);
    if (!request.outcome()) {
      // A pause between rounds, or a subscription that is kept: the caller gives up.
      const reason = new Cancelled({ reason: "fuzz" });
      controller.abort(reason);
      demand(await until(() => request.outcome() !== undefined), `${method} did not settle when it was cancelled`);
    }
    const outcome = request.outcome()!;
    if ("error" in outcome) demandTyped(outcome.error, method);
    for (const error of this.#heard.closed) demandTyped(error, "the session");
    this.#heard.notifications.length = this.#heard.diagnostics.length = 0;
  }

  async feed(steps: ReadonlyArray<Step>): Promise<void> {
    for (const step of steps) await this.#step(step);
    const session = await this.#live();
    this.#peer.held = undefined;
    const answer = watch(session.request("tools/call", { name: "echo" }, { signal: new AbortController().signal }));
    await until(() => answer.outcome() !== undefined);
    const outcome = answer.outcome();
    demand(
      outcome !== undefined &&
        "value" in outcome &&
        JSON.stringify(outcome.value) === JSON.stringify(goodResult("tools/call")),
      `a well-formed request was answered with ${JSON.stringify(outcome)}`,
    );
    if (session.era !== "legacy") return;
    const before = this.#peer.pongs;
    this.#peer.say({ jsonrpc: "2.0", id: "fuzz-ping", method: "ping" });
    demand(await until(() => this.#peer.pongs > before), "a ping of the server was not answered");
  }

  async close(): Promise<void> {
    await this.#session?.close();
  }
}

const engineTarget = (engine: ProtocolEngine, weight: number): Target<ReadonlyArray<Step>> => ({
  name: `${engine.era} engine`,
  weight,
  script: stepsOf(methods),
  count: countSteps,
  open: async () => new EngineWorld(engine),
});

/** An opening: the first request is answered by the message, and then well. */
const openingTarget = (engine: ProtocolEngine, method: string, weight: number): Target<ReadonlyArray<Step>> => ({
  name: `${engine.era} opening`,
  weight,
  script: stepsOf([method], 20),
  count: countSteps,
  open: async () => ({
    feed: async (steps) => {
      for (const { message } of steps) {
        const peer = new Peer();
        peer.held = method;
        const heard = newHeard();
        const deadline = new AbortController();
        const { signal } = deadline;
        const connecting = watch(connectEngine(engine, peer.transport, { handlers, heard, signal }));
        await until(() => peer.held === undefined);
        const id = peer.lastId;
        peer.say(addressed(message, id));
        await microtasks(8);
        if (!connecting.outcome()) peer.answer(id, method);
        // A pause between rounds: the time for the opening is up.
        if (!(await until(() => connecting.outcome() !== undefined, 5)))
          deadline.abort(new Cancelled({ reason: "fuzz" }));
        demand(await until(() => connecting.outcome() !== undefined), `${method} did not settle`);
        const outcome = connecting.outcome()!;
        if ("error" in outcome) demandTyped(outcome.error, method);
        else {
          const { serverInfo, capabilities, protocolVersion } = outcome.value.session;
          demand(typeof serverInfo.name === "string" && typeof serverInfo.version === "string", "no name or version");
          demand(typeof capabilities === "object" && capabilities !== null, "no capabilities");
          demand(typeof protocolVersion === "string", "no protocol version");
          await outcome.value.session.close();
        }
      }
    },
    close: async () => {},
  }),
});

export const engineTargets: ReadonlyArray<Target> = [
  engineTarget(legacyEngine, 20),
  engineTarget(modernEngine, 20),
  openingTarget(legacyEngine, "initialize", 3),
  openingTarget(modernEngine, "server/discover", 3),
];
