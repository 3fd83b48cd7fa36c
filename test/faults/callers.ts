/** Plays a load against a world through the public runtime, and records what came of it. */
import {
  type EndpointHealth,
  type HealthSnapshot,
  type McpEndpoint,
  ports,
  type RuntimeOptions,
} from "../../src/mod.ts";
import type { HostHandlers } from "../../src/plugin.ts";
import { type Face, type FaceClient, openFace } from "./face.ts";
import { type Action, fixedSettings, type HostBehaviour, type Limits, type Load } from "./load.ts";
import { Outcomes, type Outcome } from "./outcome.ts";
import type { FaultWorld } from "./world.ts";

/** All that the invariants look at. */
export interface Recording {
  readonly load: Load;
  readonly outcomes: ReadonlyArray<Outcome>;
  /** When all callers were done; none when the runtime was closed before. */
  readonly rest: HealthSnapshot | undefined;
  readonly closed: HealthSnapshot | undefined;
  readonly received: ReadonlyMap<string, number>;
  readonly leaks: ReadonlyArray<string>;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const answered = <A>(behaviour: HostBehaviour, value: A): Promise<A> | A => {
  if (behaviour === "throws") throw new Error("the host fails");
  if (behaviour === "slow") return pause(100).then(() => value);
  return behaviour === "never" ? new Promise<A>(() => {}) : value;
};

const handlersOf = (host: HostBehaviour): HostHandlers => ({
  sampling: () =>
    answered(host, { role: "assistant" as const, content: { type: "text" as const, text: "yes" }, model: "m" }),
  elicitation: { form: () => answered(host, { action: "accept" as const, content: {} }) },
  roots: () => answered(host, [{ uri: "file:///tmp" }]),
});

const optionsOf = ({ settings, resend, host }: Load): RuntimeOptions => ({
  settings: { ...fixedSettings, ...settings },
  resend,
  setup: (container) => {
    if (host !== "none") container.registerInstance(ports.hostHandlers.token, handlersOf(host));
  },
});

/** Within what everything has to settle, ms. */
const boundsOf = ({ settings }: Load) => {
  // A process slot is waited for as long as a connection, and one attempt may be repeated once.
  const acquire = 2 * fixedSettings.connectTimeout;
  const request = acquire + fixedSettings.admissionTimeout + settings.maxTotalTimeout;
  return {
    acquire,
    request: 2 * request,
    /** Calls wait for admission, listing may take some pages. */
    onClient: ({ do: verb, total = settings.maxTotalTimeout }: { readonly do: string } & Limits): number =>
      verb === "list" ? 3 * settings.maxTotalTimeout : total + (verb === "call" ? fixedSettings.admissionTimeout : 0),
    close: settings.shutdownGrace + 4 * settings.closeGrace,
  };
};

const progressOf = (given: Limits["progress"]) =>
  given && {
    onProgress: () => {
      if (given === "throws") throw new Error("the listener fails");
    },
  };
const limitsOf = ({ timeout, total, progress }: Limits) => ({
  ...(timeout !== undefined && { timeout }),
  ...(total !== undefined && { maxTotalTimeout: total }),
  ...progressOf(progress),
});

class Play {
  readonly outcomes = new Outcomes();
  readonly #world: FaultWorld;
  readonly #face: Face;
  readonly #bounds: ReturnType<typeof boundsOf>;
  readonly #attached: Array<readonly [handle: string, connector: never]> = [];
  /** Clients that nobody gives back before the runtime is closed. */
  readonly #kept: Array<FaceClient> = [];

  constructor(world: FaultWorld, face: Face, load: Load) {
    this.#world = world;
    this.#face = face;
    this.#bounds = boundsOf(load);
  }

  async attach(handle: string, endpoint: McpEndpoint, what: string): Promise<void> {
    const connector = await this.outcomes.watch({ what, to: "runtime", bound: 0 }, () =>
      this.#face.attach(handle, endpoint),
    );
    if (connector !== undefined) this.#attached.push([handle, connector as never]);
  }

  async caller(actions: ReadonlyArray<Action>, index: number): Promise<void> {
    for (const [step, action] of actions.entries()) await this.#act(action, `m${index}.${step}`);
  }

  async neighbour(calls: number): Promise<void> {
    for (let n = 0; n < calls; n++) {
      const marker = `n${n}`;
      const what = `call ${marker} of the neighbour`;
      await this.outcomes.watch({ what, to: "neighbour", marker, bound: this.#bounds.request }, () =>
        this.#face.callTool({ tool: "neighbour__echo", arguments: { marker } }, { maxTotalTimeout: 10_000 }),
      );
    }
  }

  async close(): Promise<void> {
    this.outcomes.closing = true;
    const expected = { what: "close of the runtime", to: "runtime" as const, bound: this.#bounds.close };
    await this.outcomes.watch(expected, () => this.#face.close());
  }

  async giveBack(): Promise<void> {
    for (const client of this.#kept.splice(0)) await this.#close(client, "late close of a client");
  }

  #close(client: FaceClient, what: string): Promise<void> {
    return this.outcomes.watch({ what, to: "runtime", bound: this.#bounds.close }, () => client.close());
  }

  #lease(marker: string, abort: number | undefined): Promise<FaceClient | undefined> {
    const expected = { what: `lease ${marker}`, to: "faulty" as const, bound: this.#bounds.acquire, abort };
    return this.outcomes.watch(expected, (signal) => this.#face.client(this.#world.faulty, signal));
  }

  async #act(action: Action, marker: string): Promise<void> {
    switch (action.do) {
      case "pause":
        return pause(action.ms);
      case "attach":
        return this.attach(action.handle, this.#world.faulty, `attach ${marker}`);
      case "detach": {
        const found = this.#attached.findIndex(([handle]) => handle === action.handle);
        const [, connector] = this.#attached.splice(found < 0 ? this.#attached.length : found, 1)[0] ?? [];
        if (connector === undefined) return;
        const expected = { what: `detach ${marker}`, to: "runtime" as const, bound: this.#bounds.close };
        return this.outcomes.watch(expected, () => this.#face.detach(connector));
      }
      case "tools": {
        const { abort, within } = action;
        const expected = { what: `tools ${marker}`, to: "faulty" as const, bound: this.#bounds.request, abort };
        await this.outcomes.watch(expected, (signal) => this.#face.tools({ within, signal }));
        return;
      }
      case "call":
        return this.#call(action, marker);
      default:
        return this.#borrow(action, marker);
    }
  }

  async #call(action: Extract<Action, { do: "call" }>, marker: string): Promise<void> {
    const { via, abort } = action;
    if (via === "client") return this.#borrow(action, marker);
    const what = `call ${marker} via ${via}`;
    const expected = { what, to: "faulty" as const, marker, bound: this.#bounds.request, abort };
    await this.outcomes.watch(expected, (signal) => {
      const options = { ...limitsOf(action), signal };
      return via === "runtime"
        ? this.#face.callTool({ tool: "faulty__echo", arguments: { marker } }, options)
        : this.#face.execute("faulty", { marker }, options);
    });
  }

  /** Borrows a client, uses it, and gives it back. */
  async #borrow(
    action: Exclude<Action, { do: "pause" | "attach" | "detach" | "tools" }>,
    marker: string,
  ): Promise<void> {
    const client = await this.#lease(marker, action.abort);
    if (!client) return;
    if (action.do === "lease") {
      await pause(action.hold);
      if (action.close === "never") return void this.#kept.push(client);
      const again = action.close === "twice" ? this.#close(client, `second close ${marker}`) : undefined;
      await this.#close(client, `close ${marker}`);
      return again;
    }
    const bound = this.#bounds.onClient(action);
    const what = `${action.do} ${marker} on a client`;
    const expected = { what, to: "faulty" as const, bound, abort: action.abort };
    await this.outcomes.watch(action.do === "call" ? { ...expected, marker } : expected, (signal) => {
      const options = { ...limitsOf(action), signal };
      if (action.do === "call") return client.callTool({ marker }, options);
      return action.do === "list" ? client.listTools(options) : client.ping(options);
    });
    await this.#close(client, `close ${marker}`);
  }
}

const isAtRest = (health: HealthSnapshot): boolean =>
  health.gates.every(({ name, used, waiting }) => waiting === 0 && (used === 0 || name === "mcp:stdio-processes"));

/** What is still attached has a record; it holds nothing. */
export const isConnected = ({ state, inFlight, users }: EndpointHealth): boolean =>
  state === "ready" || state === "connecting" || inFlight > 0 || users > 0;

/** Looks until nothing is held any more, at most a second: who was interrupted gives back on a later turn. */
const settled = async (face: Face, isSettled: (health: HealthSnapshot) => boolean): Promise<HealthSnapshot> => {
  for (let tries = 0; ; tries++) {
    const health = await face.health();
    if (isSettled(health) || tries >= 50) return health;
    await pause(20);
  }
};

/** Plays the load, closes the runtime, and takes down the world. */
export const play = async (world: FaultWorld, load: Load): Promise<Recording> => {
  const face = await openFace(load.face, optionsOf(load));
  const scene = new Play(world, face, load);
  await scene.attach("neighbour", world.neighbour, "attach the neighbour");
  await scene.attach("faulty", world.faulty, "attach the faulty one");
  if (load.warm) await scene.caller([{ do: "tools" }], -1);
  const cut = load.closeAfter === undefined ? undefined : pause(load.closeAfter).then(() => scene.close());
  await Promise.all([
    ...load.callers.map((actions, i) => scene.caller(actions, i)),
    scene.neighbour(load.neighbourCalls),
  ]);
  const rest = cut ? undefined : await settled(face, isAtRest);
  await (cut ?? scene.close());
  const leaks = await world.leaks();
  await scene.giveBack();
  const closed = await settled(face, (health) => isAtRest(health) && !health.endpoints.some(isConnected));
  const { all } = scene.outcomes;
  return { load, outcomes: all, rest, closed, received: world.received(), leaks };
};
