/**
 * Multi round-trip requests: a server that needs something of the host answers
 * `input_required`, and the request is sent again with what the host said.
 * Source: MCP 2026-07-28, basic/patterns/mrtr.
 */
import { isDeep, isRecord } from "../../core/artifact/json.ts";
import type { HostHandlers, HostRequestContext } from "../../core/contracts.ts";
import { isMcpError, PluginFailed, ProtocolError } from "../../core/errors.ts";
import { answerHostRequest, type Fits } from "./host-requests.ts";
import { aborted, type CallOptions, type Calls, type Json } from "./legacy-calls.ts";

/** Times a server may ask within one request. */
const ROUNDS = 10;
/** The wait before a request is sent again that got a state but no question, ms: the server is shedding load. */
const PACE = 250;
const INVALID_RESULT = -32_603;

export interface InputFlow {
  readonly handlers: HostHandlers;
  readonly context: Omit<HostRequestContext, "signal">;
  readonly calls: Pick<Calls, "request">;
  readonly method: string;
  readonly params: Record<string, unknown> | undefined;
  readonly given: CallOptions;
  readonly first: Json;
}

export const isInputRequired = (result: unknown): result is Json =>
  isRecord(result) && result["resultType"] === "input_required";

/** Waits, or until the signal aborts. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
  });

/** Asks the host everything at once; the first that fails ends the others. */
const gather = async (requests: Json, { handlers, context, method }: InputFlow, signal: AbortSignal): Promise<Json> => {
  const { name: server } = context;
  const { isSpecType } = await import("@modelcontextprotocol/client");
  const fits: Fits = (shape, value) => isSpecType[shape](value);
  const failure = new AbortController();
  const within = { ...context, signal: AbortSignal.any([signal, failure.signal]) };
  const answer = async ([key, asked]: readonly [string, unknown]): Promise<readonly [string, unknown]> => {
    if (!isRecord(asked) || typeof asked["method"] !== "string")
      throw new ProtocolError({ server, code: INVALID_RESULT, reason: `its question '${key}' names no method` });
    try {
      return [key, await answerHostRequest(handlers, asked["method"], asked["params"], within, fits)];
    } catch (cause) {
      if (isMcpError(cause)) throw cause;
      const why = cause instanceof Error ? cause.message : String(cause);
      const reason = `${asked["method"]}, which '${server}' needs for ${method}, was not answered: ${why}`;
      throw new PluginFailed({ plugin: "host handlers", reason }, cause);
    }
  };
  try {
    return Object.fromEntries(await Promise.all(Object.entries(requests).map(answer)));
  } catch (cause) {
    failure.abort(cause);
    throw cause;
  }
};

/** Answers the server's questions, round by round, until the result is another. */
export const fulfil = async (flow: InputFlow): Promise<unknown> => {
  const { context, calls, method, params, given } = flow;
  const { signal, onProgress } = given;
  let result: unknown = flow.first;
  for (let round = 1; isInputRequired(result); round++) {
    const { inputRequests: requests, requestState } = result;
    const asked = isRecord(requests) && Object.keys(requests).length > 0;
    const wrong = (reason: string) => new ProtocolError({ server: context.name, code: INVALID_RESULT, reason });
    if (!asked && requestState === undefined) throw wrong(`it wants input for ${method} but does not say which`);
    if (isDeep(requestState)) throw wrong(`it wants back a state of ${method} that is nested too deep to be sent`);
    if (round > ROUNDS) throw wrong(`${method} still wants input after ${ROUNDS} rounds`);
    let inputResponses: Json | undefined;
    const done = given.onHostWork?.();
    try {
      if (asked) inputResponses = await gather(requests, flow, signal);
      else await pause(PACE, signal);
    } catch (cause) {
      throw signal.aborted ? aborted(signal.reason) : cause;
    } finally {
      done?.();
    }
    const retry = {
      ...params,
      ...(inputResponses && { inputResponses }),
      ...(requestState !== undefined && { requestState }),
    };
    // Cancellation has one listener, which the first round took; a signal takes any number.
    result = await calls.request(method, retry, { signal, onProgress });
  }
  return result;
};
