/** `connect`: a stdio server for a host that knows no other; behind it is the one gateway of the configuration. */
import * as Effect from "effect/Effect";
import { ConnectFailed } from "../../core/errors.ts";
import { attempt } from "../attempt.ts";
import { openConfig } from "../config.ts";
import { exitCodes } from "../exit-code.ts";
import {
  answers,
  gatewayFolder,
  type GatewayRecord,
  readRecord,
  recordName,
  tokenVariable,
} from "../gateway-record.ts";
import type { Command } from "../session.ts";
import { takeLock } from "../start-lock.ts";

/** Longest wait for a gateway to start, ms. */
const patience = 60_000;
/** A gateway that was started for its clients ends so long after the last one. */
const untilIdle = "10m";

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts a gateway that outlives this process; settles when it can be joined. */
const startGateway = async (config: string, file: string): Promise<GatewayRecord> => {
  const [{ spawn }, { closeSync, openSync }, { readFile }, { dirname }, { fileURLToPath }] = await Promise.all([
    import("node:child_process"),
    import("node:fs"),
    import("node:fs/promises"),
    import("node:path"),
    import("node:url"),
  ]);
  const main = fileURLToPath(new URL(`../main${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
  const words = ["serve", "--config", config, "--http", "127.0.0.1:0", "--record", file, "--until-idle", untilIdle];
  const log = `${file}.log`;
  const descriptor = openSync(log, "w", 0o600);
  const child = spawn(process.execPath, [...("Deno" in globalThis ? ["run", "-A"] : []), main, ...words], {
    cwd: dirname(config),
    detached: true,
    env: { ...process.env, [tokenVariable]: crypto.randomUUID() },
    stdio: ["ignore", descriptor, descriptor],
    windowsHide: true,
  });
  closeSync(descriptor);
  const state = { ended: false };
  const end = (): void => void (state.ended = true);
  child.once("exit", end).once("error", end);
  child.unref();
  for (const deadline = Date.now() + patience; !state.ended && Date.now() < deadline; await pause(50)) {
    const record = await readRecord(file);
    if (record?.pid === child.pid && record && (await answers(record))) return record;
  }
  const said = (await readFile(log, "utf8").catch(() => "")).trim().slice(-1_000);
  throw new ConnectFailed({
    server: "gateway",
    endpointId: config,
    phase: "spawn",
    reason: state.ended ? "it ended at once" : "it did not start in time",
    ...(said !== "" && { stderrTail: said }),
  });
};

/** The running gateway of the configuration; the first of many who ask at once starts it. */
const joinGateway = async (config: string): Promise<GatewayRecord> => {
  const { mkdir, readFile, rm } = await import("node:fs/promises");
  const { join } = await import("node:path");
  const folder = await gatewayFolder();
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const file = join(folder, `${recordName(config, await readFile(config, "utf8"))}.json`);
  const deadline = Date.now() + patience;
  while (Date.now() < deadline) {
    const running = await readRecord(file);
    if (running && (await answers(running))) return running;
    const unlock = await takeLock(`${file}.lock`);
    if (!unlock) {
      await pause(100);
      continue;
    }
    try {
      // It may have come up between the look and the lock.
      const meanwhile = await readRecord(file);
      if (meanwhile && (await answers(meanwhile))) return meanwhile;
      await rm(file, { force: true });
      return await startGateway(config, file);
    } finally {
      await unlock();
    }
  }
  throw new ConnectFailed({
    server: "gateway",
    endpointId: config,
    phase: "spawn",
    reason: "another process is starting it, and that takes too long",
    fix: "Run 'nucleo-mcp serve' to see why.",
  });
};

/** Joins at once, so that a fault shows now; then passes messages on until the host goes. */
export const connectCommand: Command<{}> = (_input, { options, untilSignalled }) =>
  Effect.gen(function* () {
    const { source } = yield* openConfig(options.config);
    yield* attempt("gateway", () => joinGateway(source));
    untilSignalled();
    yield* attempt("gateway", async () => {
      const { joinStdio } = await import("../../plugins/serving/shim.ts");
      const known = new Map<string, GatewayRecord>();
      await joinStdio({
        join: async () => {
          const record = await joinGateway(source);
          known.set(record.url, record);
          return record;
        },
        isAlive: async ({ url }) => answers(known.get(url)!),
      });
    });
    return exitCodes.fine;
  });
