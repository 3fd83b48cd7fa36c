/** The channel over a process's stdin and stdout, from its start to the end of all its descendants. */
import { execFile } from "node:child_process";
import type { Readable, Writable } from "node:stream";
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import type { McpTransport, TransportContext } from "../core/contracts.ts";
import { ConnectionLost, MessageTooLarge, type ProcessEnd } from "../core/errors.ts";
import { Framer } from "./stdio-framing.ts";
import { processGroup } from "./stdio-group.ts";
import { Outbox } from "./stdio-outbox.ts";
import type { ServerProcess } from "./stdio-process.ts";
import { printable, type Secrets } from "./stdio-secrets.ts";
import { StderrTail } from "./stdio-stderr-tail.ts";

/**
 * Once the process or one of its pipes has ended, the others get this long to end
 * too, ms: for the last message, the exit code, the last words. A grandchild that
 * holds a pipe open delays nothing beyond it.
 */
const lastWords = 100;
/**
 * How long killed processes may take to be gone, ms: on a crowded machine longer than any
 * grace. One that hangs in the kernel holds the close up no longer.
 */
const dying = 5000;
/** Characters shown of a skipped line. */
const sampleMax = 120;
/** JSON-RPC's code for an internal error; the caller sees the error in `data` instead. */
const internalError = -32603;

/** Reports skipped lines: the first ten, then ever fewer, so that a chatty server floods nobody. */
const skipReport = (secrets: Secrets, diagnose: (message: string) => void): ((line: string) => void) => {
  let count = 0;
  return (line) => {
    count += 1;
    if (count > 10 && Math.log10(count) % 1 !== 0) return;
    const sample = printable(secrets.cover(line.slice(0, sampleMax + secrets.longest)).slice(0, sampleMax)).trim();
    const shown = sample === "" ? "a blank line" : JSON.stringify(sample);
    diagnose(`Skipped a line on stdout that is no MCP message (${count} so far): ${shown}. Logs belong to stderr.`);
  };
};

/** Settles when the stream has ended or is closed, however that came. */
const ended = (stream: Readable | Writable): Promise<void> =>
  new Promise((resolve) => {
    for (const event of ["end", "finish", "close", "error"]) stream.once(event, () => resolve());
  });

/** Waits for the promise, but no longer than `limit` ms. */
const within = async (promise: Promise<unknown>, limit: number): Promise<void> => {
  let timer: ReturnType<typeof setTimeout> | undefined;
  await Promise.race([promise, new Promise((resolve) => (timer = setTimeout(resolve, limit)))]);
  clearTimeout(timer);
};

/** Ends the process and all it started, on Windows. */
const endTree = (pid: number): Promise<void> =>
  new Promise((resolve) => {
    execFile("taskkill", ["/pid", String(pid), "/T", "/F"], { windowsHide: true }, () => resolve());
  });

/** A channel to a running process. Closing it ends the process and its descendants; `unguard` is called when they are gone. */
export const makeChannel = (
  server: string,
  secrets: Secrets,
  { settings, diagnose }: TransportContext,
  child: ServerProcess,
  unguard: () => Promise<void>,
): McpTransport => {
  const pid = child.pid!;
  const outbox = new Outbox(child.stdin);
  const tail = new StderrTail(settings.stderrTailMax, secrets);
  let exited: ProcessEnd | undefined;
  let lost: string | undefined;
  let told = false;
  let closing: Promise<void> | undefined;
  const group = processGroup(pid);

  const end = (): ProcessEnd => ({ ...exited, stderrTail: tail.toString() || undefined });
  const connectionLost = (outcome: "not-sent" | "unknown"): ConnectionLost =>
    new ConnectionLost({ server, outcome, reason: lost ?? "its process ended", ...end() });
  const guarded = (listener: () => void): void => {
    try {
      listener();
    } catch (error) {
      channel.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  };

  const deliver = (message: object): void => {
    if (lost === undefined) guarded(() => channel.onmessage?.(message as JSONRPCMessage));
  };
  const framer = new Framer(settings.messageMax, {
    onMessage: deliver,
    onSkip: skipReport(secrets, diagnose),
    onTooLarge: ({ id, size }) => {
      const data = new MessageTooLarge({ server, size, limit: settings.messageMax });
      if (id === undefined) diagnose(`${data.message} It was skipped: it does not say which request it answers.`);
      else deliver({ jsonrpc: "2.0", id, error: { code: internalError, message: data.message, data } });
    },
  });

  child.stderr.on("data", (chunk: Uint8Array) => tail.push(chunk));
  // A pipe's error says no more than its end does; unheard, it would end the host.
  for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.on("error", () => {});
  const exit = new Promise<void>((resolve) => {
    const onExit = (code: number | null, signal: string | null): void => {
      exited = code === null ? { signal: signal ?? undefined } : { exitCode: code };
      resolve();
    };
    if (child.exitCode === null && child.signalCode === null) child.once("exit", onExit);
    else onExit(child.exitCode, child.signalCode);
  });
  const [stdin, stdout, stderr] = [ended(child.stdin), ended(child.stdout), ended(child.stderr)];
  /** Reading begins when somebody listens. */
  const read = (): void => void child.stdout.on("data", (chunk: Uint8Array) => framer.push(chunk));

  const tell = (): void => {
    if (told) return;
    told = true;
    guarded(() => channel.onclose?.());
  };

  /** Sees the connection end by itself: whichever of process and pipes ends first. */
  const watch = async (): Promise<void> => {
    const reason = await Promise.race([
      exit.then(() => "its process ended"),
      stdout.then(() => "it closed its stdout"),
      stdin.then(() => "it closed its stdin"),
    ]);
    await within(Promise.all([exit, stdout, stderr]), lastWords);
    lost ??= exited ? "its process ended" : reason;
    outbox.fail(connectionLost);
    // Senders learn that nothing was sent before everybody learns that the connection is gone.
    await new Promise((resolve) => setImmediate(resolve));
    tell();
    void channel.close();
  };

  const isGone = (): boolean => exited !== undefined && !group.hasMembers();
  const waitUntilGone = async (limit: number): Promise<boolean> => {
    const deadline = performance.now() + limit;
    await within(exit, limit);
    for (let pause = 5; !isGone(); pause = Math.min(pause * 2, 50)) {
      if (performance.now() >= deadline) return false;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return true;
  };

  /** The pipes are drained to the end: a server that logs its end must not be stopped by a full pipe. */
  const shutDown = async (): Promise<void> => {
    await within(exit, settings.closeGrace);
    if (process.platform === "win32") {
      if (!exited) await endTree(pid);
      await within(exit, dying);
    } else if (!isGone()) {
      group.signal("SIGTERM");
      if (!(await waitUntilGone(settings.closeGrace))) {
        group.signal("SIGKILL");
        await waitUntilGone(dying);
      }
    }
    outbox.fail(connectionLost);
    // A process that left the group may hold the pipes open; they must not hold the host.
    for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe.destroy();
    await unguard();
  };

  const channel: McpTransport = {
    pid,
    end,
    start: async () => {
      if (lost !== undefined) throw connectionLost("not-sent");
      read();
      void watch();
    },
    send: async (message) => {
      if (lost !== undefined || exited) throw connectionLost("not-sent");
      return outbox.push(`${JSON.stringify(message)}\n`);
    },
    close: () => {
      if (!closing) {
        lost ??= "it was closed";
        tell();
        // What is left on stdout is of no use, but a full pipe would keep the server from ending.
        child.stdout.resume();
        outbox.end();
        closing = shutDown();
      }
      return closing;
    },
  };
  return channel;
};
