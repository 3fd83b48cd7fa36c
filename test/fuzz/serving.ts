/** Fuzzes the gateway's side of servers: its HTTP handler, and a client on pipes. */
import * as fc from "fast-check";
import { PassThrough } from "node:stream";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { InMemoryEndpoint } from "../../src/mod.ts";
import { createGateway, type Gateway } from "../../src/serve.ts";
import { chunksOf, type Damage, damage, damaged, wireText } from "./bytes.ts";
import { clientMessage, initialize } from "./client-messages.ts";
import type { Json } from "./odd-values.ts";
import { goodResult } from "./requests.ts";
import { addressed, serverMessage } from "./server-messages.ts";
import { Broken, demand, type Target, until, watch, type World } from "./target.ts";

/** A gateway and the server behind it. */
interface Served {
  readonly gateway: Gateway;
  readonly say: (message: unknown) => void;
}

/** A gateway before one server, with a tool of its own. The server answers well, and says what it is told to. */
const makeGateway = async (): Promise<Served> => {
  let say = (_message: unknown): void => {};
  const gateway = await createGateway({
    settings: { shutdownGrace: 50 },
    serve: { tools: [{ name: "own", inputSchema: { type: "object" }, run: (args) => args }] },
  });
  const connect: InMemoryEndpoint["connect"] = (transport) => {
    const onmessage = (message: unknown): void => {
      const { id, method } = message as Json;
      if (id === undefined || typeof method !== "string" || method === "subscriptions/listen") return;
      void transport.send({ jsonrpc: "2.0", id: id as number, result: goodResult(method) as Record<string, unknown> });
    };
    Object.assign(transport, { onmessage });
    say = (message) => void transport.send(message as never).catch(() => {});
    return transport.start();
  };
  await gateway.runtime.attach("fuzz", new InMemoryEndpoint({ name: "fuzz", connect, era: "legacy" }));
  return { gateway, say: (message) => say(message) };
};

/** What an accident says, rather than somebody who looked at the message. */
const accident =
  /Cannot (convert|read|destructure|use 'in'|set)|is not (a function|iterable|an object)|Maximum call stack|\bat .*\.[jt]s:\d+/;

const call = (id: unknown): Json => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "fuzz__echo", arguments: {} },
});

interface HttpStep {
  readonly method: string;
  readonly headers: ReadonlyArray<readonly [string, string]>;
  readonly inSession: boolean;
  readonly message: unknown;
  readonly damage: Damage;
}

class HttpHandlerWorld implements World<ReadonlyArray<HttpStep>> {
  readonly #gateway: Gateway;
  readonly #handler: ReturnType<Gateway["http"]>;
  #session: string | undefined;

  constructor(gateway: Gateway) {
    this.#gateway = gateway;
    this.#handler = gateway.http({ sessionsMax: 20, bodyMax: 100_000 });
  }

  async #send(method: string, headers: ReadonlyArray<readonly [string, string]>, body?: Uint8Array): Promise<Response> {
    const init: RequestInit = { method, headers: headers as Array<[string, string]> };
    if (body && method !== "GET" && method !== "HEAD") init.body = body as Uint8Array<ArrayBuffer>;
    const answered = watch(this.#handler.fetch(new Request("http://localhost/mcp", init)));
    demand(await until(() => answered.outcome() !== undefined), "no response");
    const outcome = answered.outcome()!;
    if ("error" in outcome) throw new Broken("the handler rejected", { cause: outcome.error });
    return outcome.value;
  }

  /** Reads a body; one that stays open, as streams may, is given up by its reader. */
  async #text(response: Response, patient: boolean): Promise<string> {
    const reader = response.body?.getReader();
    let text = "";
    for (;;) {
      const next = watch(reader?.read() ?? Promise.resolve({ done: true as const, value: undefined }));
      if (!(await until(() => next.outcome() !== undefined, patient ? undefined : 15))) break;
      const outcome = next.outcome()!;
      if ("error" in outcome) throw outcome.error;
      if (outcome.value.done) return text;
      text += new TextDecoder().decode(outcome.value.value);
    }
    await reader?.cancel();
    return text;
  }

  readonly #plain: ReadonlyArray<readonly [string, string]> = [
    ["content-type", "application/json"],
    ["accept", "application/json, text/event-stream"],
  ];

  async #inSession(): Promise<string> {
    if (this.#session !== undefined) return this.#session;
    const response = await this.#send("POST", this.#plain, new TextEncoder().encode(JSON.stringify(initialize)));
    await this.#text(response, true);
    const session = response.headers.get("mcp-session-id");
    if (session === null) throw new Broken(`no session was opened: HTTP ${response.status}`);
    return (this.#session = session);
  }

  async feed(steps: ReadonlyArray<HttpStep>): Promise<void> {
    for (const { method, headers, inSession, message, damage } of steps) {
      const session = inSession ? [["mcp-session-id", await this.#inSession()] as const] : [];
      const response = await this.#send(
        method,
        [...this.#plain, ...session, ...headers],
        damaged(wireText(message), damage),
      );
      demand(response.status >= 200 && response.status < 600 && response.status !== 500, `HTTP ${response.status}`);
      const text = await this.#text(response, false);
      demand(!accident.test(text), `an accident is what the client was told: ${text}`);
    }
    for (let attempt = 0; attempt < 2; attempt++) {
      const headers = [...this.#plain, ["mcp-session-id", await this.#inSession()] as const];
      const response = await this.#send("POST", headers, new TextEncoder().encode(JSON.stringify(call("good"))));
      const text = await this.#text(response, true);
      if (response.status === 200) {
        demand(text.includes("alive"), `a well-formed call was answered with ${text}`);
        break;
      }
      demand(response.status === 404 && attempt === 0, `a well-formed call was answered with HTTP ${response.status}`);
      this.#session = undefined;
    }
    demand(this.#handler.sessions() <= 20, "more sessions than allowed");
  }

  async close(): Promise<void> {
    await this.#gateway.close();
  }
}

interface PipeStep {
  readonly message: unknown;
  /** What the server behind the gateway says meanwhile. */
  readonly news: unknown;
  readonly damage: Damage;
}

class PipeWorld implements World<ReadonlyArray<PipeStep>> {
  readonly #gateway: Gateway;
  readonly #say: Served["say"];
  readonly #input = new PassThrough();
  readonly #output = new PassThrough();
  readonly #answers = new Set<unknown>();
  #told: string | undefined;
  #calls = 0;

  constructor({ gateway, say }: Served) {
    this.#gateway = gateway;
    this.#say = say;
    let line = "";
    this.#output.on("data", (chunk) => {
      const lines = (line + String(chunk)).split("\n");
      line = lines.pop() ?? "";
      for (const text of lines) {
        if (accident.test(text)) this.#told ??= text;
        this.#answers.add((JSON.parse(text) as Json)["id"]);
      }
    });
  }

  async start(): Promise<this> {
    await this.#gateway.connect(new StdioServerTransport(this.#input, this.#output));
    this.#input.write(`${JSON.stringify(initialize)}\n`);
    return this;
  }

  async feed(steps: ReadonlyArray<PipeStep>): Promise<void> {
    for (const { message, damage, news } of steps) {
      if (news !== null) this.#say(addressed(news, 1));
      for (const chunk of chunksOf(damaged(`${wireText(message)}\n`, damage), damage.splits)) this.#input.write(chunk);
    }
    const id = `good-${++this.#calls}`;
    this.#input.write(`\n${JSON.stringify(call(id))}\n`);
    demand(await until(() => this.#answers.has(id)), "a well-formed call was not answered");
    demand(this.#told === undefined, `an accident is what the client was told: ${this.#told}`);
    this.#answers.clear();
  }

  async close(): Promise<void> {
    await this.#gateway.close();
    this.#input.end();
  }
}

const header = fc.constantFrom<readonly [string, string]>(
  ["mcp-session-id", "other"],
  ["mcp-session-id", ""],
  ["mcp-protocol-version", "2025-06-18"],
  ["mcp-protocol-version", "2026-07-28"],
  ["mcp-protocol-version", "ÿ"],
  ["mcp-method", "tools/call"],
  ["mcp-name", "=?base64?%%%?="],
  ["last-event-id", "1"],
  ["content-type", "text/plain"],
  ["content-type", ";"],
  ["accept", "text/html"],
  ["accept", "text/event-stream"],
  ["content-length", "5"],
  ["host", "evil.example"],
  ["origin", "http://["],
  ["origin", "null"],
  ["authorization", "Bearer"],
);

const httpStep: fc.Arbitrary<HttpStep> = fc.record({
  method: fc.oneof(
    { weight: 30, arbitrary: fc.constant("POST") },
    { weight: 1, arbitrary: fc.constantFrom("GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH") },
  ),
  headers: fc.oneof(
    { weight: 3, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(header, { maxLength: 2 }) },
  ),
  inSession: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  message: clientMessage,
  damage: fc.oneof({ weight: 3, arbitrary: fc.constant({ edits: [], splits: [] }) }, { weight: 1, arbitrary: damage }),
});

const count = (steps: ReadonlyArray<{ readonly message: unknown }>): number =>
  steps.reduce((sum, { message }) => sum + (Array.isArray(message) ? Math.max(1, message.length) : 1), 0);

export const servingTargets: ReadonlyArray<Target> = [
  {
    name: "gateway, http",
    weight: 3,
    script: fc.array(httpStep, { minLength: 1, maxLength: 40, size: "max" }),
    count,
    open: async () => new HttpHandlerWorld((await makeGateway()).gateway),
  },
  {
    name: "gateway, stdio",
    weight: 3,
    script: fc.array(
      fc.record({ message: clientMessage, damage, news: fc.option(serverMessage("ping"), { freq: 3 }) }),
      { minLength: 1, maxLength: 40, size: "max" },
    ),
    count,
    open: async () => new PipeWorld(await makeGateway()).start(),
  },
];
