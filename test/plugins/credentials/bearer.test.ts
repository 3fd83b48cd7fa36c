import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import { HttpEndpoint } from "../../../src/core/endpoint.ts";
import { Unauthorized } from "../../../src/core/errors.ts";
import { BearerToken } from "../../../src/plugins/credentials/bearer.ts";
import { openOAuth, send } from "../../support/oauth-client.ts";

const idOf = (token: string | (() => string)) =>
  new HttpEndpoint({ url: "https://files.example/mcp", credential: new BearerToken({ token }) }).endpointId;

describe("BearerToken", () => {
  it.effect("sends a static token with every request, asked or not", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      for (const token of [world.mint(), Redacted.make(world.mint())])
        expect(yield* send(new BearerToken({ token }), world.url)).toEqual({ status: 200, attempts: 1 });
      expect(world.order).toEqual(["POST resource /mcp", "POST resource /mcp"]);
    }),
  );

  it.effect("a refused static token is a typed error, without discovery", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const error = yield* Effect.flip(send(new BearerToken({ token: "stale" }), world.url));
      expect(error).toMatchObject({ _tag: "Unauthorized", reason: "token-rejected", server: "vault" });
      expect(world.order).toEqual(["POST resource /mcp"]);
    }),
  );

  it.effect("a callback is asked again after a refusal, and a different token is tried", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const tokens = ["stale", world.mint()];
      const credential = new BearerToken({ token: async () => tokens.shift() ?? "stale" });
      expect(yield* send(credential, world.url)).toEqual({ status: 200, attempts: 2 });
      const error = yield* Effect.flip(send(credential, world.url));
      expect(error).toMatchObject({ _tag: "Unauthorized", reason: "token-rejected" });
    }),
  );

  it.effect("a callback may answer an Effect, and its typed error reaches the caller", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const token = world.mint();
      expect((yield* send(new BearerToken({ token: () => Effect.succeed(token) }), world.url)).status).toBe(200);
      const mine = new Unauthorized({ server: "vault", reason: "unauthenticated", detail: "no session" });
      const failing = new BearerToken({ token: () => Effect.fail(mine) });
      expect(yield* Effect.flip(send(failing, world.url))).toBe(mine);
      const throwing = new BearerToken({ token: () => Promise.reject(new Error("keychain is locked")) });
      expect(yield* Effect.flip(send(throwing, world.url))).toMatchObject({ _tag: "PluginFailed", plugin: "bearer" });
    }),
  );

  it.effect("403 is an error of its own", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth({
        guard: (exchange, _token, self) => (
          self.refuse(exchange, { error: "insufficient_scope", scope: "w" }, 403),
          true
        ),
      });
      const error = yield* Effect.flip(send(new BearerToken({ token: "any" }), world.url));
      expect(error).toMatchObject({ _tag: "InsufficientScope", scopes: ["w"] });
    }),
  );

  it("two tokens without a user are two clients, and one token is one", () => {
    expect(idOf("token-of-ada")).toBe(idOf("token-of-ada"));
    expect(idOf("token-of-ada")).not.toBe(idOf("token-of-bob"));
    expect(idOf(() => "token-of-ada")).not.toBe(idOf(() => "token-of-ada"));
    expect(idOf("token-of-ada")).not.toContain("token-of");
  });

  it.each(["", "two words", "line\nbreak", "ünicode"])("bad input: the token %j is refused at attach", (token) => {
    const credential = new BearerToken({ token });
    const fault = new HttpEndpoint({ url: "https://files.example/mcp", credential }).validate();
    expect(fault).toMatchObject({ _tag: "InvalidEndpoint", field: "credential.token" });
  });

  it.effect("bad input: a callback's token that no header can carry is a typed error", () =>
    Effect.gen(function* () {
      const world = yield* openOAuth();
      const error = yield* Effect.flip(send(new BearerToken({ token: () => "a\r\nX-Evil: 1" }), world.url));
      expect(error).toMatchObject({ _tag: "InvalidEndpoint", field: "credential.token" });
      expect(world.order).toEqual([]);
    }),
  );
});
