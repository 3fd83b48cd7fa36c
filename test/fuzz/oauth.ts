/** Fuzzes the way to a token: challenges, metadata documents, and answers of the token endpoint. */
import * as fc from "fast-check";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import { AgentSecret } from "../../src/plugins/credentials/agent-secret.ts";
import { authorize } from "../support/oauth-client.ts";
import { damage, type Damage, damaged, wireText } from "./bytes.ts";
import { mutationOf } from "./mutate.ts";
import { answerFetch, respond } from "./net.ts";
import { demand, demandTyped, type Target, until, watch } from "./target.ts";

const origin = "https://fuzz.example";

const resourceMetadata = {
  resource: `${origin}/mcp`,
  authorization_servers: [origin],
  scopes_supported: ["a", "b"],
  bearer_methods_supported: ["header"],
};
const serverMetadata = {
  issuer: origin,
  token_endpoint: `${origin}/token`,
  authorization_endpoint: `${origin}/authorize`,
  registration_endpoint: `${origin}/register`,
  scopes_supported: ["a"],
  code_challenge_methods_supported: ["S256"],
  token_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post"],
};
const token = { access_token: "t-123456789", token_type: "Bearer", expires_in: 3600, scope: "a b", refresh_token: "r" };
const refusal = { error: "invalid_client", error_description: "no", error_uri: "https://x/" };
const jwt = { ...token, access_token: "eyJhbGciOiJub25lIn0.eyJleHAiOjE4MDAwMDAwMDAsImlhdCI6e319.x", expires_in: null };

interface Document {
  readonly status: number;
  readonly value: unknown;
  readonly damage: Damage;
  readonly headers: ReadonlyArray<readonly [string, string]>;
}

const document = (...values: ReadonlyArray<unknown>): fc.Arbitrary<Document> =>
  fc.record({
    status: fc.oneof(
      { weight: 8, arbitrary: fc.constant(200) },
      { weight: 1, arbitrary: fc.constantFrom(201, 302, 400, 401, 404, 429, 500) },
    ),
    value: mutationOf(values),
    damage: fc.oneof(
      { weight: 4, arbitrary: fc.constant({ edits: [], splits: [] }) },
      { weight: 1, arbitrary: damage },
    ),
    headers: fc.oneof(
      { weight: 6, arbitrary: fc.constant([]) },
      {
        weight: 1,
        arbitrary: fc.constantFrom<Document["headers"]>(
          [["location", "/x"]],
          [["location", "http://["]],
          [["retry-after", "x"]],
          [["retry-after", "9".repeat(40)]],
          [["dpop-nonce", "n"]],
        ),
      },
    ),
  });

const challenge = fc.constantFrom(
  undefined,
  "",
  "Bearer",
  `Bearer resource_metadata="${origin}/meta"`,
  'Bearer resource_metadata="http://["',
  'Bearer resource_metadata="http://10.0.0.1/"',
  'Bearer error="invalid_token", scope="x y"',
  'Bearer error="insufficient_scope", scope="x  \\"y"',
  'DPoP error="use_dpop_nonce"',
  'Bearer realm="',
  ",,=",
);

interface Round {
  readonly challenge: string | undefined;
  readonly resource: Document;
  readonly server: Document;
  readonly token: Document;
}

const round: fc.Arbitrary<Round> = fc.record({
  challenge,
  resource: document(resourceMetadata),
  server: document(serverMetadata),
  token: document(token, jwt, refusal),
});

const respondWith = ({ status, value, damage, headers }: Document): Response =>
  respond(status, headers, new Blob([damaged(wireText(value), damage) as Uint8Array<ArrayBuffer>]).stream());

const open: Target<ReadonlyArray<Round>>["open"] = async () => {
  let current: Round | undefined;
  let users = 0;
  const clock = await Effect.runPromise(Effect.scoped(TestClock.make()) as Effect.Effect<TestClock.TestClock>);
  const restore = answerFetch(({ method, url }) => {
    if (method === "POST") return respondWith(current!.token);
    return respondWith(
      url.includes("protected-resource") || url.endsWith("/meta") ? current!.resource : current!.server,
    );
  });
  const run = <A, E>(effect: Effect.Effect<A, E>): Promise<A> =>
    Effect.runPromise(Effect.provideService(effect, Clock.Clock, clock));
  return {
    feed: async (rounds) => {
      for (const next of rounds) {
        current = next;
        const credential = new AgentSecret({ clientId: `c${++users}`, clientSecret: "s3cr3t-of-the-robot" });
        const request = { url: `${origin}/mcp`, method: "POST", server: "fuzz" };
        const rejected = { status: 401, challenge: next.challenge, authorization: undefined };
        const asked = watch(run(authorize(credential, { ...request, rejected })));
        for (let i = 0; i < 5 && !(await until(() => asked.outcome() !== undefined, 30)); i++)
          await run(clock.adjust("20 seconds"));
        demand(await until(() => asked.outcome() !== undefined), "the flow did not settle");
        const outcome = asked.outcome()!;
        if ("error" in outcome) {
          demandTyped(outcome.error, "the flow");
          demand(!String((outcome.error as Error).message).includes("s3cr3t"), "the error shows the secret");
        } else demand([...new Headers(outcome.value.headers)].length > 0, "no header was made");
      }
    },
    close: async () => restore(),
  };
};

export const oauthTarget: Target<ReadonlyArray<Round>> = {
  name: "oauth",
  weight: 2,
  script: fc.array(round, { minLength: 1, maxLength: 15, size: "max" }),
  // A document each: resource, server, token.
  count: (rounds) => rounds.length * 3,
  open,
};
