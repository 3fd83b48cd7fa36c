/** Tools for a model provider: ready definitions for a request, and the model's call as it comes back. */
import { toolsFor } from "../src/dialects.ts";
import { createRuntime, StdioEndpoint } from "../src/mod.ts";
import { nodeBinary, script } from "./support/servers.ts";

await using runtime = await createRuntime();
const args = [script("server-everything"), "stdio"];
await runtime.attach("demo", new StdioEndpoint({ name: "everything", command: nodeBinary, args }));

// Each list goes into a request as it is: `tools` of Anthropic Messages and of OpenAI, `functionDeclarations` of Gemini.
const anthropic = await toolsFor(runtime, "anthropic");
const strict = await toolsFor(runtime, "openai-responses", { strict: true });
const gemini = await toolsFor(runtime, "gemini");
console.log(
  `${anthropic.tools.length} tools for Anthropic, ${strict.tools.length} for OpenAI, ${gemini.tools.length} for Gemini`,
);
for (const { name, reason } of strict.loose) console.log(`not strict: ${name}: ${reason}`);

// What a model answers in strict mode names every parameter; null means it was left out.
const call = { name: "demo__get-annotated-message", arguments: { messageType: "success", includeImage: null } };
const result = await runtime.callTool({ tool: call.name, arguments: call.arguments });
console.log(result.textContent);

const lists = [anthropic, strict, gemini];
if (lists.some(({ tools, skipped }) => tools.length === 0 || skipped.length > 0)) throw new Error("a tool was lost");
if (result.isError) throw new Error("the call failed");
