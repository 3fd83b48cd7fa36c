/** Part of the engine contract: openings that do not end well, and what servers of the legacy eras ask. */
import { Cancelled } from "../core/errors.ts";
import { type ContractSuite, demand, demandSame, mcpErrorOf } from "./contract-case.ts";
import {
  connect,
  defaultOpening,
  type EngineContractOptions,
  type Message,
  type Peer,
  type WithSession,
} from "./engine-peer.ts";

/** What the peer does soon after each message it gets. */
const whenSent =
  (act: (peer: Peer, message: Message) => void) =>
  (peer: Peer): void => {
    peer.refuse = (message) => void queueMicrotask(() => act(peer, message));
  };

/** Handshakes that do not end well. */
export const openingCases = (options: EngineContractOptions): ContractSuite => {
  const opening = options.opening ?? defaultOpening;
  const refusing = Object.fromEntries(Object.keys(opening).map((method) => [method, () => undefined]));
  return [
    {
      name: "connect fails with a typed error when the server refuses",
      run: async () => {
        const error = { code: -32601, message: "Method not found" };
        const use = whenSent((peer, { method, id }) => {
          if (method in opening) peer.say({ id, error });
        });
        await mcpErrorOf("a refused handshake", connect({ ...options, opening: {} }, { use }));
      },
    },
    {
      name: "connect fails with a typed error when the answer is garbage",
      run: async () => {
        await mcpErrorOf("a handshake answered by nothing", connect({ ...options, opening: refusing }));
      },
    },
    {
      name: "connect fails with a typed error when the connection ends",
      run: async () => {
        const use = whenSent((peer) => peer.hangUp());
        await mcpErrorOf("a connection that ends", connect({ ...options, opening: {} }, { use }));
      },
    },
    {
      name: "connect stops when it is aborted",
      run: async () => {
        const controller = new AbortController();
        const reason = new Cancelled({ reason: "contract" });
        const use = whenSent(() => controller.abort(reason));
        await mcpErrorOf(
          "an aborted connect",
          connect({ ...options, opening: {} }, { use, signal: controller.signal }),
        );
      },
    },
  ];
};

/** In the legacy eras the server asks by itself. */
export const serverRequestCases = (withSession: WithSession): ContractSuite => {
  const roots = [{ uri: "file:///contract", name: "contract" }];
  return [
    {
      name: "answers a ping of the server, and refuses what it does not know",
      run: withSession(async ({ peer }) => {
        peer.say({ id: "p", method: "ping" });
        demandSame("answer to ping", (await peer.answerTo("p"))["result"], {});
        peer.say({ id: 0, method: "no/such" });
        demandSame("code", (await peer.answerTo(0))["error"]?.code, -32601);
      }),
    },
    {
      name: "advertises nothing for a host without handlers",
      run: withSession(async ({ peer }) => {
        const advertised = peer.sent.find(({ method }) => method === "initialize")?.["params"].capabilities;
        for (const feature of ["roots", "sampling", "elicitation"])
          demand(!(feature in advertised), `it advertises ${feature}`);
        peer.say({ id: 1, method: "roots/list" });
        demandSame("code", (await peer.answerTo(1))["error"]?.code, -32601);
      }),
    },
    {
      name: "advertises and asks the host's handlers",
      run: withSession(
        async ({ peer }) => {
          const advertised = peer.sent.find(({ method }) => method === "initialize")?.["params"].capabilities;
          demand("roots" in advertised, "it does not advertise roots");
          peer.say({ id: 1, method: "roots/list" });
          demandSame("answer", (await peer.answerTo(1))["result"], { roots });
        },
        { handlers: { roots: () => roots } },
      ),
    },
    {
      name: "a handler that throws is an error for the server alone",
      run: withSession(
        async ({ peer, closed }) => {
          peer.say({ id: 1, method: "roots/list" });
          demand((await peer.answerTo(1))["error"], "the server got no error");
          demandSame("closed", closed.length, 0);
        },
        {
          handlers: {
            roots: () => {
              throw new Error("contract");
            },
          },
        },
      ),
    },
  ];
};
