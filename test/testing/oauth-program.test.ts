/** The OAuth servers of the kit follow programs too. */
import { describe, expect, it } from "@effect/vitest";
import { type OAuthScript, type OAuthWorld, startOAuth } from "../../src/testing.ts";

const withWorld = async (script: OAuthScript, use: (world: OAuthWorld) => Promise<void>): Promise<void> => {
  // A program is JSON: what is left out on the way was never part of one.
  const world = await startOAuth(JSON.parse(JSON.stringify(script)) as OAuthScript);
  try {
    await use(world);
  } finally {
    await world[Symbol.asyncDispose]();
  }
};

const token = (world: OAuthWorld) =>
  fetch(`${world.issuer}/token`, { method: "POST", body: "a=b", redirect: "manual" });

describe("an OAuth program", () => {
  it("token endpoint: steps in turn, then the honest answer with its members", () =>
    withWorld(
      {
        on: {
          token: [
            [{ status: 500 }],
            [{ redirect: "https://elsewhere.example/" }],
            [{ raw: "{garbage" }, { end: true }],
            [{ delay: 1 }],
          ],
        },
        tokenMembers: { expires_in: 0 },
      },
      async (world) => {
        expect((await token(world)).status).toBe(500);
        expect((await token(world)).headers.get("location")).toBe("https://elsewhere.example/");
        expect(await (await token(world)).text()).toBe("{garbage");
        const honest = await (await token(world)).json();
        expect(honest).toMatchObject({ token_type: "Bearer", expires_in: 0 });
        expect(world.accepted.has(honest.access_token)).toBe(true);
        expect(world.tokenRequests).toHaveLength(4);
      },
    ));

  it("metadata and registration: members, or steps", () =>
    withWorld(
      { serverMetadata: { issuer: "https://wrong.example" }, on: { "resource-metadata": [{ drop: true }] } },
      async (world) => {
        await expect(fetch(world.resourceMetadataUrl)).rejects.toThrow();
        const metadata = await (await fetch(`${world.issuer}/.well-known/oauth-authorization-server`)).json();
        expect(metadata.issuer).toBe("https://wrong.example");
        const registered = await fetch(`${world.issuer}/register`, { method: "POST", body: '{"a":1}' });
        expect([registered.status, await registered.json()]).toEqual([201, { a: 1, client_id: "registered-1" }]);
      },
    ));

  it("the protected server follows a program of its own, once a token passed", () =>
    withWorld({ program: { on: { ping: [{ status: 418 }] } } }, async (world) => {
      const ping = (headers: Record<string, string>) =>
        fetch(world.url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }) });
      expect((await ping({})).status).toBe(401);
      expect((await ping({ authorization: `Bearer ${world.mint()}` })).status).toBe(418);
    }));
});
