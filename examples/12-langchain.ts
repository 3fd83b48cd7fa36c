/** LangChain: a server's tools as LangChain tools, called as a model would. */
import { langchainTools } from "../src/langchain.ts";
import { createRuntime, StdioEndpoint } from "../src/mod.ts";
import { nodeBinary, script } from "./support/servers.ts";

await using runtime = await createRuntime();
const args = [script("server-everything"), "stdio"];
await runtime.attach("demo", new StdioEndpoint({ name: "everything", command: nodeBinary, args }));

// In a real host these go to `createAgent({ model, tools })` or `model.bindTools(tools)`.
const tools = await langchainTools(runtime);
console.log(`${tools.length} tools: ${tools.map(({ name }) => name).join(", ")}`);

const echo = tools.find(({ name }) => name === "demo__echo")!;
const call = { type: "tool_call" as const, id: "1", name: echo.name, args: { message: "hello" } };
const message = await echo.invoke(call);
console.log(message.content, "and the whole result:", message.artifact);
if (message.content !== "Echo: hello") throw new Error("the tool did not answer");
