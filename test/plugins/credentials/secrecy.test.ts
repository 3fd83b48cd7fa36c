/**
 * Everything that can be captured of a credential at work, searched for its secrets. The servers
 * are hostile: they echo whatever they were sent in every text they answer.
 */
import { inspect } from "node:util";
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Logger from "effect/Logger";
import { exportJWK, exportPKCS8, generateKeyPair } from "jose";
import type { AuthorizeRequest, TokenStore } from "../../../src/core/contracts.ts";
import { type Credential, HttpEndpoint } from "../../../src/core/endpoint.ts";
import { tokenStore } from "../../../src/core/ports.ts";
import { createRuntime, ports } from "../../../src/mod.ts";
import { AgentSecret } from "../../../src/plugins/credentials/agent-secret.ts";
import { AgentSigningKey } from "../../../src/plugins/credentials/agent-signing-key.ts";
import { AuthorizationCode } from "../../../src/plugins/credentials/authorization-code.ts";
import { BearerToken } from "../../../src/plugins/credentials/bearer.ts";
import { credentialFlowsBuiltins } from "../../../src/plugins/credentials/builtins.ts";
import { DpopBound } from "../../../src/plugins/credentials/dpop.ts";
import { EnterpriseManaged } from "../../../src/plugins/credentials/enterprise-managed.ts";
import { maskOf } from "../../../src/plugins/credentials/masking.ts";
import { WorkloadIdentity } from "../../../src/plugins/credentials/workload-identity.ts";
import { authorize, openOAuth, send } from "../../support/oauth-client.ts";
import { person } from "../../support/oauth-login.ts";
import type { OAuthScript, OAuthWorld } from "../../../src/testing/servers/oauth.ts";

const random = (): string => `${crypto.randomUUID()}${crypto.randomUUID()}`.replaceAll("-", "");

/** Pieces of eight characters of the secrets that stand in the text. */
const leaks = (text: string, secrets: ReadonlyArray<string>): ReadonlyArray<string> =>
  secrets.flatMap((secret) =>
    Array.from({ length: Math.max(1, secret.length - 7) }, (_, i) => secret.slice(i, i + 8)).filter((piece) =>
      text.includes(piece),
    ),
  );

/** An object in the forms in which logs show it. */
const logged = (value: unknown): string =>
  [inspect(value, { depth: 12 }), JSON.stringify(value), String(value)].join("\n");

/** An object in every form in which it may be shown, to the last hidden property. */
const shown = (value: unknown): string =>
  [
    logged(value),
    inspect(value, { depth: 12, showHidden: true, getters: true }),
    value instanceof Error ? `${value.message}\n${value.stack}\n${shown(value.cause)}` : "",
  ].join("\n");

/** All that the servers were sent, and a text that repeats it. */
const echo = (world: OAuthWorld): string => {
  const { form, authorization, dpop } = world.tokenRequests.at(-1) ?? { form: {} };
  const basic = authorization ? atob(authorization.replace("Basic ", "")) : "";
  return [...Object.values(form), authorization, basic, decodeURIComponent(basic), dpop]
    .join(" ")
    .replace(/[\n"]/g, " ");
};

/** Gives tokens at first, then echoes. */
const hostile = (tokens: Array<string>): OAuthScript => ({
  token: (_request, world, exchange) => {
    if (world.tokenRequests.length > 1) {
      exchange.json({ error: "invalid_grant", error_description: echo(world) }, 400);
      return undefined;
    }
    const [access_token, refresh_token] = [random(), random()];
    tokens.push(access_token, refresh_token);
    world.accepted.add(access_token);
    const token_type = world.tokenRequests.at(-1)?.dpop ? "DPoP" : "Bearer";
    return { access_token, refresh_token, token_type, expires_in: 3600 };
  },
  guard: (exchange, token, world) => {
    if (token !== undefined && world.accepted.has(token)) return false;
    const said = token ?? "nothing";
    const params =
      token === undefined ? {} : { error: "invalid_token", error_description: `you sent ${said} ${echo(world)}` };
    world.refuse(exchange, params);
    return true;
  },
});

interface Case {
  readonly name: string;
  readonly make: (
    idp: OAuthWorld,
  ) => Promise<{ readonly credential: Credential; readonly secrets: ReadonlyArray<string> }>;
}

const secretCase = (name: string, make: (secret: string, idp: OAuthWorld) => Credential): Case => ({
  name,
  make: async (idp) => {
    const secret = random();
    return { credential: make(secret, idp), secrets: [secret] };
  },
});

const cases: ReadonlyArray<Case> = [
  secretCase("bearer", (token) => new BearerToken({ token })),
  secretCase("bearer by callback", (token) => new BearerToken({ token: () => token })),
  secretCase("agent-secret", (clientSecret) => new AgentSecret({ clientId: "robot", clientSecret })),
  secretCase(
    "agent-secret in the form",
    (clientSecret) => new AgentSecret({ clientId: "robot", clientSecret, authMethod: "client_secret_post" }),
  ),
  secretCase("workload-identity", (token) => new WorkloadIdentity({ token: () => token })),
  secretCase(
    "enterprise-managed",
    (secret, idp) =>
      new EnterpriseManaged({
        user: "ada",
        clientId: "robot",
        clientSecret: secret,
        identityProvider: { issuer: idp.issuer, clientId: "robot" },
        subjectToken: () => secret,
      }),
  ),
  secretCase(
    "authorization-code",
    (clientSecret) =>
      new AuthorizationCode({ clientId: "app", clientSecret, user: crypto.randomUUID(), ...person().host }),
  ),
  secretCase(
    "dpop",
    (clientSecret) => new DpopBound({ credential: new AgentSecret({ clientId: "robot", clientSecret }) }),
  ),
  {
    name: "agent-signing-key, PEM",
    make: async () => {
      const { privateKey } = await generateKeyPair("ES256", { extractable: true });
      const pem = await exportPKCS8(privateKey);
      const secrets = pem.split("\n").filter((line) => line !== "" && !line.startsWith("-"));
      return { credential: new AgentSigningKey({ clientId: "robot", privateKey: pem }), secrets };
    },
  },
  {
    name: "agent-signing-key, JWK",
    make: async () => {
      const { privateKey } = await generateKeyPair("RS256", { extractable: true });
      const jwk = await exportJWK(privateKey);
      const { d, p, q, dp, dq, qi } = jwk;
      const secrets = [d, p, q, dp, dq, qi].filter((part) => part !== undefined);
      return { credential: new AgentSigningKey({ clientId: "robot", privateKey: jwk }), secrets };
    },
  },
];

const provider: OAuthScript = {
  token: () => ({
    access_token: random(),
    issued_token_type: "urn:ietf:params:oauth:token-type:id-jag",
    token_type: "N_A",
  }),
};

describe("secrecy", () => {
  it.effect.each(cases)("nothing captured of $name holds a piece of a secret", ({ make }) =>
    Effect.gen(function* () {
      const captured: Array<string> = [];
      const tokens: Array<string> = [];
      const logger = Logger.make(({ message, cause }) => void captured.push(shown(message), shown(cause)));
      const store: TokenStore = {
        load: () => undefined,
        save: (_key, secret) => Promise.reject(new Error(`could not write ${secret}`)),
        remove: () => {},
      };
      const idp = yield* openOAuth(provider);
      const world = yield* openOAuth(hostile(tokens));
      const { credential, secrets } = yield* Effect.promise(() => make(idp));
      const captureLogs = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
        effect.pipe(Effect.provide(Logger.layer([logger])), Effect.provideService(tokenStore.service, store));

      const request: AuthorizeRequest = { url: world.url, method: "POST" };
      captured.push(logged(yield* captureLogs(authorize(credential, request))));
      const first = yield* captureLogs(Effect.result(send(credential, world.url)));
      captured.push(shown(first));
      captured.push(logged(yield* captureLogs(authorize(credential, request))));
      world.accepted.clear();
      const second = yield* captureLogs(Effect.flip(send(credential, world.url)));
      captured.push(shown(second));
      expect(second).toMatchObject({ message: expect.stringContaining("vault") });

      const endpoint = new HttpEndpoint({ url: world.url, credential });
      captured.push(
        shown(credential),
        shown(endpoint),
        endpoint.endpointId,
        shown({ credential }),
        `${String(credential)}`,
      );
      for (const part of Object.values(credential)) captured.push(shown(part));

      const sent = world.tokenRequests.flatMap(({ form, authorization }) =>
        [
          form["client_assertion"],
          form["assertion"],
          form["code"],
          form["code_verifier"],
          authorization?.replace("Basic ", ""),
        ].filter((text) => text !== undefined),
      );
      const all = [...secrets, ...tokens, ...sent];
      expect(all.length).toBeGreaterThan(0);
      expect(leaks(captured.join("\n"), all)).toEqual([]);
    }),
  );

  it("through the whole runtime: events, health, results and errors are clean", async () => {
    const tokens: Array<string> = [];
    const captured: Array<string> = [];
    const world = await Effect.runPromise(Effect.scoped(Effect.succeed(undefined))).then(async () => {
      const { startOAuth } = await import("../../../src/testing/servers/oauth.ts");
      return startOAuth(hostile(tokens));
    });
    const clientSecret = random();
    {
      await using _world = world;
      await using runtime = await createRuntime({
        setup: (container) => {
          for (const flow of credentialFlowsBuiltins) container.registerInstance(ports.credentialFlows.token, flow);
          container.registerInstance(ports.observers.token, {
            on: (event: unknown) => void captured.push(shown(event)),
          });
        },
      });
      const credential = new AgentSecret({ clientId: "robot", clientSecret });
      const connector = await runtime.attach("vault", new HttpEndpoint({ url: world.url, credential, name: "vault" }));
      const result = await runtime.callTool({ tool: "vault__echo", arguments: { a: 1 } });
      captured.push(shown(result), shown(connector), shown(runtime), shown(runtime.health()));
      world.accepted.clear();
      const error: unknown = await runtime
        .callTool({ tool: "vault__echo", arguments: { a: 2 } })
        .catch((cause: unknown) => cause);
      expect(error).toMatchObject({ _tag: "TokenEndpointFailed", error: "invalid_grant" });
      captured.push(shown(error), shown(runtime.health()));
      expect(result.textContent).toContain('"a":1');
    }
    expect(captured.length).toBeGreaterThan(5);
    expect(leaks(captured.join("\n"), [clientSecret, btoa(`robot:${clientSecret}`), ...tokens])).toEqual([]);
  });

  it("the search finds what it is to find", () => {
    expect(leaks("…2345678…", ["0123456789"])).toEqual([]);
    expect(leaks("…12345678…", ["0123456789"])).toEqual(["12345678"]);
  });

  it("a mask hides pieces and short secrets, and leaves the rest", () => {
    const mask = maskOf(["correct-horse-battery", "abc"]);
    expect(mask("no correct-horse-battery here")).toBe("no *** here");
    expect(mask("a piece: ct-horse-bat!")).toBe("a piece: ***!");
    expect(mask("too short a piece: horse-b")).toBe("too short a piece: horse-b");
    expect(mask("abc is short")).toBe("*** is short");
    expect(mask("line\r\nbreak \u0007")).toBe("line break");
    expect(mask("x".repeat(5_000))).toHaveLength(300);
  });
});
