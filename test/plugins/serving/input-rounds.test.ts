/** What servers ask in the middle of a call, put to clients of 2026-07-28 as `input_required`. */
import { fileURLToPath } from "node:url";
import type { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "@effect/vitest";
import { StdioEndpoint } from "../../../src/mod.ts";
import { createGateway, type GatewayOptions } from "../../../src/serve.ts";
import { nodeBinary } from "../../support/node-binary.ts";
import { until } from "../../support/stdio-pids.ts";
import { type ListeningGateway, textOf } from "./gateway-with.ts";
import { envelope, modernAgent, post } from "./modern-agents.ts";

const server = fileURLToPath(new URL("../../support/asking-server.ts", import.meta.url));
const able = { elicitation: { form: {}, url: {} }, sampling: {} };

const asking = async (options: GatewayOptions = {}): Promise<ListeningGateway> => {
  const gateway = await createGateway(options);
  await gateway.runtime.attach("asks", new StdioEndpoint({ name: "asks", command: nodeBinary, args: [server] }));
  const { url, port } = await gateway.listen();
  return { gateway, url, port, [Symbol.asyncDispose]: gateway.close };
};

const answering =
  (name: string, asked: Array<unknown> = []) =>
  (client: Client) => {
    client.setRequestHandler("elicitation/create", ({ params }) => {
      asked.push(params.mode === "url" ? params.url : params.message);
      return { action: "accept", ...(params.mode !== "url" && { content: { name } }) };
    });
    client.setRequestHandler("sampling/createMessage", () => ({
      model: "m",
      role: "assistant" as const,
      content: { type: "text" as const, text: `sampled by ${name}` },
    }));
  };

const accept = (name: string) => ({ action: "accept", content: { name } });
const call = (url: string, tool: string, more: object = {}, capabilities: object = able) =>
  post(url, "tools/call", { name: `asks__${tool}`, _meta: envelope(capabilities), ...more });
const running = ({ gateway }: ListeningGateway): Promise<boolean> =>
  gateway.runtime.health().then(({ gates }) => gates.some(({ name, used }) => name.includes("asks") && used > 0));

describe("what servers ask during a call", () => {
  it("reaches the SDK's client round by round: forms, URLs, sampling, several at once; in prompts and resources too", async () => {
    await using served = await asking();
    const asked: Array<unknown> = [];
    await using one = await modernAgent(served.url, { capabilities: able }, answering("Ada", asked));
    const { client } = one;
    const texts = [];
    for (const name of ["once", "twice", "both", "page"])
      texts.push(textOf(await client.callTool({ name: `asks__${name}` })));
    expect(texts).toEqual(["Ada", "Ada Ada", "Ada sampled by Ada", "accept"]);
    expect((await client.getPrompt({ name: "asks__who" })).description).toBe("Ada");
    expect((await client.readResource({ uri: "who:///" })).contents).toMatchObject([{ text: "Ada" }]);
    expect(asked).toEqual([
      "Your name?",
      "First?",
      "Second?",
      "Your name?",
      "https://example.com/login",
      "Who?",
      "Who?",
    ]);
    expect(await running(served)).toBe(false);
  });

  it("questions of one moment come together; what is not answered is asked again", async () => {
    await using served = await asking();
    const first = (await call(served.url, "both")).answer.result;
    expect(first.resultType).toBe("input_required");
    const entries = Object.entries<any>(first.inputRequests);
    expect(entries.map(([, { method }]) => method).toSorted()).toEqual([
      "elicitation/create",
      "sampling/createMessage",
    ]);
    const key = (method: string): string => entries.find(([, asked]) => asked.method === method)![0];
    const sampled = { model: "m", role: "assistant", content: { type: "text", text: "sampled" } };
    const second = (
      await call(served.url, "both", {
        requestState: first.requestState,
        inputResponses: { [key("sampling/createMessage")]: sampled, [key("elicitation/create")]: { what: "nonsense" } },
      })
    ).answer.result;
    expect(Object.keys(second.inputRequests)).toEqual([key("elicitation/create")]);
    const third = (
      await call(served.url, "both", {
        requestState: second.requestState,
        inputResponses: { [key("elicitation/create")]: accept("Bo") },
      })
    ).answer.result;
    expect([third.resultType, textOf(third)]).toEqual(["complete", "Bo sampled"]);
  });

  it("a state opens one call, once, for its own client and its own request", async () => {
    await using served = await asking();
    const { requestState, inputRequests } = (await call(served.url, "once")).answer.result;
    const inputResponses = { [Object.keys(inputRequests)[0]!]: accept("Cy") };
    const other = { "io.modelcontextprotocol/clientInfo": { name: "other", version: "1" } };
    const refused = [
      await call(served.url, "twice", { requestState, inputResponses }),
      await call(served.url, "once", { requestState: `${requestState}x`, inputResponses }),
      await call(served.url, "once", { requestState, inputResponses, arguments: { other: true } }),
      await call(served.url, "once", { requestState, inputResponses, _meta: envelope(able, other) }),
    ];
    expect(refused.map(({ answer }) => answer.error.code)).toEqual([-32602, -32602, -32602, -32602]);
    const done = await call(served.url, "once", { requestState, inputResponses });
    expect(textOf(done.answer.result)).toBe("Cy");
    expect((await call(served.url, "once", { requestState, inputResponses })).answer.error.code).toBe(-32602);
  });

  it("a client that cannot answer gets the error of the revision, and the call ends", async () => {
    await using served = await asking();
    const { answer } = await call(served.url, "once", {}, { sampling: {} });
    expect(answer.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { elicitation: { form: {} } } },
    });
    const page = await call(served.url, "page", {}, { elicitation: { form: {} } });
    expect(page.answer.error.data).toEqual({ requiredCapabilities: { elicitation: { url: {} } } });
    const done = async (): Promise<void> => {
      while (await running(served)) await new Promise((resolve) => setTimeout(resolve, 10));
    };
    await done();
  });

  it("two clients that introduce themselves alike are never asked for each other", async () => {
    await using served = await asking();
    const first = await call(served.url, "once");
    expect(first.answer.result.resultType).toBe("input_required");
    // While the first waits, the server's next question could be either's.
    const second = await call(served.url, "once");
    expect([second.answer.result.isError, textOf(second.answer.result)]).toEqual([
      true,
      expect.stringContaining("2 clients"),
    ]);
    const { requestState, inputRequests } = first.answer.result;
    const inputResponses = { [Object.keys(inputRequests)[0]!]: accept("Di") };
    expect(textOf((await call(served.url, "once", { requestState, inputResponses })).answer.result)).toBe("Di");
  });

  it("what came of a call waits for its client, also when the server has given up its question", async () => {
    const gateway = await createGateway();
    await using _ = { [Symbol.asyncDispose]: gateway.close };
    await gateway.runtime.attach("asks", new StdioEndpoint({ name: "asks", command: nodeBinary, args: [server] }));
    const { url, port } = await gateway.listen({ sessionLost: 100 });
    const { requestState } = (await call(url, "hurried")).answer.result;
    let stopped = false;
    await until("the server has answered", () => {
      void running({ gateway, url, port, [Symbol.asyncDispose]: gateway.close }).then((still) => (stopped = !still));
      return stopped;
    });
    const other = { "io.modelcontextprotocol/clientInfo": { name: "other", version: "1" } };
    await post(url, "tools/list", { _meta: envelope(able, other) });
    await until("a client that came later is forgotten", () => gateway.clients() < 2);
    const { result } = (await call(url, "hurried", { requestState })).answer;
    expect([result?.resultType, result?.isError, textOf(result)]).toEqual([
      "complete",
      true,
      expect.stringContaining("timed out"),
    ]);
    await until("it is forgotten too", () => gateway.clients() === 0);
  });

  it("a client that does not come back loses the call, and the server its question", async () => {
    await using served = await asking({ serve: { inputPatience: 50 } });
    const { requestState } = (await call(served.url, "once")).answer.result;
    let stopped = false;
    await until("the call has ended", () => {
      void running(served).then((still) => (stopped = !still));
      return stopped;
    });
    expect((await call(served.url, "once", { requestState })).answer.error.code).toBe(-32602);
  });

  it("a gateway that closes waits for nobody", async () => {
    const served = await asking();
    await call(served.url, "once");
    await served.gateway.close();
  });
});
