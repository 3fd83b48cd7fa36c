/** Servers that misbehave as told: how a host tests what it does when its tools fail. */
import { strict as assert } from "node:assert";
import { ConnectionLost, createRuntime, HttpEndpoint, StdioEndpoint } from "../src/mod.ts";
import { scriptedStdio, startScriptedHttp } from "../src/testing.ts";

// A stdio server that dies at each call.
const local = scriptedStdio({ on: { "tools/call": [{ delay: 5 }, { exit: 1 }] } });
// An HTTP server that is too busy, then cuts the connection within the answer, then is well.
await using remote = await startScriptedHttp({
  on: { "tools/call": [[{ status: 503 }], [{ raw: '{"jsonrpc":' }, { drop: true }], [{ echo: true }]] },
});

await using runtime = await createRuntime({ settings: { minUptime: 1 } });
await runtime.attach("local", new StdioEndpoint({ name: "local", ...local }));
await runtime.attach("remote", new HttpEndpoint({ url: remote.url }));

await assert.rejects(runtime.callTool({ tool: "local__echo" }), ConnectionLost);
const call = { tool: "remote__echo", arguments: { marker: 1 } };
await assert.rejects(runtime.callTool(call), { _tag: "HttpFailed", status: 503 });
await assert.rejects(runtime.callTool(call), { _tag: "ConnectionLost", outcome: "unknown" });
assert.equal((await runtime.callTool(call)).textContent, '{"marker":1}');
assert.equal(remote.seen("tools/call").length, 3); // each call was sent once
console.log("every failure had its name, and no call was sent twice");
