/** The contract of `ProtocolEngine`: what core relies on, against a server that the suite plays itself. */
import { Cancelled, ConnectionLost, MessageTooLarge, ProtocolError } from "../core/errors.ts";
import {
  type ContractSuite,
  demand,
  demandSame,
  eventually,
  mcpErrorOf,
  rejectionOf,
  within,
} from "./contract-case.ts";
import { openingCases, serverRequestCases } from "./engine-opening.ts";
import { capabilities, connect, type EngineContractOptions, serverInfo, sessionsOf } from "./engine-peer.ts";

export type { EngineContractOptions } from "./engine-peer.ts";

const textResult = (text: string): unknown => ({ content: [{ type: "text", text }] });
const textOf = (result: any): unknown => result?.content?.[0]?.text;

/** Cases every engine has to pass. */
export const engineContract = (options: EngineContractOptions): ContractSuite => {
  const { engine } = options;
  const withSession = sessionsOf(options);

  return [
    {
      name: "connects and says whom it reached, and in which revision",
      run: withSession(async ({ session, closed }) => {
        demandSame("era", session.era, engine.era);
        demand(/^\d{4}-\d{2}-\d{2}$/.test(session.protocolVersion), `protocol version '${session.protocolVersion}'`);
        demandSame("serverInfo", session.serverInfo, serverInfo);
        demandSame("capabilities", session.capabilities, capabilities);
        demandSame("instructions", session.instructions, "Hi.");
        demandSame("closed", closed.length, 0);
      }),
    },
    {
      name: "gives each of 50 requests its own answer, whatever their order",
      run: withSession(async ({ peer, call }) => {
        const answers = Array.from({ length: 50 }, (_, i) => call(`t${i}`));
        const requests = await peer.heard("tools/call", 50);
        demandSame("different ids", new Set(requests.map(({ id }) => id)).size, 50);
        for (const { id, params } of requests.toReversed()) peer.say({ id, result: textResult(params.name) });
        const results = await within("50 answers", Promise.all(answers));
        demandSame(
          "answers",
          results.map(textOf),
          Array.from({ length: 50 }, (_, i) => `t${i}`),
        );
      }),
    },
    {
      name: "a JSON-RPC error becomes a ProtocolError with code and data",
      run: withSession(async ({ peer, call }) => {
        const answer = call("x");
        const [request] = await peer.heard("tools/call");
        peer.say({ id: request!["id"], error: { code: -32602, message: "no such tool", data: { hint: 1 } } });
        const error = await mcpErrorOf("a refused request", answer);
        demand(error instanceof ProtocolError && error.code === -32602, `it is ${String(error)}`);
        demandSame("data", error.data, { hint: 1 });
      }),
    },
    {
      name: "a typed error of the transport reaches the caller as itself",
      run: withSession(async ({ peer, call }) => {
        const data = new MessageTooLarge({ server: "peer", size: 2, limit: 1 });
        const answer = call("large");
        const [request] = await peer.heard("tools/call");
        peer.say({ id: request!["id"], error: { code: -32603, message: "too large", data } });
        demand((await rejectionOf("an answer with an McpError", answer)) === data, "it is not the same instance");

        const lost = new ConnectionLost({ server: "peer", outcome: "not-sent", reason: "the pipe is full" });
        peer.refuse = ({ method }) => (method === "tools/call" ? lost : undefined);
        demand((await rejectionOf("a send that rejects", call("unsent"))) === lost, "it is not the same instance");
        peer.refuse = undefined;
      }),
    },
    {
      name: "aborting a request tells the server and rejects with the signal's reason; its neighbour goes on",
      run: withSession(async ({ peer, call }) => {
        const controller = new AbortController();
        const listeners: Array<(reason: unknown) => void> = [];
        const aborted = call("slow", { signal: controller.signal, onCancel: (listener) => listeners.push(listener) });
        const neighbour = call("other");
        const [slow, other] = await peer.heard("tools/call", 2);
        const reason = new Cancelled({ reason: "contract" });
        controller.abort(reason);
        for (const listener of listeners) listener(reason);
        demand((await rejectionOf("an aborted request", aborted)) === reason, "it rejects with another reason");
        const [cancelled] = await peer.heard("notifications/cancelled");
        demandSame("cancelled request", cancelled!["params"].requestId, slow!["id"]);
        peer.say({ id: slow!["id"], result: textResult("too late") });
        peer.say({ id: other!["id"], result: textResult("fine") });
        demandSame("the neighbour's answer", textOf(await within("the neighbour", neighbour)), "fine");
      }),
    },
    {
      name: "progress reaches the request it belongs to, before the answer",
      run: withSession(async ({ peer, call }) => {
        const seen: Array<string> = [];
        const listen = (name: string) => call(name, { onProgress: ({ progress }) => seen.push(`${name} ${progress}`) });
        const answers = [listen("a"), listen("b")];
        const requests = await peer.heard("tools/call", 2);
        for (const { params } of requests) {
          const progressToken = params._meta?.progressToken;
          demand(progressToken !== undefined, "a request with onProgress carries no progress token");
          peer.say({ method: "notifications/progress", params: { progressToken, progress: 1, total: 2 } });
        }
        for (const { id } of requests) peer.say({ id, result: textResult("done") });
        await within("two answers", Promise.all(answers));
        demandSame("progress", seen, ["a 1", "b 1"]);
      }),
    },
    {
      name: "notifications reach the listener with their params; strange messages do no harm",
      run: withSession(async ({ peer, notifications, call }) => {
        for (const strange of [{ id: 987_654, result: {} }, { result: {} }, { id: null, error: {} }, { method: 5 }])
          peer.say(strange);
        peer.transport.onmessage?.(null as never);
        peer.say({ method: "notifications/message", params: { level: "info", data: "x" } });
        await eventually("the notification", () => notifications.length > 0);
        demandSame("notification", notifications, [["notifications/message", { level: "info", data: "x" }]]);
        const answer = call("after");
        const [request] = await peer.heard("tools/call");
        peer.say({ id: request!["id"], result: textResult("alive") });
        demandSame("an answer", textOf(await within("a call", answer)), "alive");
      }),
    },
    {
      name: "the end of the connection fails what is in flight and all that comes later, and is told once",
      run: withSession(async ({ peer, call, closed }) => {
        const pending = [call("a"), call("b")];
        await peer.heard("tools/call", 2);
        peer.hangUp();
        for (const answer of pending) {
          const error = await mcpErrorOf("a request in flight", answer);
          demand(error instanceof ConnectionLost, `it is ${String(error)}`);
          demandSame("outcome", error.outcome, "unknown");
        }
        const late = await mcpErrorOf("a request after the end", call("late"));
        demand(late instanceof ConnectionLost && late.outcome === "not-sent", `it is ${String(late)}`);
        demandSame("how often the end was told", closed.length, 1);
      }),
    },
    {
      name: "close() settles, and fails what is in flight",
      run: async () => {
        const { peer, session, call } = await connect(options);
        const answer = call("a");
        await peer.heard("tools/call");
        const failed = mcpErrorOf("a request in flight", answer);
        await within("close()", session.close());
        await failed;
      },
    },
    ...openingCases(options),
    ...(engine.era === "legacy" ? serverRequestCases(withSession) : []),
  ];
};
