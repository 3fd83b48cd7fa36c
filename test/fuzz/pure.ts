/** Fuzzes the pure parts that read what servers say: results, schemas, tools, frames, headers. */
import * as fc from "fast-check";
import * as Effect from "effect/Effect";
import { Artifact } from "../../src/core/artifact/artifact.ts";
import { isRecord } from "../../src/core/artifact/json.ts";
import type { SchemaNormalizer } from "../../src/core/contracts.ts";
import { SchemaRejected } from "../../src/core/errors.ts";
import { buildProviders } from "../../src/core/provider.ts";
import { toDefinition } from "../../src/core/catalog.ts";
import { makeToolResult, modelText, toRawResult } from "../../src/core/results.ts";
import { oauthChallenge, parseChallenges, scopesOf } from "../../src/plugins/credentials/challenge.ts";
import { artifactRehydrator } from "../../src/plugins/rehydrators/artifact.ts";
import { ResultWalker } from "../../src/plugins/results/walker.ts";
import { anthropic } from "../../src/plugins/schemas/anthropic.ts";
import { gemini } from "../../src/plugins/schemas/gemini.ts";
import { inlineRefs } from "../../src/plugins/schemas/inline-refs.ts";
import { openaiStrict } from "../../src/plugins/schemas/openai-strict.ts";
import { openai } from "../../src/plugins/schemas/openai.ts";
import { schemaValidator } from "../../src/plugins/schemas/validator.ts";
import { readEvents } from "../../src/transports/http-body.ts";
import { answeredId, parseError, parseMessages } from "../../src/transports/http-message.ts";
import { retryAfter } from "../../src/transports/http-retry-after.ts";
import { headersOf, mirroredOf } from "../../src/transports/modern-http-headers.ts";
import { Framer } from "../../src/transports/stdio-framing.ts";
import { schemaWithReferences } from "../plugins/schemas/arbitrary.ts";
import { testEndpoint } from "../support/engine-peer.ts";
import { chunksOf, damage, type Damage, damaged, wireText } from "./bytes.ts";
import { edits, mutated, mutationOf } from "./mutate.ts";
import { oddValue } from "./odd-values.ts";
import { addressed, countOf, results, serverMessage } from "./server-messages.ts";
import { sseEvent, sseText } from "./sse.ts";
import { demand, type Target } from "./target.ts";

/** A target of which each input is one message, and which may throw nothing but what `allowed` says. */
const pure = <A>(
  name: string,
  weight: number,
  input: fc.Arbitrary<A>,
  use: (input: A) => void | Promise<void>,
  allowed: (cause: unknown) => boolean = () => false,
): Target<ReadonlyArray<A>> => ({
  name,
  weight,
  script: fc.array(input, { minLength: 1, maxLength: 40, size: "max" }),
  count: (inputs) => inputs.length,
  open: async () => ({
    feed: async (inputs) => {
      for (const one of inputs) {
        const startedAt = performance.now();
        try {
          await use(one);
        } catch (cause) {
          if (!allowed(cause)) throw cause;
        }
        const elapsed = performance.now() - startedAt;
        demand(elapsed < 5000, `it took ${Math.round(elapsed)} ms`);
      }
    },
    close: async () => {},
  }),
});

const walker = new ResultWalker();
const source = { handle: "fuzz", tool: "echo", endpointId: "fuzz:1" };
const everything = { artifacts: { has: () => true }, budget: 600 };

const readResult = (answer: unknown): void => {
  const { result } = toRawResult(answer);
  for (const block of result.content) demand(isRecord(block) && typeof block.type === "string", "a block has no type");
  const artifact = artifactRehydrator.rehydrate(result, source) ?? walker.normalize(result, source);
  demand(artifact instanceof Artifact && artifact.ref.startsWith("artifact:"), "it became no artifact");
  const tool = makeToolResult(result, artifact);
  demand(typeof tool.textContent === "string" && typeof tool.allTextContent === "string", "a text is none");
  demand(modelText(tool).trim() !== "", "the model reads nothing");
  const short = modelText(tool, everything);
  demand(short.trim() !== "" && new TextEncoder().encode(short).length <= 600, `the budget is broken: ${short.length}`);
};

const schemaInput = fc.oneof(
  { weight: 1, arbitrary: fc.tuple(schemaWithReferences, edits).map(([schema, changes]) => mutated(schema, changes)) },
  {
    weight: 2,
    arbitrary: mutationOf([
      { type: "object", properties: { a: { type: ["string", "null"], format: "uri", pattern: "^(a+)+$" } } },
      {
        type: "object",
        oneOf: [{ required: ["a"] }, { properties: { b: { const: 1 } } }],
        additionalProperties: false,
      },
      { $id: "https://x/y", type: "object", allOf: [{ $ref: "#a" }], $defs: { a: { $anchor: "a", minimum: 1 } } },
      { type: "object", properties: { a: { enum: [1, "x", null] }, b: { items: [{}], additionalItems: false } } },
      { type: "object", patternProperties: { "^x": {} }, dependentSchemas: { a: {} }, if: {}, else: false },
    ]),
  },
  { weight: 1, arbitrary: oddValue },
);

const normalizers: ReadonlyArray<SchemaNormalizer> = [inlineRefs, anthropic, openai, openaiStrict, gemini];

const readSchema = (schema: unknown): void => {
  for (const normalizer of normalizers) {
    try {
      const normalized = normalizer.normalize(schema, { name: "t" });
      demand(isRecord(normalized.schema), `${normalizer.name} answered no schema`);
      wireText(normalized.schema);
    } catch (cause) {
      if (!(cause instanceof SchemaRejected)) throw cause;
    }
  }
};

const compile = async (schema: unknown): Promise<void> => {
  if (!isRecord(schema)) return;
  let check: ((value: unknown) => ReadonlyArray<unknown>) | undefined;
  try {
    check = await (schemaValidator.compile(schema) as Promise<typeof check>);
  } catch (cause) {
    // The contract lets it refuse a schema; call.ts turns that into a typed error.
    if (!(cause instanceof Error) || cause instanceof RangeError) throw cause;
  }
  for (const value of [{}, { a: "x", b: [1] }, null, [], "x"])
    if (check) demand(Array.isArray(check(value)), "a check gave no list");
};

const readTools = (list: unknown): void => {
  const items = isRecord(list) && Array.isArray(list["tools"]) ? list["tools"] : [list];
  const { providers, skipped } = buildProviders(items, "fuzz", testEndpoint, [inlineRefs], () => Effect.never);
  demand(providers.length + skipped.length === items.length, "a tool got lost");
  for (const provider of providers) {
    const { name } = toDefinition(provider.name, provider);
    demand(/^[a-zA-Z0-9_-]{1,64}$/.test(name), `the name ${JSON.stringify(name)} is not legal`);
  }
  for (const { reason } of skipped) demand(typeof reason === "string" && reason !== "", "no reason");
};

interface Framed {
  readonly messages: ReadonlyArray<unknown>;
  readonly damage: Damage;
}

const framed: fc.Arbitrary<Framed> = fc.record({
  messages: fc.array(serverMessage("tools/call"), { minLength: 1, maxLength: 3 }),
  damage,
});

const readFrames = ({ messages, damage: { edits, splits } }: Framed): void => {
  const text = messages.map((message) => `${wireText(addressed(message, 7))}\n`).join("");
  let alive = false;
  const framer = new Framer(20_000, {
    onMessage: (message) => {
      demand(typeof message === "object" && message !== null, "a message is no object");
      alive = (message as { readonly method?: unknown }).method === "alive";
    },
    onSkip: (line) => demand(typeof line === "string", "a line is no text"),
    onTooLarge: ({ size }) => demand(size > 20_000, "a small message is too large"),
  });
  for (const chunk of chunksOf(damaged(text, { edits, splits }), splits)) framer.push(chunk);
  framer.push(new TextEncoder().encode('\n{"jsonrpc":"2.0","method":"alive"}\n'));
  demand(alive, "it does not read on");
};

const sseInput = fc.record({ events: fc.array(fc.tuple(sseEvent, serverMessage("ping")), { maxLength: 3 }), damage });

const readSse = async ({ events, damage }: { readonly events: ReadonlyArray<any>; readonly damage: Damage }) => {
  const chunks = chunksOf(
    damaged(events.map(([event, message]) => sseText(event, message)).join(""), damage),
    damage.splits,
  );
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const end = await Effect.runPromise(
    readEvents(new Response(body as never), 20_000, {
      onEvent: ({ data }) => {
        for (const message of parseMessages(data)) answeredId(message);
        parseError(data);
      },
      onRetry: (delay) => demand(delay >= 0, `a wait of ${delay}`),
    }),
  );
  demand(end === "ended" || typeof end === "object", `it ended as ${String(end)}`);
};

const word = fc.constantFrom(
  ...'Bearer DPoP Basic realm error scope resource_metadata = , " \\ \\" ; ( \t invalid_token insufficient_scope a=b https://x/ %'.split(
    " ",
  ),
  '="',
  '", ',
  "é",
  "\u0000",
  "__proto__",
  "constructor",
  " ".repeat(50),
  '"'.repeat(20),
  'a="'.repeat(50),
);
const header = fc.oneof(
  fc.array(word, { maxLength: 30 }).map((words) => words.join("")),
  fc.string({ unit: "binary", maxLength: 60 }),
);

const readHeader = (value: string): void => {
  for (const { scheme, params } of parseChallenges(value))
    demand(typeof scheme === "string" && typeof params === "object", "no challenge");
  const { scope } = oauthChallenge(value);
  scopesOf(scope);
  const wait = retryAfter(value, 0);
  demand(wait === undefined || wait >= 0, `a wait of ${wait}`);
};

const readMirrored = (schema: unknown): void => {
  const mirrored = mirroredOf(schema);
  if (typeof mirrored === "string") return;
  const message = {
    jsonrpc: "2.0" as const,
    id: 1,
    method: "tools/call",
    params: { name: "é", arguments: { q: "\ud800", n: 1 } },
  };
  demand([...new Headers({ ...headersOf(message, mirrored) })].length > 0, "no header was made");
};

export const pureTargets: ReadonlyArray<Target> = [
  pure("tool results", 10, mutationOf(results["tools/call"]!), readResult),
  pure("schema normalizers", 1, schemaInput, readSchema),
  pure("schema validator", 1, schemaInput, compile),
  pure("tool catalog", 8, mutationOf(results["tools/list"]!), readTools),
  {
    ...pure("stdio framing", 8, framed, readFrames),
    count: (inputs: ReadonlyArray<Framed>) =>
      inputs.reduce((sum, { messages }) => sum + messages.reduce<number>((n, m) => n + countOf(m), 0), 0),
  },
  {
    ...pure("event streams", 5, sseInput, readSse),
    count: (inputs: ReadonlyArray<{ readonly events: ReadonlyArray<any> }>) =>
      inputs.reduce((sum, { events }) => sum + Math.max(1, events.length), 0),
  },
  pure("challenge headers", 3, header, readHeader),
  pure("mirrored headers", 2, mutationOf([(results["tools/list"]![0] as any).tools[0].inputSchema]), readMirrored),
];
