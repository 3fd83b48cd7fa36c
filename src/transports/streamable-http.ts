/**
 * Streamable HTTP of the legacy eras: one URL, a session, an answer per POST.
 *
 * The SDK's own client transport is not used: it never fails a request whose stream ended,
 * keeps a dead session for ever, bounds no message, and times by `setTimeout`.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import { isRecord } from "../core/artifact/json.ts";
import type { TransportContext } from "../core/contracts.ts";
import { ConnectionLost, InsufficientScope, type McpError, Unauthorized } from "../core/errors.ts";
import { readAnswer } from "./http-answer.ts";
import { discard } from "./http-body.ts";
import type { HttpClient } from "./http-fetch.ts";
import {
  answeredId,
  isInitialize,
  isNotification,
  isRequest,
  type JSONRPCMessage,
  type JSONRPCRequest,
  parseMessages,
} from "./http-message.ts";
import { keepPushOpen } from "./http-push.ts";
import { makeHttpSession } from "./http-session.ts";
import { type ChannelHost, type Flight, type HttpChannel, newFlight } from "./http-transport.ts";

type Deliver = ChannelHost["deliver"];

export const makeStreamableHttp = (client: HttpClient, context: TransportContext, host: ChannelHost): HttpChannel => {
  const { name: server, settings } = context;
  const session = makeHttpSession(client, settings.closeGrace);
  /** The last `initialize` sent, kept to open the next session, and whether its answer has begun. */
  let handshake: JSONRPCRequest | undefined;
  let opening: Deferred.Deferred<void> | undefined;
  let renewal: { readonly dead: string; readonly fiber: Fiber.Fiber<void, McpError> } | undefined;
  let push: Fiber.Fiber<void> | undefined;

  /** Sends one message and reads what comes back. Answers false when the session is over. */
  const exchange = (
    message: JSONRPCMessage,
    inSession: string | undefined,
    flight: Flight,
    deliver: Deliver,
  ): Effect.Effect<boolean, McpError> =>
    Effect.scoped(
      Effect.gen(function* () {
        flight.outcome = "unknown";
        const response = yield* session.post(message, inSession);
        // Known before the body is read, so that a session opened while we close can be ended.
        if (isInitialize(message)) session.adopt(response);
        if (inSession !== undefined && isRequest(message) && (yield* session.isOver(response))) {
          flight.outcome = "not-sent";
          yield* discard(response);
          return false;
        }
        yield* readAnswer(response, message, {
          site: client.site,
          settings,
          answered: flight.answered,
          deliver,
          resume: (lastEventId) => session.get(inSession, lastEventId),
        });
        return true;
      }),
    );

  /** Neither a session nor a protocol version goes with an `initialize`. */
  const initialize = (message: JSONRPCRequest, flight: Flight, deliver: Deliver) =>
    Effect.suspend(() => {
      const begun = Deferred.makeUnsafe<void>();
      handshake = message;
      opening = begun;
      session.version = undefined;
      return Effect.ensuring(exchange(message, undefined, flight, deliver), Deferred.succeed(begun, undefined));
    });

  /** The server's own voice: one stream per session. */
  const listen = Effect.suspend(() => {
    const inSession = session.id;
    const previous = push;
    push = host.fork(
      keepPushOpen({
        open: (lastEventId) => session.get(inSession, lastEventId),
        onData: (data) => host.deliver(parseMessages(data)),
        diagnose: context.diagnose,
        limit: settings.messageMax,
      }),
    );
    return previous ? Fiber.interrupt(previous) : Effect.void;
  });

  /** Opens the next session after the server forgot `dead` (MCP, Session Management). */
  const reopen = (dead: string, message: JSONRPCRequest): Effect.Effect<void, McpError> =>
    Effect.gen(function* () {
      let result: unknown;
      yield* initialize(message, newFlight(), (messages) => {
        for (const item of messages)
          if (answeredId(item) !== String(message.id)) host.deliver([item]);
          else if ("result" in item) result = item.result;
      });
      const version = isRecord(result) ? result["protocolVersion"] : undefined;
      // It goes into a header from here on.
      if (typeof version !== "string" || !/^[\w.-]+$/.test(version))
        return yield* new ConnectionLost({ server, outcome: "not-sent", reason: "the server refuses to initialize" });
      session.version = version;
      yield* exchange({ jsonrpc: "2.0", method: "notifications/initialized" }, session.id, newFlight(), host.deliver);
      yield* listen;
      host.fork(session.terminate(dead));
    }).pipe(
      Effect.mapError((error) =>
        error instanceof Unauthorized || error instanceof InsufficientScope
          ? error
          : new ConnectionLost({
              server,
              outcome: "not-sent",
              reason: `the server ended the session and gave no new one: ${error.message}`,
            }),
      ),
      // One attempt. The pool connects afresh at the next use, with its breaker. Requests whose
      // own refusal is still on its way wait for it: it says that they did not run.
      Effect.tapError((error) => Effect.sync(() => host.broken(error, true))),
    );

  const renewed: Effect.Effect<void, McpError> = Effect.suspend(() =>
    renewal ? Fiber.join(renewal.fiber) : Effect.void,
  );

  /** Single flight: all that meet the same dead session wait for the same new one. */
  const renew = (dead: string): Effect.Effect<void, McpError> =>
    Effect.suspend(() => {
      if (session.id === dead && renewal?.dead !== dead && handshake)
        renewal = { dead, fiber: host.fork(reopen(dead, handshake)) };
      return renewed;
    });

  return {
    send: (message, flight) =>
      Effect.gen(function* () {
        if (isInitialize(message)) return yield* Effect.asVoid(initialize(message, flight, host.deliver));
        yield* renewed;
        const inSession = session.id;
        let done = yield* exchange(message, inSession, flight, host.deliver);
        if (!done && inSession !== undefined) {
          // It did not run: any request may be sent again, once.
          yield* renew(inSession);
          done = yield* exchange(message, session.id, flight, host.deliver);
        }
        if (!done)
          return yield* new ConnectionLost({
            server,
            outcome: "not-sent",
            reason: "the server forgot the new session too",
          });
        if (isNotification(message, "notifications/initialized")) yield* listen;
      }),
    settled: Effect.suspend(() => (opening ? Deferred.await(opening) : Effect.void)),
    end: session.terminateAll,
    sessionId: () => session.id,
    setProtocolVersion: (version) => {
      session.version = version;
    },
  };
};
