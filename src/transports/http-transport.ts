/**
 * Makes an SDK-shaped transport out of a channel: runs each request in a fiber of its
 * own, settles every one of them, and closes in order.
 */
import * as Cause from "effect/Cause";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as FiberSet from "effect/FiberSet";
import type * as Scope from "effect/Scope";
import { asMcpError } from "../core/answer.ts";
import type { McpTransport, TransportContext } from "../core/contracts.ts";
import { ConnectionLost, isMcpError, type McpError } from "../core/errors.ts";
import { answeredId, cancelledId, isRequest, type JSONRPCMessage, type JSONRPCRequest } from "./http-message.ts";

/** One message on its way. */
export interface Flight {
  /** Whether the server may have run it, should the connection end now. */
  outcome: "not-sent" | "unknown";
  /** Done when the answer to it was delivered. */
  readonly answered: Deferred.Deferred<void>;
}

/** One way to carry JSON-RPC over HTTP. Plain effects; fibers and order are the transport's matter. */
export interface HttpChannel {
  /** A request succeeds when its answer was delivered, any other message when the server took it. */
  readonly send: (message: JSONRPCMessage, flight: Flight) => Effect.Effect<void, McpError>;
  /** Waits until no handshake is on its way that could open a session. */
  readonly settled: Effect.Effect<void>;
  /** Comes last, when no fiber of the channel runs any more. */
  readonly end: Effect.Effect<void>;
  readonly sessionId: () => string | undefined;
  readonly setProtocolVersion: (version: string) => void;
}

/** What a channel may ask of its transport. */
export interface ChannelHost {
  readonly deliver: (messages: ReadonlyArray<JSONRPCMessage>) => void;
  /** Runs something beside the requests; it ends with the connection. */
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>;
  /**
   * The connection is beyond repair: requests in flight fail, the transport closes.
   * With `drain` they may first find out for themselves, for `closeGrace`.
   */
  readonly broken: (error: McpError, drain?: boolean) => void;
}

export const newFlight = (): Flight => ({ outcome: "not-sent", answered: Deferred.makeUnsafe() });

interface Pending extends Flight {
  cancelled: boolean;
  fiber?: Fiber.Fiber<unknown, unknown>;
}

/** The transport of a channel; the scope's end closes it. */
export const makeTransport = (
  context: TransportContext,
  open: (host: ChannelHost) => HttpChannel,
): Effect.Effect<McpTransport, never, Scope.Scope> =>
  Effect.gen(function* () {
    const services = yield* Effect.context<never>();
    const fibers = yield* FiberSet.make<unknown, unknown>();
    const fork = yield* FiberSet.runtime(fibers)<never>();
    const pending = new Map<string, Pending>();
    let gone: McpError | undefined;
    let closing: Fiber.Fiber<void> | undefined;

    const lost = (outcome: Flight["outcome"]): McpError =>
      gone && !(gone instanceof ConnectionLost)
        ? gone
        : new ConnectionLost({ server: context.name, outcome, reason: gone?.reason ?? "the connection was closed" });

    let skipped = false;
    const deliver = (messages: ReadonlyArray<JSONRPCMessage>): void => {
      if (messages.length === 0 && !skipped) {
        skipped = true;
        context.diagnose("the server sends events that hold no JSON-RPC message; they are skipped");
      }
      for (const message of messages) {
        const id = answeredId(message);
        const flight = id === undefined ? undefined : pending.get(id);
        if (flight) Deferred.doneUnsafe(flight.answered, Effect.void);
        try {
          transport.onmessage?.(message);
        } catch (cause) {
          context.diagnose(`a message was not taken: ${cause instanceof Error ? cause.message : String(cause)}`);
        }
      }
    };

    const inFlight = Effect.suspend(() =>
      Effect.forEach([...pending.values()], ({ fiber }) => (fiber ? Fiber.await(fiber) : Effect.void), {
        discard: true,
      }),
    );

    const close = (error?: McpError, drain = false): Fiber.Fiber<void> => {
      gone ??= error ?? lost("unknown");
      closing ??= Effect.runForkWith(services)(
        Effect.gen(function* () {
          const first = drain ? inFlight : error ? Effect.void : channel.settled;
          yield* Effect.timeoutOption(first, context.settings.closeGrace);
          yield* FiberSet.clear(fibers);
          yield* channel.end;
          if (error) transport.onerror?.(error);
          transport.onclose?.();
        }),
      );
      return closing;
    };

    const channel = open({ deliver, fork, broken: (error, drain) => void close(error, drain) });

    /** An unanswered request fails as an answer that carries the error, so that it comes before `onclose`. */
    const settle = (request: JSONRPCRequest, flight: Pending, exit: Exit.Exit<void, McpError>): void => {
      pending.delete(String(request.id));
      if (flight.cancelled || Deferred.isDoneUnsafe(flight.answered) || Exit.isSuccess(exit)) return;
      const error = Cause.hasInterruptsOnly(exit.cause)
        ? lost(flight.outcome)
        : asMcpError<McpError>("http", Cause.squash(exit.cause));
      deliver([{ jsonrpc: "2.0", id: request.id, error: { code: -32_000, message: error.message, data: error } }]);
    };

    const launch = (request: JSONRPCRequest): void => {
      const flight: Pending = { ...newFlight(), cancelled: false };
      pending.set(String(request.id), flight);
      flight.fiber = fork(
        channel.send(request, flight).pipe(Effect.onExit((exit) => Effect.sync(() => settle(request, flight, exit)))),
      );
    };

    /** Sends what expects no answer. What a cancellation cancels is let go once the server knows. */
    const post = (message: JSONRPCMessage): Promise<void> => {
      const flight = pending.get(cancelledId(message) ?? "");
      if (flight) flight.cancelled = true;
      const sending = channel.send(message, newFlight());
      const sent = flight?.fiber
        ? sending.pipe(
            Effect.timeoutOption(context.settings.closeGrace),
            Effect.ensuring(Fiber.interrupt(flight.fiber)),
            Effect.asVoid,
          )
        : sending;
      return Effect.runPromiseWith(services)(Fiber.join(fork(sent))).catch((error: unknown) => {
        throw isMcpError(error) ? error : lost("unknown");
      });
    };

    const transport: McpTransport = {
      start: () => Promise.resolve(),
      send: (message) => {
        if (gone) return Promise.reject(lost("not-sent"));
        if (!isRequest(message)) return post(message);
        launch(message);
        return Promise.resolve();
      },
      close: () => Effect.runPromiseWith(services)(Effect.asVoid(Fiber.await(close()))),
      setProtocolVersion: (version) => channel.setProtocolVersion(version),
      get sessionId() {
        return channel.sessionId();
      },
    };
    yield* Effect.addFinalizer(() => Effect.suspend(() => Fiber.await(close())));
    return transport;
  });
