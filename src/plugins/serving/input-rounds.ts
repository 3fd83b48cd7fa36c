/**
 * Servers ask in the middle of a call; a client of 2026-07-28 is asked at the end of one
 * request and answers with the next. Between the two the call stays as it is, found again
 * by a random `requestState`. Source: MCP 2026-07-28, basic/patterns/mrtr.
 */
import { isRecord } from "../../core/artifact/json.ts";
import type { Progress } from "../../core/contracts.ts";
import { type Exchange, supports } from "./exchange.ts";
import { rpcError, type Wire } from "./wire.ts";

/** One request of the client: its first, or one that brings answers. */
export interface Round {
  /** Whose call it is: another client's `requestState` opens nothing. */
  readonly client: object;
  readonly method: string;
  readonly params: Wire;
  readonly requestState: unknown;
  readonly responses: Wire;
  readonly capabilities: unknown;
  readonly signal: AbortSignal;
  /** Undefined when the client wants to hear of none. */
  readonly onProgress: ((progress: Progress) => void) | undefined;
  readonly log: (params: Wire) => void;
  /** Notes that the client is at work; answers how to end that. */
  readonly hold: () => () => void;
}

/** A call between two rounds. */
interface Suspended {
  readonly call: Call;
  /** The client comes back, or nobody waits for it any more. */
  readonly end: () => void;
}

interface Question {
  readonly method: string;
  readonly params: unknown;
  readonly resolve: (answer: unknown) => void;
}

/** A call over all its rounds. */
interface Call {
  readonly key: string;
  readonly client: object;
  readonly questions: Map<string, Question>;
  readonly cancelled: AbortController;
  result: Promise<Wire>;
  /** The request that waits for what comes next; none between two rounds. */
  round: Round | undefined;
  onQuestion: () => void;
}

/** Questions that come within this are asked together, ms. */
const gathering = 10;

export interface InputRounds {
  /**
   * Begins a call or goes on with it; answers its result, or an `input_required`.
   * `asker` is that of `Exchange`. The call is `begin`'s, which is run for the first round.
   */
  readonly serve: (round: Round, asker: object, begin: (exchange: Exchange) => Promise<Wire>) => Promise<Wire>;
  /** Cancels the calls of a client that is gone; without one, all. */
  readonly leave: (client?: object) => void;
}

const keyOf = ({ method, params }: Round): string =>
  JSON.stringify([method, params["name"] ?? params["uri"], params["arguments"]]);

/** Whether an answer is one to the question. */
const answers = (method: string, answer: unknown): boolean => {
  if (!isRecord(answer)) return false;
  if (method === "elicitation/create") return ["accept", "decline", "cancel"].includes(String(answer["action"]));
  return typeof answer["role"] === "string" && answer["content"] !== undefined;
};

/** The error of the revision for a request that needs what its client did not declare. */
const missingCapability = (method: string, params: unknown): Error => {
  const mode = isRecord(params) && params["mode"] === "url" ? "url" : "form";
  const requiredCapabilities = method === "elicitation/create" ? { elicitation: { [mode]: {} } } : { sampling: {} };
  return rpcError(-32021, `The server needs ${method}, which the client did not declare`, { requiredCapabilities });
};

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** `patience` is how long a call waits for its next round, ms. */
export const makeInputRounds = (patience: number): InputRounds => {
  const waiting = new Map<string, Suspended>();
  const calls = new Set<Call>();

  const start = (first: Round, asker: object, begin: (exchange: Exchange) => Promise<Wire>): Call => {
    const cancelled = new AbortController();
    let refuse!: (error: Error) => void;
    const refused = new Promise<never>((_, reject) => {
      refuse = (error) => {
        reject(error);
        cancelled.abort(error);
      };
    });
    let asked = 0;
    const ask: Exchange["ask"] = (method, params, signal) =>
      new Promise((resolve, reject) => {
        signal.throwIfAborted();
        const capabilities = call.round?.capabilities ?? first.capabilities;
        if (!supports(capabilities, method, params)) {
          const error = missingCapability(method, params);
          refuse(error);
          throw error;
        }
        const key = `${method}#${++asked}`;
        call.questions.set(key, { method, params, resolve });
        signal.addEventListener("abort", () => {
          call.questions.delete(key);
          reject(signal.reason);
        });
        call.onQuestion();
      });
    const exchange: Exchange = {
      client: first.client,
      asker,
      signal: cancelled.signal,
      onProgress: first.onProgress && ((progress) => call.round?.onProgress?.(progress)),
      ask,
      log: (params) => call.round?.log(params),
      flush: () => Promise.resolve(),
    };
    const call: Call = {
      key: keyOf(first),
      client: first.client,
      questions: new Map(),
      cancelled,
      result: new Promise(() => {}),
      round: first,
      onQuestion: () => {},
    };
    calls.add(call);
    const release = first.hold();
    const work = begin(exchange).finally(() => {
      calls.delete(call);
      release();
    });
    call.result = Promise.race([refused, work]);
    // Between two rounds nobody hears of a failure; the next one will.
    call.result.catch(() => {});
    return call;
  };

  const resume = (round: Round): Call => {
    const state = String(round.requestState);
    const found = waiting.get(state);
    if (!found || found.call.client !== round.client || found.call.key !== keyOf(round))
      throw rpcError(-32602, "Invalid or expired requestState", { reason: "invalid_request_state" });
    found.end();
    const { call } = found;
    for (const [key, { method, resolve }] of call.questions) {
      const answer = round.responses[key];
      // What was not answered, or not with an answer, is asked again.
      if (!answers(method, answer)) continue;
      call.questions.delete(key);
      resolve(answer);
    }
    return call;
  };

  const asked = async (call: Call): Promise<undefined> => {
    if (call.questions.size === 0) await new Promise<void>((resolve) => (call.onQuestion = resolve));
    await pause(gathering);
  };

  const suspend = (call: Call, { hold }: Round): Wire => {
    const requestState = crypto.randomUUID();
    const timer = setTimeout(() => {
      end();
      call.cancelled.abort(new Error("the client did not come back with an answer"));
    }, patience);
    // A client that were forgotten could not fetch what came of the call meanwhile.
    const release = hold();
    const end = (): void => {
      waiting.delete(requestState);
      clearTimeout(timer);
      release();
    };
    waiting.set(requestState, { call, end });
    const inputRequests = Object.fromEntries(
      Array.from(call.questions, ([key, { method, params }]) => {
        // Its tokens belong to the server's own connection.
        const { _meta, ...asked } = isRecord(params) ? params : {};
        return [key, { method, params: asked }];
      }),
    );
    return { resultType: "input_required", inputRequests, requestState };
  };

  return {
    serve: async (round, asker, begin) => {
      const call = round.requestState === undefined ? start(round, asker, begin) : resume(round);
      call.round = round;
      const cancel = (): void => call.cancelled.abort(round.signal.reason);
      round.signal.addEventListener("abort", cancel);
      if (round.signal.aborted) cancel();
      try {
        // A question may be withdrawn before it is asked.
        for (;;) {
          const result = await Promise.race([call.result, asked(call)]);
          if (result !== undefined) return result;
          if (call.questions.size > 0) return suspend(call, round);
        }
      } finally {
        call.round = undefined;
        round.signal.removeEventListener("abort", cancel);
      }
    },
    leave: (client) => {
      for (const { call, end } of Array.from(waiting.values()))
        if (client === undefined || call.client === client) end();
      for (const call of calls)
        if (client === undefined || call.client === client) call.cancelled.abort(new Error("the client is gone"));
    },
  };
};
