/** Fuzzes the stdio transport with a real process behind real pipes, below both engines. */
import * as fc from "fast-check";
import { fileURLToPath } from "node:url";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { lift } from "../../src/core/answer.ts";
import type { EngineSession } from "../../src/core/contracts.ts";
import { type Era, StdioEndpoint } from "../../src/core/endpoint.ts";
import { Cancelled } from "../../src/core/errors.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { modernEngine } from "../../src/plugins/engines/modern.ts";
import { stdioTransport } from "../../src/transports/stdio.ts";
import { connectEngine, type Heard, newHeard, testSettings } from "../support/engine-peer.ts";
import { nodeBinary } from "../support/node-binary.ts";
import { chunksOf, type Damage, damage, damaged, wireText } from "./bytes.ts";
import { handlers } from "./host.ts";
import { goodResult } from "./requests.ts";
import { addressed, countOf, serverMessage } from "./server-messages.ts";
import { Broken, demand, demandTyped, type Target, until, watch, type World } from "./target.ts";

interface Step {
  readonly messages: ReadonlyArray<unknown>;
  readonly damage: Damage;
}

const program = fileURLToPath(new URL("stdio-server.ts", import.meta.url));

class StdioWorld implements World<ReadonlyArray<Step>> {
  readonly #era: Era;
  #scope: Scope.Closeable | undefined;
  #session: EngineSession | undefined;
  #heard: Heard = newHeard();
  #lastId = 0;

  constructor(era: Era) {
    this.#era = era;
  }

  async #live(): Promise<EngineSession> {
    for (const error of this.#heard.closed) demandTyped(error, "the session");
    if (this.#session && this.#heard.closed.length === 0) return this.#session;
    await this.close();
    this.#heard = newHeard();
    this.#scope = Effect.runSync(Scope.make());
    const settings = { ...testSettings, messageMax: 20_000 };
    const context = { name: "fuzz", settings, era: this.#era, diagnose: () => {} };
    const endpoint = new StdioEndpoint({ name: "fuzz", command: nodeBinary, args: [program] });
    const opened = lift("stdio", () => stdioTransport.open(endpoint, context));
    const transport = await Effect.runPromise(Scope.provide(opened, this.#scope));
    const { send } = transport;
    transport.send = (message, options) => {
      if ("id" in message && "method" in message) this.#lastId = message.id as number;
      return send.call(transport, message, options);
    };
    const engine = this.#era === "legacy" ? legacyEngine : modernEngine;
    const { session } = await connectEngine(engine, transport, { handlers, heard: this.#heard });
    return (this.#session = session);
  }

  /** With `impatient`, a call that pauses between rounds is given up soon. */
  async #call(args: Record<string, unknown>, impatient: boolean): Promise<unknown> {
    const session = await this.#live();
    const controller = new AbortController();
    const { signal } = controller;
    const request = watch(session.request("tools/call", { name: "fuzz", arguments: args }, { signal }));
    const timer = impatient ? setTimeout(() => controller.abort(new Cancelled({ reason: "fuzz" })), 10) : undefined;
    await until(() => request.outcome() !== undefined);
    clearTimeout(timer);
    demand(await until(() => request.outcome() !== undefined), "a call did not settle");
    const outcome = request.outcome()!;
    if ("value" in outcome) return outcome.value;
    demandTyped(outcome.error, "a call");
    return undefined;
  }

  async feed(steps: ReadonlyArray<Step>): Promise<void> {
    for (const { messages, damage } of steps) {
      await this.#live();
      const text = messages.map((message) => `${wireText(addressed(message, this.#lastId + 1))}\n`).join("");
      const chunks = chunksOf(damaged(text, damage), damage.splits);
      await this.#call({ chunks: chunks.map((chunk) => Buffer.from(chunk).toString("base64")) }, true);
    }
    for (let attempt = 0; attempt < 3; attempt++) {
      // The bytes of a call that was given up may hold an answer to this one: odd ids hit upon later ones.
      if (JSON.stringify(await this.#call({}, false)) === JSON.stringify(goodResult("tools/call"))) return;
    }
    throw new Broken("three well-formed calls were not answered, in whatever session");
  }

  async close(): Promise<void> {
    const [session, scope] = [this.#session, this.#scope];
    this.#session = this.#scope = undefined;
    await session?.close();
    if (scope) await Effect.runPromise(Scope.close(scope, Exit.void));
  }
}

const target = (era: Era, weight: number): Target<ReadonlyArray<Step>> => ({
  name: `stdio, ${era}`,
  weight,
  script: fc.array(
    fc.record({
      messages: fc.array(serverMessage("tools/call"), { minLength: 1, maxLength: 15, size: "max" }),
      damage,
    }),
    { minLength: 1, maxLength: 20, size: "max" },
  ),
  count: (steps) =>
    steps.flatMap(({ messages }) => messages).reduce<number>((sum, message) => sum + countOf(message), 0),
  open: async () => new StdioWorld(era),
});

export const stdioTargets: ReadonlyArray<Target> = [target("legacy", 4), target("modern", 2)];
