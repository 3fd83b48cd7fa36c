/** The first call: start a server, call one of its tools, print the answer. */
import { createRuntime, StdioEndpoint } from "../src/mod.ts";
import { nodeBinary, script } from "./support/servers.ts";

await using runtime = await createRuntime();
const args = [script("server-everything"), "stdio"];
await runtime.attach("demo", new StdioEndpoint({ name: "everything", command: nodeBinary, args }));
const result = await runtime.callTool({ tool: "demo__echo", arguments: { message: "hello" } });
console.log(result.textContent);
if (result.textContent !== "Echo: hello") throw new Error("the server did not echo");
