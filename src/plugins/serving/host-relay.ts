/**
 * Passes what a server asks of its host (sampling, elicitation) on to the client it
 * works for.
 *
 * The rule: a server's question does not say to which call it belongs, and one server
 * serves many clients. It goes to the client whose call that server is running; when
 * calls of two or more clients are running on it, or none, the question is refused, so
 * that no client is ever asked on behalf of another. Log messages go the same way. Roots are not offered: each client
 * has its own, and the server is shared.
 */
import type { ElicitResult, CreateMessageResult, HostHandlers, HostRequestContext } from "../../core/contracts.ts";
import { rpcError } from "./wire.ts";

/** A client's call while it runs. */
export interface RunningCall {
  readonly client: object;
  /** Undefined when the tool has not been listed yet: then it may be any server's. */
  readonly handle: string | undefined;
  /** Asks the client; rejects when it does not support the method. */
  readonly ask: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>;
}

export interface HostRelay {
  readonly handlers: HostHandlers;
  readonly running: Set<RunningCall>;
  /** The client whose call the endpoint's server is running, when it is one alone. */
  readonly clientOf: (endpointId: string) => object | undefined;
}

/** `handlesOf` answers under which handles an endpoint is attached. */
export const makeHostRelay = (handlesOf: (endpointId: string) => ReadonlyArray<string>): HostRelay => {
  const running = new Set<RunningCall>();

  const callsOf = (endpointId: string) => {
    const handles = handlesOf(endpointId);
    const calls = [...running].filter(({ handle }) => handle === undefined || handles.includes(handle));
    return { calls, clients: new Set(calls.map(({ client }) => client)) };
  };

  const relay = (method: string, params: unknown, { endpoint, signal }: HostRequestContext): Promise<unknown> => {
    const { calls, clients } = callsOf(endpoint.endpointId);
    if (clients.size === 1) return calls.at(-1)!.ask(method, params, signal);
    const why = clients.size === 0 ? "no client is using this server" : `${clients.size} clients are using this server`;
    throw rpcError(-32603, `The gateway cannot tell whom to ask: ${why}`);
  };

  return {
    running,
    clientOf: (endpointId) => {
      const [client, ...others] = callsOf(endpointId).clients;
      return others.length === 0 ? client : undefined;
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
