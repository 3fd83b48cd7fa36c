/** Fuzzes the HTTP transports below a real engine: bodies, heads, streams, push, and the way to a session. */
import * as fc from "fast-check";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { lift } from "../../src/core/answer.ts";
import type { Era } from "../../src/core/endpoint.ts";
import { HttpEndpoint } from "../../src/core/endpoint.ts";
import type { EngineSession, McpTransport } from "../../src/core/contracts.ts";
import { Cancelled } from "../../src/core/errors.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { modernEngine } from "../../src/plugins/engines/modern.ts";
import { httpTransport } from "../../src/transports/http.ts";
import { connectEngine, type Heard, newHeard, testSettings } from "../support/engine-peer.ts";
import { chunksOf, type Damage, damage, damaged } from "./bytes.ts";
import { handlers } from "./host.ts";
import { answerFetch, OpenBody, respond, type Sent } from "./net.ts";
import { countReply, type Reply, replyTo, responseOf, streamText } from "./replies.ts";
import { goodResult, methods, paramsOf } from "./requests.ts";
import { addressed, countOf, serverMessage } from "./server-messages.ts";
import { type SseEvent, sseEvent } from "./sse.ts";
import { Broken, demand, demandTyped, type Target, until, watch, type Watched, type World } from "./target.ts";

type HttpFlavor = HttpEndpoint["flavor"];

/** What comes on the stream on which the server speaks unasked. */
interface Push {
  readonly messages: ReadonlyArray<unknown>;
  readonly events: ReadonlyArray<Omit<SseEvent, "data">>;
  readonly damage: Damage;
  readonly ending: "end" | "break" | "open";
}

interface Step {
  readonly method: string;
  /** Answers of the server, in turn; after them it answers well. */
  readonly replies: ReadonlyArray<Reply>;
  readonly push: Push | null;
}

interface Script {
  /** Present: a new connection is opened, and its requests are answered so first. */
  readonly opening: ReadonlyArray<Reply> | null;
  readonly steps: ReadonlyArray<Step>;
}

const json = (value: unknown, headers: ReadonlyArray<readonly [string, string]> = []): Response =>
  respond(200, [["content-type", "application/json"], ...headers], JSON.stringify(value));

const encoder = new TextEncoder();
const event = (message: unknown): ReadonlyArray<Uint8Array> => [
  encoder.encode(`\n\ndata: ${JSON.stringify(message)}\n\n`),
];

class HttpWorld implements World<Script> {
  readonly #era: Era;
  readonly #flavor: HttpFlavor;
  readonly #restore: () => void;
  #clock!: TestClock.TestClock;
  #heard: Heard = newHeard();
  #session: EngineSession | undefined;
  #scope: Scope.Closeable | undefined;
  #replies: Array<Reply> = [];
  /** The server's own stream. */
  #push: OpenBody | undefined;
  /** Answers that are not ended yet. */
  #bodies: Array<{ readonly body: OpenBody; readonly id: unknown; readonly method: string }> = [];
  #lastId = 0;
  #lastMethod = "";

  constructor(era: Era, flavor: HttpFlavor) {
    this.#era = era;
    this.#flavor = flavor;
    this.#restore = answerFetch((sent) => this.#answer(sent));
  }

  #answer({ method, headers, message, signal }: Sent): Response {
    if (method === "DELETE") return respond(200, [], undefined);
    if (method === "GET") {
      const body = new OpenBody(signal);
      if (headers.has("last-event-id") && this.#flavor !== "sse") {
        body.write(event({ jsonrpc: "2.0", id: this.#lastId, result: goodResult(this.#lastMethod) }));
        if (this.#push?.open) body.end();
      }
      if (this.#flavor === "sse") body.write([encoder.encode("event: endpoint\ndata: /messages\n\n")]);
      if (body.open) this.#push = body;
      return respond(200, [["content-type", "text/event-stream"]], body.stream);
    }
    const { id, method: asked } = message ?? {};
    if (id === undefined || asked === undefined) return respond(202, [], undefined);
    if (typeof id === "number") [this.#lastId, this.#lastMethod] = [id, asked];
    const reply = this.#replies.shift();
    if (reply) {
      const { response, body } = responseOf(reply, id, signal);
      if (body.open) this.#bodies.push({ body, id, method: asked });
      return response;
    }
    const answer = { jsonrpc: "2.0", id, result: goodResult(asked) };
    if (this.#flavor === "sse") {
      queueMicrotask(() => this.#push?.write(event(answer)));
      return respond(202, [], undefined);
    }
    return json(answer, asked === "initialize" ? [["mcp-session-id", `s${id}`]] : []);
  }

  #run<A, E>(effect: Effect.Effect<A, E>): Promise<A> {
    return Effect.runPromise(Effect.provideService(effect, Clock.Clock, this.#clock));
  }

  /** Bodies that are still open get the real answer, and end. */
  #finish(): void {
    for (const { body, id, method } of this.#bodies.splice(0)) {
      body.write(event({ jsonrpc: "2.0", id, result: goodResult(method) }));
      body.end();
    }
    if (this.#flavor === "sse")
      this.#push?.write(event({ jsonrpc: "2.0", id: this.#lastId, result: goodResult(this.#lastMethod) }));
  }

  /** Waits for the outcome; when nothing is left to do but wait, time passes. */
  async #settled(watched: Watched<unknown>): Promise<boolean> {
    const over = (): boolean => watched.outcome() !== undefined;
    if (await until(over, 20)) return true;
    for (let round = 0; round < 12; round++) {
      this.#finish();
      if (await until(over, 10)) return true;
      await this.#run(this.#clock.adjust("40 seconds"));
      if (await until(over, 10)) return true;
      // Losses are told by a timer that is due at once.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    // Modules are loaded in real time.
    return until(over);
  }

  async #open(): Promise<McpTransport> {
    this.#scope = Effect.runSync(Scope.make());
    const endpoint = new HttpEndpoint({ url: "http://fuzz.test/mcp", flavor: this.#flavor });
    const context = {
      name: "fuzz",
      settings: { ...testSettings, messageMax: 50_000 },
      era: this.#era,
      diagnose: () => {},
    };
    const opened = lift(httpTransport.kind, () => httpTransport.open(endpoint, context));
    return this.#run(Scope.provide(opened, this.#scope));
  }

  async #connect(replies: ReadonlyArray<Reply>): Promise<EngineSession | undefined> {
    await this.#disconnect();
    this.#clock ??= await Effect.runPromise(Effect.scoped(TestClock.make()) as Effect.Effect<TestClock.TestClock>);
    this.#replies = [...replies];
    this.#heard = newHeard();
    const engine = this.#era === "legacy" ? legacyEngine : modernEngine;
    const deadline = new AbortController();
    const given = { handlers, heard: this.#heard, signal: deadline.signal };
    const connecting = watch(this.#open().then((transport) => connectEngine(engine, transport, given)));
    if (!(await this.#settled(connecting))) deadline.abort(new Cancelled({ reason: "fuzz" }));
    demand(await this.#settled(connecting), "the opening did not settle");
    this.#replies = [];
    const outcome = connecting.outcome()!;
    if ("value" in outcome) return (this.#session = outcome.value.session);
    demandTyped(outcome.error, "the opening");
    if (replies.length === 0) throw new Broken("a well-behaved server was not reached", { cause: outcome.error });
    return undefined;
  }

  async #disconnect(): Promise<void> {
    const [session, scope] = [this.#session, this.#scope];
    this.#session = this.#scope = undefined;
    await session?.close();
    if (!scope) return;
    const closing = watch(Effect.runPromise(Scope.close(scope, Exit.void)));
    demand(await this.#settled(closing), "the transport did not close");
    const outcome = closing.outcome()!;
    if ("error" in outcome) throw outcome.error;
    this.#push = undefined;
    this.#bodies = [];
  }

  async #live(): Promise<EngineSession> {
    for (const error of this.#heard.closed) demandTyped(error, "the session");
    if (this.#session && this.#heard.closed.length === 0) return this.#session;
    return (await this.#connect([]))!;
  }

  async #step({ method, replies, push }: Step): Promise<void> {
    const session = await this.#live();
    if (push) {
      const { messages, events, damage, ending } = push;
      const text = streamText(
        messages.map((message) => addressed(message, this.#lastId + 1)),
        events,
      );
      this.#push?.write(chunksOf(damaged(text, damage), damage.splits));
      if (ending === "end") this.#push?.end();
      if (ending === "break") this.#push?.break();
    }
    this.#replies = [...replies];
    const controller = new AbortController();
    const request = watch(
      session.request(method, paramsOf(method), { signal: controller.signal, onProgress: () => {} }),
    );
    if (!(await this.#settled(request))) {
      // Rounds and subscriptions pause in real time: the caller gives up.
      demand(this.#era === "modern", `${method} did not settle`);
      controller.abort(new Cancelled({ reason: "fuzz" }));
      demand(await this.#settled(request), `${method} did not settle when it was cancelled`);
    }
    const outcome = request.outcome()!;
    if ("error" in outcome) demandTyped(outcome.error, method);
    this.#replies = [];
    this.#finish();
    this.#heard.notifications.length = this.#heard.diagnostics.length = 0;
  }

  async feed({ opening, steps }: Script): Promise<void> {
    if (opening) await this.#connect(opening);
    for (const step of steps) await this.#step(step);
    // A connection that ends later than its last request tells so: the next use connects afresh.
    for (let attempt = 0; attempt < 3; attempt++) {
      const session = await this.#live();
      const request = watch(session.request("tools/call", { name: "echo" }, { signal: new AbortController().signal }));
      demand(await this.#settled(request), "a well-formed request did not settle");
      const outcome = request.outcome()!;
      if ("error" in outcome) demandTyped(outcome.error, "a well-formed request");
      else if (JSON.stringify(outcome.value) === JSON.stringify(goodResult("tools/call"))) return;
      // Or the server's stream held an answer to this request already: odd ids hit upon later ones.
      await until(() => this.#heard.closed.length > 0, 50);
    }
    throw new Broken("three well-formed requests were not answered, in whatever session");
  }

  async close(): Promise<void> {
    try {
      await this.#disconnect();
    } finally {
      this.#restore();
    }
  }
}

const scriptFor = (chosen: ReadonlyArray<string>, opening: string, pushes: boolean): fc.Arbitrary<Script> => {
  const push: fc.Arbitrary<Push> = fc.record({
    messages: fc.array(serverMessage("ping"), { minLength: 1, maxLength: 8, size: "max" }),
    events: fc.array(sseEvent, { minLength: 8, maxLength: 8 }),
    damage,
    ending: fc.oneof(
      { weight: 12, arbitrary: fc.constant("open" as const) },
      { weight: 1, arbitrary: fc.constantFrom("end" as const, "break") },
    ),
  });
  const step = (method: string): fc.Arbitrary<Step> =>
    fc.record({
      method: fc.constant(method),
      replies: fc.array(replyTo(method, 8), { minLength: pushes ? 0 : 1, maxLength: 2 }),
      push: pushes ? fc.option(push, { freq: 3 }) : fc.constant(null),
    });
  return fc.record({
    opening: fc.option(fc.array(replyTo(opening, 3), { minLength: 1, maxLength: 3 }), { freq: 1 }),
    steps: fc.array(fc.oneof(...chosen.map(step)), { minLength: 1, maxLength: 20, size: "max" }),
  });
};

const countScript = ({ opening, steps }: Script): number =>
  [...(opening ?? []), ...steps.flatMap(({ replies }) => replies)].reduce((sum, reply) => sum + countReply(reply), 0) +
  steps.flatMap(({ push }) => push?.messages ?? []).reduce<number>((sum, message) => sum + countOf(message), 0);

const target = (name: string, era: Era, flavor: HttpFlavor, weight: number): Target<Script> => ({
  name,
  weight,
  script: scriptFor(
    methods.filter((method) => method !== "resources/subscribe"),
    era === "legacy" ? "initialize" : "server/discover",
    era === "legacy",
  ),
  count: countScript,
  open: async () => new HttpWorld(era, flavor),
});

export const httpTargets: ReadonlyArray<Target> = [
  target("streamable http", "legacy", "streamable-http", 4),
  target("auto http", "legacy", "auto", 1),
  target("legacy sse", "legacy", "sse", 3),
  target("modern http", "modern", "streamable-http", 3),
];
