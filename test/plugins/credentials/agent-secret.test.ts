import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { HttpEndpoint } from "../../../src/core/endpoint.ts";
import { AgentSecret, type AgentSecretOptions } from "../../../src/plugins/credentials/agent-secret.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";

const agent = (more: Partial<AgentSecretOptions> = {}): AgentSecret =>
  new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot", ...more });

const decodeForm = (text: string | undefined) => new URLSearchParams(`x=${text}`).get("x");

const idOf = (credential: AgentSecret) => new HttpEndpoint({ url: "https://files.example/mcp", credential }).endpointId;

describe("AgentSecret", () => {
  it.effect("gets a token after the challenge and sends it from then on", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const credential = agent();
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 1 });
      expect(world.tokenRequests).toHaveLength(1);
      expect(world.tokenRequests[0]?.form).toEqual({ grant_type: "client_credentials", resource: world.url });
    }),
  );

  it.effect.each<[string, Partial<AgentSecretOptions>, ReadonlyArray<string> | undefined, "basic" | "post"]>([
    ["where the server lists nothing", {}, undefined, "basic"],
    ["where the server lists both", {}, ["client_secret_post", "client_secret_basic"], "basic"],
    ["where the server lists post", {}, ["client_secret_post"], "post"],
    ["where the server lists only what it has not", {}, ["private_key_jwt"], "basic"],
    ["the host's choice", { authMethod: "client_secret_post" }, undefined, "post"],
    ["the host's choice against the list", { authMethod: "client_secret_basic" }, ["client_secret_post"], "basic"],
  ])("authenticates by the method: %s", ([, options, methods, expected]) =>
    Effect.gen(function* () {
      const world = yield* openOAuth({ serverMetadata: () => ({ token_endpoint_auth_methods_supported: methods }) });
      yield* send(agent(options), world.url);
      const [request] = world.tokenRequests;
      if (expected === "basic") {
        expect(request?.authorization).toBe(`Basic ${btoa("robot:s3cr3t-of-the-robot")}`);
        expect(request?.form["client_secret"]).toBeUndefined();
      } else {
        expect(request?.authorization).toBeUndefined();
        expect(request?.form).toMatchObject({ client_id: "robot", client_secret: "s3cr3t-of-the-robot" });
      }
    }),
  );

  it.effect("encodes id and secret as a form before base64 (RFC 6749 section 2.3.1)", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const clientId = "https://robot.example/id?a=1:2";
      const clientSecret = "p@ss: wörd+%/&=";
      yield* send(agent({ clientId, clientSecret }), world.url);
      const [id, secret, ...rest] = atob(world.tokenRequests[0]!.authorization!.slice("Basic ".length)).split(":");
      expect([decodeForm(id), decodeForm(secret), rest]).toEqual([clientId, clientSecret, []]);
      expect(secret).toBe("p%40ss%3A+w%C3%B6rd%2B%25%2F%26%3D");
    }),
  );

  it("is one identity of an endpoint, by its user", () => {
    expect(idOf(agent())).toBe("https://files.example/mcp#as:robot");
    expect(idOf(agent({ user: "billing" }))).toBe("https://files.example/mcp#as:billing");
  });

  it.each([
    ["clientId", { clientId: "" }],
    ["clientSecret", { clientSecret: "" }],
    ["clientSecret", { clientSecret: undefined as unknown as string }],
    ["clientSecret", { clientSecret: Redacted.make("") }],
  ])("says at attach that %s is missing", (field, options) => {
    const credential = agent(options);
    const fault = new HttpEndpoint({ url: "https://files.example/mcp", credential }).validate();
    expect(fault).toMatchObject({ _tag: "InvalidEndpoint", field: `credential.${field}` });
  });

  it("is refused over SSE and beside an Authorization header", () => {
    const url = "https://files.example/mcp";
    const credential = agent();
    expect(new HttpEndpoint({ url, credential, flavor: "sse" }).validate()).toMatchObject({ field: "credential" });
    const headers = { authorization: "Bearer x" };
    expect(new HttpEndpoint({ url, credential, headers }).validate()).toMatchObject({ field: "credential" });
  });
});
