/** The Vercel AI SDK: a model is given a server's tools. The model here is a script, so that no key is needed. */
import { generateText, isStepCount } from "ai";
import { MockLanguageModelV4 } from "ai/test";
import { aiTools } from "../src/ai-sdk.ts";
import { createRuntime, StdioEndpoint } from "../src/mod.ts";
import { nodeBinary, script } from "./support/servers.ts";

/** Calls the echo tool, then says what it read. In a real host: `anthropic("claude-…")` or any other model. */
const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1)!;
    const told = last.role === "tool" ? last.content[0] : undefined;
    const content =
      told?.type === "tool-result"
        ? { type: "text" as const, text: `It said: ${JSON.stringify(told.output)}` }
        : { type: "tool-call" as const, toolCallId: "1", toolName: "demo__echo", input: '{"message":"hello"}' };
    return {
      content: [content],
      finishReason: { unified: told ? "stop" : "tool-calls", raw: undefined },
      usage: { inputTokens: { total: 0 }, outputTokens: { total: 0 } } as never,
      warnings: [],
    };
  },
});

await using runtime = await createRuntime();
const args = [script("server-everything"), "stdio"];
await runtime.attach("demo", new StdioEndpoint({ name: "everything", command: nodeBinary, args }));
const { text } = await generateText({
  model,
  tools: await aiTools(runtime),
  prompt: "Say hello to the server.",
  stopWhen: isStepCount(5),
});
console.log(text);
if (!text.includes("Echo: hello")) throw new Error("the model did not read the tool's answer");
