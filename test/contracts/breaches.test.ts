import { describe, expect, it } from "@effect/vitest";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import { CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import * as Effect from "effect/Effect";
import { lift } from "../../src/core/answer.ts";
import { Artifact } from "../../src/core/artifact/artifact.ts";
import type { ArtifactType, EraVerdict, McpTransport, TransportPlugin } from "../../src/core/contracts.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { schemaValidator } from "../../src/plugins/schemas/validator.ts";
import {
  artifactTypeContract,
  type ContractSuite,
  credentialFlowContract,
  engineContract,
  observerContract,
  pinStoreContract,
  resultNormalizerContract,
  schemaNormalizerContract,
  schemaValidatorContract,
  tokenStoreContract,
  transportContract,
  verdictStoreContract,
} from "../../src/testing.ts";
import { InMemoryEndpoint, inMemoryTransport } from "../../src/transports/in-memory.ts";

/** Names of the cases that the plugin breaks. */
const broken = async (suite: ContractSuite, only = /./) => {
  const names: Array<string> = [];
  for (const { name, run } of suite.filter((each) => only.test(each.name))) {
    try {
      await run();
    } catch {
      names.push(name);
    }
  }
  return names;
};

const serve = (transport: Transport): Promise<void> => {
  const server = new Server({ name: "embedded", version: "1.0.0" }, { capabilities: { tools: {} } });
  server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
    content: [{ type: "text", text: JSON.stringify(params.arguments) }],
  }));
  return server.connect(transport);
};

/** The in-memory transport with one thing wrong. */
const spoiled = (spoil: (transport: McpTransport) => void): TransportPlugin<InMemoryEndpoint> => ({
  ...inMemoryTransport,
  open: (endpoint, context) =>
    Effect.tap(
      lift("in-memory", () => inMemoryTransport.open(endpoint, context)),
      (transport) => Effect.sync(() => spoil(transport)),
    ),
});

const transportBreaches = (spoil: (transport: McpTransport) => void): Promise<ReadonlyArray<string>> =>
  broken(
    transportContract({
      plugin: spoiled(spoil),
      endpoint: () => new InMemoryEndpoint({ name: "embedded", connect: serve }),
    }),
  );

describe("contract suites find what is broken", () => {
  it("a transport that changes texts", async () => {
    const breaches = await transportBreaches((transport) => {
      const send = transport.send.bind(transport);
      transport.send = (message) => send(JSON.parse(JSON.stringify(message).replaceAll("ß", "ss")));
    });
    expect(breaches).toEqual(["delivers texts of all sorts unchanged"]);
  });

  it("a transport that sends after its close", async () => {
    const breaches = await transportBreaches((transport) => {
      const send = transport.send.bind(transport);
      transport.send = (message) => send(message).catch(() => {});
    });
    expect(breaches).toEqual([
      "send() after close() rejects",
      "is released by close() and the end of its scope: send() rejects, onclose fired at most once",
    ]);
  });

  it("a transport that tells its end twice", async () => {
    const breaches = await transportBreaches((transport) => {
      const close = transport.close.bind(transport);
      transport.close = async () => {
        await close();
        transport.onclose?.();
      };
    });
    expect(breaches).toContain("close() settles, fires onclose once, and may be called again");
  });

  it("an engine that mixes up its era, swallows notifications and never closes", async () => {
    const suite = engineContract({
      engine: {
        era: "legacy",
        connect: async (options) => {
          const listener = { ...options.listener, onNotification: () => {}, onClose: () => {} };
          const session = await (legacyEngine.connect({ ...options, listener }) as Promise<object>);
          return { ...session, era: "modern" } as never;
        },
      },
    });
    expect((await broken(suite, /^(connects and says|the end of the connection)/)).length).toBe(2);
  });

  it("a flow that answers for ever and shows its secret", async () => {
    const suite = credentialFlowContract({
      flow: { kind: "naive", authorize: () => ({ headers: { authorization: "Bearer s3cr3t" } }) },
      credential: () => ({ kind: "naive", user: "u" }),
      url: () => "https://mcp.example.com/mcp",
      secrets: ["s3cr3t"],
    });
    expect(await broken(suite, /^(sends nothing|serves credentials)/)).toEqual([
      "sends nothing over plain http to another host",
    ]);
  });

  it("a normalizer that writes into the schema, and one that throws anything", async () => {
    const writing = schemaNormalizerContract({
      normalizer: {
        name: "writing",
        normalize: (schema) => ({ schema: Object.assign(schema as object, { touched: true }), diagnostics: [] }),
      },
    });
    expect((await broken(writing)).length).toBeGreaterThan(1);
    const throwing = schemaNormalizerContract({
      normalizer: {
        name: "throwing",
        normalize: (schema) => ({ schema: JSON.parse(JSON.stringify(schema).toString()), diagnostics: [] }),
      },
    });
    expect(await broken(throwing)).toContain("takes undefined, or refuses it with SchemaRejected");
  });

  it("a validator that lets everything pass, and one that names no place", async () => {
    expect((await broken(schemaValidatorContract({ validator: { compile: () => () => [] } }))).length).toBe(4);
    const vague = schemaValidatorContract({
      validator: {
        compile: async (schema) => {
          const check = await (schemaValidator.compile(schema) as Promise<(value: unknown) => ReadonlyArray<object>>);
          return (value) => check(value).map(() => ({ pointer: "", message: "wrong" }));
        },
      },
    });
    expect(await broken(vague)).toEqual([
      "says where a value breaks its schema, by JSON Pointer, and why",
      "escapes names in pointers (RFC 6901)",
    ]);
  });

  it("a result normalizer that counts, a store that forgets, an observer that throws", async () => {
    let count = 0;
    const counting = resultNormalizerContract({ normalizer: { normalize: () => ({ hello: `contract ${count++}` }) } });
    expect((await broken(counting)).length).toBe(counting.length);
    const forgetful = tokenStoreContract({ store: { load: () => undefined, save: () => {}, remove: () => {} } });
    expect((await broken(forgetful)).length).toBe(forgetful.length - 1);
    const unaware = verdictStoreContract({ store: { load: () => undefined, save: () => {}, remove: () => {} } });
    expect((await broken(unaware)).length).toBe(unaware.length - 1);
    const verdicts = new Map<string, EraVerdict>();
    const rounding = verdictStoreContract({
      store: {
        load: (id) => verdicts.get(id),
        save: (id, { era, at }) => void verdicts.set(id, { era, at: Math.floor(at / 1000) }),
        remove: () => verdicts.clear(),
      },
    });
    expect(await broken(rounding)).toEqual([
      "keeps endpoints apart, and the last verdict on each, to the millisecond",
      "takes twenty at once",
      "removes a verdict, and leaves the others",
    ]);
    const trusting = pinStoreContract({ store: { load: () => undefined, save: () => {} }, spoil: () => {} });
    expect((await broken(trusting)).length).toBe(trusting.length - 1);
    const throwing = observerContract({
      observer: {
        on: () => {
          throw new Error("no");
        },
      },
    });
    expect((await broken(throwing)).length).toBe(2);
  });

  it("notice what artifact types do wrong", async () => {
    class Page extends Artifact {
      static override readonly typeAlias: string = "page";
      readonly url: unknown;
      constructor(url: unknown) {
        super();
        this.url = url;
      }
    }
    const payload = { artifact_ref: "artifact:page~1", url: "https://example.com" };
    const breachesOf = (type: Partial<ArtifactType>) => {
      const sound: ArtifactType = { alias: "page", fromWire: ({ url }) => (url ? new Page(url) : undefined) };
      return broken(artifactTypeContract({ type: { ...sound, ...type }, own: [payload], refused: [{ url: "" }] }));
    };
    const rebuilds = "rebuilds its own payload 1 whole, the ref as minted, the same each time";
    expect(await breachesOf({})).toEqual([]);
    expect(await breachesOf({ alias: "no alias:" })).toEqual([expect.stringContaining("has an alias"), rebuilds]);
    expect(await breachesOf({ alias: "book" })).toEqual([rebuilds]);
    expect(await breachesOf({ fromWire: ({ url }) => (url ? new Page("lost") : undefined) })).toEqual([rebuilds]);
    const one = new Page(payload.url);
    expect(await breachesOf({ fromWire: ({ url }) => (url ? one : undefined) })).toEqual([rebuilds]);
    expect(await breachesOf({ fromWire: ({ url }) => new Page(url) })).toContain("refuses payload 1 that does not fit");
    const writing = (fields: Readonly<Record<string, unknown>>) => Object.assign(fields, { url: "mine" }) && one;
    expect((await breachesOf({ fromWire: writing })).length).toBeGreaterThan(5);
    const late = (async () => one) as never;
    expect((await breachesOf({ fromWire: late })).length).toBeGreaterThan(5);
  });
});
