/** No secret of the host shows in what the runtime says: errors, events, health, endpoints, logs of them. */
import { inspect } from "node:util";
import { describe, expect, it } from "@effect/vitest";
import { createRuntime, HttpEndpoint, type McpEvent, ports, StdioEndpoint } from "../../src/mod.ts";
import { startScriptedHttp } from "../../src/testing/servers/http.ts";
import { nodeBinary } from "../support/node-binary.ts";
import { scriptedStdio } from "../support/scripted-stdio.ts";

const secrets = {
  env: "s3cr3t-of-the-environment",
  header: "s3cr3t-of-the-header",
  query: "s3cr3t-of-the-query",
  password: "s3cr3t-of-the-userinfo",
};

/** As a host might log it: text, JSON, and the deepest look the runtime's own inspector gives. */
const logged = (value: unknown): string => {
  const error = value instanceof Error ? [value.message, value.stack, inspect(value.cause, { depth: 20 })] : [];
  return [...error, JSON.stringify(value), String(value), inspect(value, { depth: 20, showHidden: false })].join("\n");
};

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => expect.unreachable("it did not fail"),
    (error: unknown) => error,
  );

describe("secrets", () => {
  it("of environment, headers, query and userinfo show in no error, event, health or endpoint", async () => {
    const events: Array<McpEvent> = [];
    const observe = { on: (event: McpEvent) => void events.push(event) };
    const said: Array<unknown> = [];
    // A server that repeats what it is given, on stderr and in the bodies of its refusals.
    const script = "process.stderr.write(`token is ${process.env.TOKEN}\\n`); process.exitCode = 3;";
    const chatty = { command: nodeBinary, args: ["-e", script] };
    const fine = scriptedStdio({ tools: [{ name: "echo", inputSchema: { type: "object" } }] });
    const refusing = await startScriptedHttp(({ request, text }) =>
      text(403, `no: ${JSON.stringify(request.headers)} ${request.path}`),
    );
    const env = { TOKEN: secrets.env };
    const endpoints = {
      chatty: new StdioEndpoint({ name: "chatty", ...chatty, env }),
      fine: new StdioEndpoint({ name: "fine", ...fine, env }),
      remote: new HttpEndpoint({
        name: "remote",
        url: `${refusing.url}?key=${secrets.query}`.replace("http://", `http://user:${secrets.password}@`),
        headers: { "x-key": secrets.header },
      }),
      away: new HttpEndpoint({
        name: "away",
        url: `http://user:${secrets.password}@127.0.0.1:9/mcp?key=${secrets.query}`,
        headers: { "x-key": secrets.header },
      }),
    };
    {
      await using runtime = await createRuntime({
        setup: (c) => void c.registerInstance(ports.observers.token, observe),
      });
      for (const [handle, endpoint] of Object.entries(endpoints)) {
        const connector = await runtime.attach(handle, endpoint, { pin: true });
        await connector.providers();
        said.push(endpoint, endpoint.endpointId, connector.status, connector.skipped, connector.quarantine);
        if (handle !== "fine") said.push(await failureOf(runtime.callTool({ tool: `${handle}__echo` })));
      }
      said.push(await runtime.callTool({ tool: "fine__echo" }));
      said.push(await failureOf(runtime.attach("", endpoints.remote)));
      said.push(await runtime.health());
    }
    await refusing[Symbol.asyncDispose]();
    const text = [...said, ...events].map(logged).join("\n");
    // What is looked at is there: the failures name their servers, the refused request reached its server.
    expect(text).toMatch(/chatty.*exit code 3/);
    expect(text).toMatch(/token is (?!s3cr3t)/);
    expect(text).toContain("MCP server 'remote' forbids this request");
    expect(refusing.requests[0]?.headers["x-key"]).toBe(secrets.header);
    expect(events.some(({ type }) => type === "connect.failed")).toBe(true);
    for (const [what, secret] of Object.entries(secrets)) expect([what, text.includes(secret)]).toEqual([what, false]);
    expect(text).not.toContain(btoa(`user:${secrets.password}`));
  });
});
