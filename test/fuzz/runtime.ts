/** Fuzzes a whole runtime over the in-memory transport: lists become tools, results become what models read. */
import * as fc from "fast-check";
import { setTimeout as sleep } from "node:timers/promises";
import type { Era } from "../../src/core/endpoint.ts";
import { createRuntime, InMemoryEndpoint, type McpRuntime, ports } from "../../src/mod.ts";
import { handlers } from "./host.ts";
import { goodResult, type Json, paramsOf } from "./requests.ts";
import { addressed, countOf, serverMessage } from "./server-messages.ts";
import { Broken, demand, demandTyped, type Target, until, watch, type World } from "./target.ts";

type Client = Awaited<ReturnType<McpRuntime["client"]>>;

/** What the host does, and the method at the server that it leads to. */
const verbs: Readonly<Record<string, (client: Client, signal: AbortSignal) => Promise<unknown>>> = {
  "tools/call": (client, signal) => client.callTool("echo", { q: "a" }, { signal, onProgress: () => {} }),
  "prompts/list": (client, signal) => client.listPrompts({ signal }),
  "prompts/get": (client, signal) => client.getPrompt("p", {}, { signal }),
  "resources/list": (client, signal) => client.listResources({ signal }),
  "resources/templates/list": (client, signal) => client.listResourceTemplates({ signal }),
  "resources/read": (client, signal) => client.readResource("file:///a", { signal }),
  "completion/complete": (client, signal) => client.complete(paramsOf("completion/complete")!, { signal }),
};

interface Step {
  /** A verb, or `list`: all tools of the runtime; `tool`: a call by the name that models see. */
  readonly verb: string;
  readonly message: unknown;
}

class RuntimeWorld implements World<ReadonlyArray<Step>> {
  readonly #endpoint: InMemoryEndpoint;
  #runtime: McpRuntime | undefined;
  #held: { readonly method: string; readonly message: unknown } | undefined;
  #say: (message: unknown) => void = () => {};

  constructor(era: Era) {
    this.#endpoint = new InMemoryEndpoint({
      name: "fuzz",
      era,
      connect: (transport) => {
        this.#say = (message) => void transport.send(message as never).catch(() => {});
        const onmessage = (message: unknown): void => this.#serve(message as Json);
        Object.assign(transport, { onmessage });
        return transport.start();
      },
    });
  }

  #serve({ id, method }: Json): void {
    if (id === undefined || typeof method !== "string") return;
    const say = this.#say;
    const answer = (): void => say({ jsonrpc: "2.0", id, result: goodResult(method) });
    if (method === "subscriptions/listen") return;
    if (method !== this.#held?.method) return queueMicrotask(answer);
    const { message } = this.#held;
    this.#held = undefined;
    queueMicrotask(() => {
      say(addressed(message, id as number));
      setImmediate(answer);
    });
  }

  async #live(): Promise<McpRuntime> {
    if (this.#runtime) return this.#runtime;
    const settings = { breakerCooldown: 1, minUptime: 1, listChangedDebounce: 1, listRetry: 1, shutdownGrace: 50 };
    const runtime = await createRuntime({
      settings,
      setup: (container) => void container.registerInstance(ports.hostHandlers.token, handlers),
    });
    await runtime.attach("fuzz", this.#endpoint);
    return (this.#runtime = runtime);
  }

  async #use(verb: string, signal: AbortSignal): Promise<unknown> {
    const runtime = await this.#live();
    if (verb === "list") {
      const tools = await runtime.tools({ signal });
      for (const { name } of tools)
        demand(/^[a-zA-Z0-9_-]{1,64}$/.test(name), `the name ${JSON.stringify(name)} is not legal`);
      return tools;
    }
    if (verb === "tool") {
      const result = await runtime.callTool({ tool: "fuzz__echo", arguments: { q: "a" } }, { signal });
      demand(runtime.modelText(result).trim() !== "", "the model reads nothing");
      return result;
    }
    await using client = await runtime.client(this.#endpoint, { signal });
    return await verbs[verb]!(client, signal);
  }

  async #step({ verb, message }: Step): Promise<void> {
    const runtime = await this.#live();
    const method = verb === "list" ? "tools/list" : verb === "tool" ? "tools/call" : verb;
    if (method.endsWith("/list"))
      this.#say({ jsonrpc: "2.0", method: `notifications/${method.split("/")[0]}/list_changed` });
    this.#held = { method, message };
    const controller = new AbortController();
    const used = watch(this.#use(verb, controller.signal));
    if (!(await until(() => used.outcome() !== undefined, 60))) controller.abort(new Broken("given up"));
    demand(await until(() => used.outcome() !== undefined), `${verb} did not settle`);
    const outcome = used.outcome()!;
    this.#held = undefined;
    if (!("error" in outcome) || outcome.error === controller.signal.reason) return;
    if (outcome.error instanceof Broken) throw outcome.error;
    demandTyped(outcome.error, verb);
    demand(runtime.presentError(outcome.error as never) !== "", "the error says nothing to a model");
  }

  async feed(steps: ReadonlyArray<Step>): Promise<void> {
    for (const step of steps) await this.#step(step);
    this.#held = undefined;
    for (let attempt = 0; attempt < 5; attempt++) {
      const answered = watch(this.#use("tools/call", AbortSignal.timeout(5000)));
      demand(await until(() => answered.outcome() !== undefined), "a well-formed call did not settle");
      const outcome = answered.outcome()!;
      if ("value" in outcome)
        return demand(
          JSON.stringify(outcome.value).includes("alive"),
          `it was answered with ${JSON.stringify(outcome)}`,
        );
      demandTyped(outcome.error, "a well-formed call");
      // A connection that was lost, or the breaker's millisecond.
      await sleep(2);
    }
    throw new Broken("no connection lasts for one call");
  }

  async close(): Promise<void> {
    await this.#runtime?.close();
    this.#runtime = undefined;
  }
}

const step = fc.oneof(
  ...Object.keys(verbs).map((verb) => fc.record({ verb: fc.constant(verb), message: serverMessage(verb) })),
  fc.record({ verb: fc.constant("list"), message: serverMessage("tools/list") }),
  fc.record({ verb: fc.constant("tool"), message: serverMessage("tools/call") }),
);

const target = (era: Era, weight: number): Target<ReadonlyArray<Step>> => ({
  name: `in-memory runtime, ${era}`,
  weight,
  script: fc.array(step, { minLength: 1, maxLength: 40, size: "max" }),
  count: (steps) => steps.reduce((sum, { message }) => sum + countOf(message), 0),
  open: async () => new RuntimeWorld(era),
  scriptsPerWorld: 50,
});

export const runtimeTargets: ReadonlyArray<Target> = [target("legacy", 6), target("modern", 4)];
