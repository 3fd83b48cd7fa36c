/**
 * A host to be killed at any moment: attaches servers of every bad kind through the whole
 * runtime and keeps doing what its plan says, in lanes side by side. Each line it prints
 * is the beginning (`+`) or the end (`-`) of one deed, so that its killer knows what it
 * was about. Failures are part of the game: what is left behind is all that counts.
 */
import { createRuntime, type McpRuntime, StdioEndpoint } from "../../src/mod.ts";
import { type Deed, serverCommands } from "./stdio-host-plan.ts";

const { lanes, pidFile, tag } = JSON.parse(process.argv[2]!) as {
  readonly lanes: ReadonlyArray<ReadonlyArray<Deed>>;
  readonly pidFile: string;
  readonly tag: string;
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const start = (): Promise<McpRuntime> =>
  createRuntime({
    settings: {
      stdioProcessMax: 8,
      closeGrace: 300,
      idleTimeout: 400,
      connectTimeout: 2000,
      requestTimeout: 1000,
      breakerCooldown: 50,
      minUptime: 1,
      shutdownGrace: 100,
    },
  });
let runtime = await start();

const endpoints = Object.entries(serverCommands(pidFile)).map(
  ([name, command]) => new StdioEndpoint({ name, ...command, env: { NUCLEO_TEST_RUN: tag } }),
);

const deeds: Readonly<Record<Deed["verb"], (endpoint: StdioEndpoint, ms: number) => Promise<unknown>>> = {
  call: async (endpoint, ms) => {
    await using client = await runtime.client(endpoint);
    const call = client.callTool("echo", { ms });
    await Promise.race([call.catch(() => {}), pause(ms)]);
  },
  list: async (endpoint, ms) => {
    const connector = await runtime.attach(endpoint.name, endpoint);
    await connector.providers();
    await pause(ms);
  },
  detach: async (endpoint, ms) => {
    const connector = await runtime.attach(endpoint.name, endpoint);
    await Promise.race([connector.providers(), pause(ms)]);
    await runtime.detach(connector);
  },
  abandon: (endpoint, ms) => runtime.client(endpoint, { signal: AbortSignal.timeout(ms) }),
  close: async () => {
    const old = runtime;
    runtime = await start();
    await old.close();
  },
};

let count = 0;
const live = async (lane: ReadonlyArray<Deed>): Promise<never> => {
  for (let at = 0; ; at = (at + 1) % lane.length) {
    const { verb, server, ms } = lane[at]!;
    const endpoint = endpoints[server % endpoints.length]!;
    const id = (count += 1);
    process.stdout.write(`+ ${id} ${verb} ${endpoint.name}\n`);
    await deeds[verb](endpoint, ms).catch(() => {});
    process.stdout.write(`- ${id}\n`);
  }
};
await Promise.all(lanes.map(live));
