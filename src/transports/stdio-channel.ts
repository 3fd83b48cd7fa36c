/** The channel over a process's stdin and stdout, from its start to the end of all its descendants. */
import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Latch from "effect/Latch";
import * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import type { ChildProcessHandle } from "effect/process/ChildProcessSpawner";
import type { McpTransport, TransportContext } from "../core/contracts.ts";
import { ConnectionLost, MessageTooLarge, type ProcessEnd } from "../core/errors.ts";
import { Framer } from "./stdio-framing.ts";
import { processGroup } from "./stdio-group.ts";
import { guardGroup } from "./stdio-guard.ts";
import { Outbox } from "./stdio-outbox.ts";
import { printable, type Secrets } from "./stdio-secrets.ts";
import { StderrTail } from "./stdio-stderr-tail.ts";

/**
 * Once the process or one of its pipes has ended, the others get this long to end
 * too, ms: for the last message, the exit code, the last words. A grandchild that
 * holds a pipe open delays nothing beyond it.
 */
const lastWords = 100;
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

/** Moves bytes until the pipe or the scope ends; how it ended is of no interest. */
const pump = (scope: Scope.Scope, effect: Effect.Effect<void, unknown>) => Effect.forkIn(Effect.exit(effect), scope);

/** How a process ended; the spawner names a signal in words only. */
const processEnd = (exit: Exit.Exit<number, unknown>): ProcessEnd =>
  Exit.isSuccess(exit) ? { exitCode: exit.value } : { signal: /SIG[A-Z0-9]+/.exec(Cause.pretty(exit.cause))?.[0] };

/** A channel to a running process. `scope` holds the process; closing the channel closes it. */
export const makeChannel = (
  server: string,
  secrets: Secrets,
  { settings, diagnose }: TransportContext,
  handle: ChildProcessHandle,
  scope: Scope.Closeable,
): Effect.Effect<McpTransport> =>
  Effect.gen(function* () {
    const outbox = new Outbox();
    const tail = new StderrTail(settings.stderrTailMax, secrets);
    /** Reading begins at `start()`, when somebody listens. */
    const started = Latch.makeUnsafe(false);
    let exited: ProcessEnd | undefined;
    let lost: string | undefined;
    let told = false;
    let closing: Promise<void> | undefined;
    const group = processGroup(handle.pid);
    const unguard = guardGroup(handle.pid);

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

    const stdin = yield* pump(scope, Stream.run(Stream.fromPull(Effect.succeed(outbox.pull)), handle.stdin));
    const stderr = yield* pump(
      scope,
      Stream.runForEachArray(handle.stderr, (chunks) => Effect.sync(() => chunks.forEach((chunk) => tail.push(chunk)))),
    );
    const stdout = yield* pump(
      scope,
      Effect.andThen(
        started.await,
        Stream.runForEachArray(handle.stdout, (chunks) =>
          Effect.sync(() => chunks.forEach((chunk) => framer.push(chunk))),
        ),
      ),
    );
    const exit = yield* Effect.forkDetach(
      Effect.map(Effect.exit(handle.exitCode), (result) => {
        exited = processEnd(result);
      }),
    );

    const tell = (): void => {
      if (told) return;
      told = true;
      guarded(() => channel.onclose?.());
    };

    /** Sees the connection end by itself: whichever of process and pipes ends first. */
    const watch = Effect.gen(function* () {
      const reason = yield* Effect.raceAllFirst([
        Effect.as(Fiber.await(exit), "its process ended"),
        Effect.as(Fiber.await(stdout), "it closed its stdout"),
        Effect.as(Fiber.await(stdin), "it closed its stdin"),
      ]);
      yield* Effect.timeoutOption(Fiber.awaitAll([exit, stdout, stderr]), lastWords);
      lost ??= exited ? "its process ended" : reason;
      outbox.fail(connectionLost);
      // Senders learn that nothing was sent before everybody learns that the connection is gone.
      yield* Effect.yieldNow;
      tell();
      void channel.close();
    });

    const isGone = (): boolean => exited !== undefined && !group.hasMembers();
    const waitUntilGone = (limit: number) =>
      Effect.gen(function* () {
        const deadline = performance.now() + limit;
        yield* Effect.timeoutOption(Fiber.await(exit), limit);
        for (let pause = 5; !isGone(); pause = Math.min(pause * 2, 50)) {
          if (performance.now() >= deadline) return false;
          yield* Effect.sleep(pause);
        }
        return true;
      });

    /** The pipes are drained to the end: a server that logs its end must not be stopped by a full pipe. */
    const shutDown = Effect.gen(function* () {
      yield* Effect.timeoutOption(Fiber.await(exit), settings.closeGrace);
      if (process.platform === "win32") yield* Effect.ignore(handle.kill({ forceKillAfter: settings.closeGrace }));
      else if (!isGone()) {
        group.signal("SIGTERM");
        if (!(yield* waitUntilGone(settings.closeGrace))) {
          group.signal("SIGKILL");
          yield* waitUntilGone(settings.closeGrace);
        }
      }
      outbox.fail(connectionLost);
      yield* Effect.promise(unguard);
      // The spawner looks after the group too, and waits up to a second for unreaped members: nobody else need.
      yield* group.isEmpty() ? Scope.close(scope, Exit.void) : Effect.forkDetach(Scope.close(scope, Exit.void));
    });

    const channel: McpTransport = {
      pid: handle.pid,
      end,
      start: async () => {
        if (lost !== undefined) throw connectionLost("not-sent");
        started.openUnsafe();
        Effect.runFork(watch);
      },
      send: async (message) => {
        if (lost !== undefined || exited) throw connectionLost("not-sent");
        return outbox.push(`${JSON.stringify(message)}\n`);
      },
      close: () => {
        if (!closing) {
          lost ??= "it was closed";
          tell();
          started.openUnsafe();
          outbox.end();
          // Outside the caller's fiber: what ends processes is not to be interrupted, nor to run on a test's clock.
          closing = Effect.runPromise(shutDown);
        }
        return closing;
      },
    };
    return channel;
  });
