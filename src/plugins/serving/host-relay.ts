/**
 * Passes what a server asks of its host (sampling, elicitation) on to the client it
 * works for.
 *
 * The rule: a server's question does not say to which call it belongs, and one server
 * serves many clients. It goes to the client whose call that server is running; when
 * calls of two or more clients are running on it, or none, the question is refused, so
 * that no client is ever asked on behalf of another. Calls that may be of different
 * clients count as such. Log messages go the same way. Roots are not offered: each client
 * has its own, and the server is shared.
 */
import type { ElicitResult, CreateMessageResult, HostHandlers, HostRequestContext } from "../../core/contracts.ts";
import { later } from "./background-timer.ts";
import type { Exchange } from "./exchange.ts";
import { rpcError } from "./wire.ts";

/** A client's call while it runs. */
export interface RunningCall {
  readonly exchange: Pick<Exchange, "ask" | "asker" | "client" | "log" | "signal">;
  /** Undefined when the tool has not been listed yet: then it may be any server's. */
  readonly handle: string | undefined;
}

export interface HostRelay {
  readonly handlers: HostHandlers;
  /** Notes a call; answers what to do when it ends. */
  readonly starts: (call: RunningCall) => () => void;
  /** A call that the endpoint's server is running, when all it runs are of one client. */
  readonly callOf: (endpointId: string) => RunningCall | undefined;
}

/** `handlesOf` answers under which handles an endpoint is attached. */
/** How long a server may still be at work on a call that was given up, ms. */
const aftermath = 5_000;

export const makeHostRelay = (handlesOf: (endpointId: string) => ReadonlyArray<string>): HostRelay => {
  const running = new Set<RunningCall>();
  const givenUp = new Set<RunningCall>();

  const callsOf = (endpointId: string) => {
    const handles = handlesOf(endpointId);
    const isOf = ({ handle }: RunningCall): boolean => handle === undefined || handles.includes(handle);
    const calls = [...running].filter(isOf);
    const askers = new Set(calls.map(({ exchange }) => exchange.asker));
    // A server may ask for a call that its client gave up: no other client is asked in its place.
    for (const { exchange } of [...givenUp].filter(isOf))
      if (calls.some((call) => call.exchange.client !== exchange.client)) askers.add(exchange.asker);
    return { calls, askers };
  };

  const relay = (method: string, params: unknown, { endpoint, signal }: HostRequestContext): Promise<unknown> => {
    const { calls, askers } = callsOf(endpoint.endpointId);
    if (askers.size === 1) return calls.at(-1)!.exchange.ask(method, params, signal);
    const why = askers.size === 0 ? "no client is using this server" : `${askers.size} clients are using this server`;
    throw rpcError(-32603, `The gateway cannot tell whom to ask: ${why}`);
  };

  return {
    starts: (call) => {
      running.add(call);
      return () => {
        running.delete(call);
        if (!call.exchange.signal.aborted) return;
        givenUp.add(call);
        later(aftermath, () => givenUp.delete(call));
      };
    },
    callOf: (endpointId) => {
      const { calls, askers } = callsOf(endpointId);
      return askers.size === 1 ? calls.at(-1) : undefined;
    },
    handlers: {
      sampling: (params, context) => relay("sampling/createMessage", params, context) as Promise<CreateMessageResult>,
      elicitation: {
        form: (params, context) => relay("elicitation/create", params, context) as Promise<ElicitResult>,
        url: (params, context) => relay("elicitation/create", params, context) as Promise<ElicitResult>,
      },
    },
  };
};
