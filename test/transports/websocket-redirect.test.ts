import { describe, expect, it } from "@effect/vitest";
import { createRuntime, WebSocketEndpoint } from "../../src/mod.ts";
import { startScriptedHttp } from "../../src/testing/servers/http.ts";

describe("WebSocket", () => {
  it.each([301, 302, 303, 307, 308])("a redirect (%d) is not followed, not even on this machine", async (status) => {
    const victim = await startScriptedHttp(({ text }) => text(200, "here"));
    const server = await startScriptedHttp(({ text }) => text(status, "", { location: victim.url }));
    {
      await using runtime = await createRuntime({ settings: { connectTimeout: "5 seconds" } });
      const endpoint = new WebSocketEndpoint({ url: server.url.replace("http:", "ws:") });
      const error = await runtime.client(endpoint).then(
        () => undefined,
        (failure: unknown) => failure,
      );
      expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "transport" });
    }
    expect(victim.requests).toEqual([]);
    await server[Symbol.asyncDispose]();
    await victim[Symbol.asyncDispose]();
  });
});
