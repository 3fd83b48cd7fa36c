/** Reads what a POST is answered with, until the request is answered or cannot be any more. */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { McpSettings } from "../core/settings.ts";
import { ConnectionLost, HttpFailed, type McpError, MessageTooLarge } from "../core/errors.ts";
import { type BodyEnd, discard, isEventStream, mediaType, readEvents, readText } from "./http-body.ts";
import { errorText, type HttpSite, refusal } from "./http-errors.ts";
import {
  answeredId,
  isRequest,
  type JSONRPCMessage,
  type JSONRPCRequest,
  parseError,
  parseMessages,
} from "./http-message.ts";

/** An answered stream is read on this long, ms, so that its connection can serve again. */
const DRAIN = 1000;
/** The wait before a stream is resumed when the server names none, and the longest it may name, ms. */
const RESUME_DELAY = 250;
const RESUME_DELAY_MAX = 30_000;

export interface RefusalSink {
  readonly site: HttpSite;
  readonly settings: McpSettings;
  readonly deliver: (messages: ReadonlyArray<JSONRPCMessage>) => void;
}

export interface AnswerSink extends RefusalSink {
  /** Done when the answer was delivered, also when another stream brought it. */
  readonly answered: Deferred.Deferred<void>;
  /** Opens the stream again after the named event. Absent: streams cannot be resumed. */
  readonly resume?: (lastEventId: string) => Effect.Effect<Response, McpError, Scope.Scope>;
}

/** What a POST without a request is answered with holds nothing: 200, 202 and 204, with any body, are fine. */
export const readAcceptance = (response: Response, sink: RefusalSink): Effect.Effect<void, McpError> =>
  Effect.gen(function* () {
    if (!response.ok) {
      const body = yield* errorText(response, sink.settings.closeGrace);
      return yield* Effect.flatMap(refusal(sink.site, response, body), Effect.fail);
    }
    // Read to the end, a small body leaves its connection free for the next request.
    if (isEventStream(response)) yield* discard(response);
    else yield* Effect.timeoutOption(readText(response, 65_536), DRAIN);
  });

/**
 * A refusal whose body is the JSON-RPC error of the request is that error. An error
 * without an id counts on a 400 alone: that is how servers refuse a protocol version.
 */
export const readRefusal = (
  response: Response,
  request: JSONRPCRequest,
  sink: RefusalSink,
): Effect.Effect<void, McpError> =>
  Effect.gen(function* () {
    const body = yield* errorText(response, sink.settings.closeGrace);
    const rpc = response.status === 429 || response.status === 503 ? undefined : parseError(body);
    if (!rpc || (rpc.id === null ? response.status !== 400 : rpc.id !== String(request.id)))
      return yield* Effect.flatMap(refusal(sink.site, response, body), Effect.fail);
    sink.deliver([{ jsonrpc: "2.0", id: request.id, error: rpc.error }]);
  });

const readJson = (response: Response, sink: AnswerSink): Effect.Effect<void, McpError> =>
  Effect.gen(function* () {
    const { server } = sink.site;
    const limit = sink.settings.messageMax;
    const { text, end, size } = yield* readText(response, limit);
    if (end === "stopped") return yield* new MessageTooLarge({ server, size, limit });
    if (end === "broken")
      return yield* new ConnectionLost({
        server,
        outcome: "unknown",
        reason: "the connection broke within the answer",
      });
    const messages = parseMessages(text);
    if (messages.length > 0) sink.deliver(messages);
    if (Deferred.isDoneUnsafe(sink.answered)) return;
    const said = sink.site.show(text);
    const reason = `the body is no answer to the request${said ? `: ${said}` : " but empty"}`;
    return yield* new HttpFailed({ server, status: response.status, reason });
  });

/**
 * Reads an event stream until the request is answered. A stream that ends before is
 * resumed once, by GET with Last-Event-ID, when it gave event ids; each new id allows
 * one more time. Then the request fails: nobody knows whether it ran.
 */
const readStream = (first: Response, sink: AnswerSink): Effect.Effect<void, McpError, Scope.Scope> =>
  Effect.gen(function* () {
    const { server } = sink.site;
    const limit = sink.settings.messageMax;
    let lastEventId: string | undefined;
    let resumedAfter: string | undefined;
    let delay = RESUME_DELAY;
    let response = first;
    for (;;) {
      const reading = readEvents(response, limit, {
        onEvent: (event) => {
          lastEventId = event.id;
          if (event.event === "message" && event.data !== "") sink.deliver(parseMessages(event.data));
        },
        onRetry: (asked) => {
          delay = Math.min(asked, RESUME_DELAY_MAX);
        },
      });
      const drained = Effect.as(
        Effect.andThen(Deferred.await(sink.answered), Effect.sleep(DRAIN)),
        "stopped" as BodyEnd,
      );
      const end = yield* Effect.raceFirst(reading, drained);
      if (Deferred.isDoneUnsafe(sink.answered)) return;
      if (typeof end === "object") return yield* new MessageTooLarge({ server, size: end.tooLarge, limit });
      const how = end === "broken" ? "the connection broke" : "the event stream ended";
      const lost = (why: string) => new ConnectionLost({ server, outcome: "unknown", reason: `${how} ${why}` });
      if (!sink.resume || !lastEventId || lastEventId === resumedAfter) return yield* lost("without an answer");
      resumedAfter = lastEventId;
      yield* Effect.sleep(delay);
      response = yield* Effect.mapError(sink.resume(lastEventId), (error) =>
        lost(`without an answer and could not be resumed: ${error.message}`),
      );
      if (!response.ok || !isEventStream(response))
        return yield* lost(`without an answer, and resuming it was answered with HTTP ${response.status}`);
    }
  });

/** Reads the answer to `message`; a request succeeds only when its answer was delivered. */
export const readAnswer = (
  response: Response,
  message: JSONRPCMessage,
  sink: AnswerSink,
): Effect.Effect<void, McpError, Scope.Scope> =>
  Effect.suspend((): Effect.Effect<void, McpError, Scope.Scope> => {
    if (!isRequest(message)) return readAcceptance(response, sink);
    const own = String(message.id);
    const deliver = (messages: ReadonlyArray<JSONRPCMessage>): void => {
      if (messages.some((item) => answeredId(item) === own)) Deferred.doneUnsafe(sink.answered, Effect.void);
      sink.deliver(messages);
    };
    const mine = { ...sink, deliver };
    if (!response.ok) return readRefusal(response, message, mine);
    if (isEventStream(response)) return readStream(response, mine);
    const type = mediaType(response);
    if (type === "application/json" || type === undefined) return readJson(response, mine);
    return Effect.flatMap(errorText(response, sink.settings.closeGrace), (text) => {
      const said = sink.site.show(text);
      const reason = `the answer is of type '${type}' and no MCP message${said ? `: ${said}` : ""}`;
      return Effect.fail(new HttpFailed({ server: sink.site.server, status: response.status, reason }));
    });
  });
