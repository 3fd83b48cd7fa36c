import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as TestClock from "effect/testing/TestClock";
import type {
  EraVerdict,
  McpTransport,
  ProtocolEngine,
  TransportPlugin,
  VerdictStore,
} from "../../src/core/contracts.ts";
import type { Era, McpEndpoint } from "../../src/core/endpoint.ts";
import { ConnectFailed, ConnectionLost, HttpFailed, type McpError, ProtocolError } from "../../src/core/errors.ts";
import { Unauthorized } from "../../src/core/errors.ts";
import { enginesFor, makeVerdicts, refusesEra } from "../../src/core/pool/negotiation.ts";
import { make, type McpSettingsInput, ports } from "../../src/effect.ts";
import { legacyEngine } from "../../src/plugins/engines/legacy.ts";
import { modernEngine } from "../../src/plugins/engines/modern.ts";

const MODERN = "2026-07-28";
const DAY = 24 * 60 * 60 * 1000;

/** How a scripted server treats one opening: a result, an error, silence, or an end. */
type Opening = { readonly result: unknown } | { readonly error: unknown } | "silence" | "exit";
interface Script {
  readonly initialize: Opening;
  readonly discover: Opening;
}

const welcome: Opening = {
  result: { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name: "s", version: "1" } },
};
const discovered: Opening = { result: { resultType: "complete", supportedVersions: [MODERN], capabilities: {} } };
const unknown: Opening = { error: { code: -32_601, message: "Method not found" } };
const modernOnly: Opening = {
  error: {
    code: -32_022,
    message: "Unsupported protocol version",
    data: { supported: [MODERN], requested: "2025-11-25" },
  },
};

const legacyServer: Script = { initialize: welcome, discover: unknown };
const modernServer: Script = { initialize: modernOnly, discover: discovered };
const bothServer: Script = { initialize: welcome, discover: discovered };

/** A transport to scripted servers that keeps a diary: `open` for each connection, then what was asked on it. */
const scripted = (scripts: { now: Script }, options: Partial<TransportPlugin> = {}) => {
  const diary: Array<string> = [];
  const plugin: TransportPlugin = {
    kind: "scripted",
    ...options,
    open: (_endpoint, { era }) => {
      diary.push(options.eraBound ? `open ${era}` : "open");
      let starts = 0;
      const transport: McpTransport = {
        start: async () => {
          if (++starts > 1) throw new Error("started twice");
        },
        send: async (message) => {
          const { id, method } = message as { readonly id?: number; readonly method?: string };
          if (id === undefined) return;
          diary.push(method!);
          const opening = method === "initialize" ? scripts.now.initialize : scripts.now.discover;
          if (opening === "exit") queueMicrotask(() => transport.onclose?.());
          else if (opening !== "silence")
            queueMicrotask(() => transport.onmessage?.({ jsonrpc: "2.0", id, ...opening } as never));
        },
        close: async () => void diary.push("close"),
      };
      return transport;
    },
  };
  return { plugin, diary };
};

const http: Partial<TransportPlugin> = { eras: () => ["modern", "legacy"], eraBound: true };

const endpoint = (more: Partial<McpEndpoint> = {}): McpEndpoint => ({
  transportType: "scripted",
  endpointId: "scripted:server",
  ...more,
});

const runtimeOver = (plugin: TransportPlugin, store?: VerdictStore, settings: McpSettingsInput = {}) =>
  make({
    settings: { breakerCooldown: 1, ...settings },
    setup: (container) => {
      container.registerInstance(ports.transports.token, plugin);
      if (store) container.registerInstance(ports.verdictStore.token, store);
    },
  });

const memory = (): VerdictStore & { readonly kept: Map<string, EraVerdict> } => {
  const kept = new Map<string, EraVerdict>();
  return {
    kept,
    load: (id) => kept.get(id),
    save: (id, verdict) => void kept.set(id, verdict),
    remove: (id) => void kept.delete(id),
  };
};

/** Connects once, and lets the connection go. */
const eraOf = (runtime: Effect.Success<ReturnType<typeof make>>, target = endpoint()) =>
  Effect.scoped(Effect.map(runtime.client(target), (client) => client.era));

const count = (diary: ReadonlyArray<string>, line: string): number => diary.filter((entry) => entry === line).length;

/** As `eraOf`, once the connection before is reaped. */
const eraAgain = (runtime: Effect.Success<ReturnType<typeof make>>, diary: ReadonlyArray<string>) => {
  const reaped: Effect.Effect<void> = Effect.suspend(() =>
    count(diary, "close") === count(diary, "open") ? Effect.void : Effect.andThen(Effect.sleep(5), reaped),
  );
  return Effect.andThen(reaped, eraOf(runtime));
};

const brief: McpSettingsInput = { idleTimeout: 1 };

describe("negotiation", () => {
  it.live("a legacy server is asked initialize alone, on its one connection", () =>
    Effect.gen(function* () {
      const { plugin, diary } = scripted({ now: legacyServer });
      expect(yield* eraOf(yield* runtimeOver(plugin))).toBe("legacy");
      expect(diary).toEqual(["open", "initialize"]);
    }).pipe(Effect.scoped),
  );

  it.live("a server that refuses initialize is asked for the modern era on the same connection", () =>
    Effect.gen(function* () {
      const { plugin, diary } = scripted({ now: modernServer });
      expect(yield* eraOf(yield* runtimeOver(plugin))).toBe("modern");
      expect(diary).toEqual(["open", "initialize", "server/discover"]);
    }).pipe(Effect.scoped),
  );

  it.live("a server of both eras is spoken to in the transport's first one", () =>
    Effect.gen(function* () {
      const pipe = scripted({ now: bothServer });
      expect(yield* eraOf(yield* runtimeOver(pipe.plugin))).toBe("legacy");
      const web = scripted({ now: bothServer }, http);
      expect(yield* eraOf(yield* runtimeOver(web.plugin))).toBe("modern");
    }).pipe(Effect.scoped),
  );

  it.live("over a transport bound to an era, the other era gets a connection of its own, and the first is closed", () =>
    Effect.gen(function* () {
      const { plugin, diary } = scripted({ now: legacyServer }, http);
      expect(yield* eraOf(yield* runtimeOver(plugin))).toBe("legacy");
      expect(diary).toEqual(["open modern", "server/discover", "close", "open legacy", "initialize"]);
    }).pipe(Effect.scoped),
  );

  it.live("a legacy server that does not answer what it does not know is met after half the connect time", () =>
    Effect.gen(function* () {
      const { plugin } = scripted({ now: { initialize: welcome, discover: "silence" } }, http);
      expect(yield* eraOf(yield* runtimeOver(plugin, undefined, { connectTimeout: 400 }))).toBe("legacy");
    }).pipe(Effect.scoped),
  );

  it.live("when both eras are refused, the error is that of initialize", () =>
    Effect.gen(function* () {
      const broken: Opening = { error: { code: -32_603, message: "API key missing" } };
      for (const options of [{}, http]) {
        const { plugin } = scripted({ now: { initialize: broken, discover: unknown } }, options);
        const error = yield* Effect.flip(eraOf(yield* runtimeOver(plugin)));
        expect(error.message).toContain("API key missing");
      }
      // A server that refuses initialize and says nothing to the rest.
      const { plugin } = scripted({ now: { initialize: broken, discover: "silence" } });
      const error = yield* Effect.flip(eraOf(yield* runtimeOver(plugin, undefined, { connectTimeout: 400 })));
      expect(error.message).toContain("API key missing");
    }).pipe(Effect.scoped),
  );

  it.live("a server that goes away is no refusal: nothing else is tried", () =>
    Effect.gen(function* () {
      const { plugin, diary } = scripted({ now: { initialize: "exit", discover: discovered } });
      expect(yield* Effect.flip(eraOf(yield* runtimeOver(plugin)))).toMatchObject({ _tag: "ConnectFailed" });
      expect(diary).toEqual(["open", "initialize", "close"]);
    }).pipe(Effect.scoped),
  );

  it.live(
    "a server that ends at the first era's opening is met in the other era by the next connect, one start each",
    () =>
      Effect.gen(function* () {
        const store = memory();
        const { plugin, diary } = scripted({ now: { initialize: "exit", discover: discovered } });
        const runtime = yield* runtimeOver(plugin, store);
        yield* Effect.flip(eraOf(runtime));
        expect(store.kept.size).toBe(0);
        // The circuit, 1 ms here.
        yield* Effect.sleep(20);
        expect(yield* eraOf(runtime)).toBe("modern");
        expect(diary).toEqual(["open", "initialize", "close", "open", "server/discover"]);
        expect(store.kept.get("scripted:server")?.era).toBe("modern");
      }).pipe(Effect.scoped),
  );

  it.live("a server that always ends is started once by each connect, and asked in turn", () =>
    Effect.gen(function* () {
      const { plugin, diary } = scripted({ now: { initialize: "exit", discover: "exit" } });
      const runtime = yield* runtimeOver(plugin);
      for (let i = 0; i < 4; i++) {
        yield* Effect.flip(eraOf(runtime));
        yield* Effect.sleep(20);
      }
      expect(diary.filter((line) => line !== "close")).toEqual(
        ["initialize", "server/discover", "initialize", "server/discover"].flatMap((question) => ["open", question]),
      );
    }).pipe(Effect.scoped),
  );

  it.live("a legacy server that ended once, for reasons of its own, is met on its one connection all the same", () =>
    Effect.gen(function* () {
      const scripts: { now: Script } = { now: { initialize: "exit", discover: unknown } };
      const { plugin, diary } = scripted(scripts);
      const runtime = yield* runtimeOver(plugin);
      yield* Effect.flip(eraOf(runtime));
      scripts.now = legacyServer;
      yield* Effect.sleep(20);
      expect(yield* eraOf(runtime)).toBe("legacy");
      expect(diary.slice(3)).toEqual(["open", "server/discover", "initialize"]);
    }).pipe(Effect.scoped),
  );

  it.live("a pinned era is spoken or fails: by the endpoint, which wins, or by the setting", () =>
    Effect.gen(function* () {
      const { plugin, diary } = scripted({ now: bothServer });
      const runtime = yield* runtimeOver(plugin, undefined, { era: "modern" });
      expect(yield* eraOf(runtime)).toBe("modern");
      expect(yield* eraOf(runtime, endpoint({ endpointId: "b", era: "legacy" }))).toBe("legacy");
      expect(yield* eraOf(runtime, endpoint({ endpointId: "c", era: "auto" }))).toBe("legacy");
      expect(diary).toEqual(["open", "server/discover", "open", "initialize", "open", "initialize"]);
      const refused = scripted({ now: legacyServer });
      const pinned = yield* runtimeOver(refused.plugin);
      expect(yield* Effect.flip(eraOf(pinned, endpoint({ era: "modern" })))).toMatchObject({ _tag: "ConnectFailed" });
      expect(refused.diary).toEqual(["open", "server/discover", "close"]);
    }).pipe(Effect.scoped),
  );

  it.live("an era the transport cannot carry is a fault of the endpoint, with its fix", () =>
    Effect.gen(function* () {
      const { plugin } = scripted({ now: legacyServer }, { eras: () => ["legacy"] });
      const error = yield* Effect.flip(eraOf(yield* runtimeOver(plugin), endpoint({ era: "modern" })));
      expect(error).toMatchObject({ _tag: "InvalidEndpoint", field: "era", fix: "Use: legacy." });
    }).pipe(Effect.scoped),
  );

  it.live("a setting that is no era is refused", () =>
    Effect.gen(function* () {
      const { plugin } = scripted({ now: legacyServer });
      const error = yield* Effect.flip(Effect.scoped(runtimeOver(plugin, undefined, { era: "future" as Era })));
      expect(error).toMatchObject({ _tag: "InvalidConfig", field: "era" });
    }),
  );
});

const broken = (): never => {
  throw new Error("disk full");
};

describe("verdicts", () => {
  it.live("are remembered: the next connection asks the right question at once", () =>
    Effect.gen(function* () {
      const { plugin, diary } = scripted({ now: modernServer });
      const runtime = yield* runtimeOver(plugin, undefined, brief);
      expect(yield* eraOf(runtime)).toBe("modern");
      expect(yield* eraAgain(runtime, diary)).toBe("modern");
      expect(diary).toEqual(["open", "initialize", "server/discover", "close", "open", "server/discover"]);
    }).pipe(Effect.scoped),
  );

  it.live("are forgotten when they prove wrong, up and down, within the same connect", () =>
    Effect.gen(function* () {
      const scripts = { now: modernServer };
      const { plugin, diary } = scripted(scripts);
      const store = memory();
      const runtime = yield* runtimeOver(plugin, store, brief);
      expect(yield* eraOf(runtime)).toBe("modern");
      scripts.now = legacyServer;
      expect(yield* eraAgain(runtime, diary)).toBe("legacy");
      expect(store.kept.get("scripted:server")?.era).toBe("legacy");
      scripts.now = modernServer;
      expect(yield* eraAgain(runtime, diary)).toBe("modern");
      expect(store.kept.get("scripted:server")?.era).toBe("modern");
      expect(count(diary, "open")).toBe(3);
    }).pipe(Effect.scoped),
  );

  it.live("that lead to a failure are dropped, so that the next connect starts afresh", () =>
    Effect.gen(function* () {
      const scripts = { now: modernServer };
      const { plugin, diary } = scripted(scripts);
      const store = memory();
      const runtime = yield* runtimeOver(plugin, store, brief);
      yield* eraOf(runtime);
      scripts.now = { initialize: welcome, discover: "exit" };
      yield* Effect.flip(eraAgain(runtime, diary));
      expect(store.kept.size).toBe(0);
      // The circuit, 1 ms here.
      yield* Effect.sleep(20);
      expect(yield* eraAgain(runtime, diary)).toBe("legacy");
      expect(diary.slice(-2)).toEqual(["open", "initialize"]);
    }).pipe(Effect.scoped),
  );

  it.live("outlive the runtime in a store, are not kept of pinned endpoints, and hang on no store", () =>
    Effect.gen(function* () {
      const store = memory();
      const first = scripted({ now: modernServer });
      expect(yield* eraOf(yield* runtimeOver(first.plugin, store))).toBe("modern");
      const second = scripted({ now: modernServer });
      expect(yield* eraOf(yield* runtimeOver(second.plugin, store))).toBe("modern");
      expect(second.diary).toEqual(["open", "server/discover"]);

      const pinned = scripted({ now: modernServer });
      yield* eraOf(yield* runtimeOver(pinned.plugin, store), endpoint({ endpointId: "pinned", era: "modern" }));
      expect([...store.kept.keys()]).toEqual(["scripted:server"]);
      const third = scripted({ now: modernServer });
      const runtime = yield* runtimeOver(third.plugin, { load: broken, save: broken, remove: broken });
      expect(yield* eraOf(runtime)).toBe("modern");
    }).pipe(Effect.scoped),
  );

  it.effect("are asked for anew after a day, since an upgraded server still answers initialize", () =>
    Effect.gen(function* () {
      const verdicts = makeVerdicts(memory());
      yield* verdicts.keep("a", "legacy");
      yield* TestClock.adjust(DAY - 1);
      expect(yield* verdicts.recall("a")).toBe("legacy");
      // Proving right once more does not make it younger.
      yield* verdicts.keep("a", "legacy");
      yield* TestClock.adjust(1);
      expect(yield* verdicts.recall("a")).toBeUndefined();
      yield* verdicts.keep("a", "legacy");
      expect(yield* verdicts.recall("a")).toBe("legacy");
      yield* verdicts.drop("a");
      expect(yield* verdicts.recall("a")).toBeUndefined();
    }),
  );
});

const failed = (cause: unknown, phase: ConnectFailed["phase"] = "handshake") =>
  new ConnectFailed({ server: "s", endpointId: "s", phase, reason: "r" }, cause);
const rpc = (code: number, data?: unknown) => failed(new ProtocolError({ server: "s", code, reason: "r", data }));
const status = (code: number) => new HttpFailed({ server: "s", status: code, reason: "r" });

describe("what refuses an era", () => {
  const cases: ReadonlyArray<readonly [string, McpError, boolean]> = [
    ["an unknown method", rpc(-32_601), true],
    ["an error of the server's own", rpc(-32_000), true],
    ["a refusal that lists legacy versions alone", rpc(-32_022, { supported: ["2025-11-25"] }), true],
    ["a refusal that lists nothing", rpc(-32_022), true],
    ["a refusal that lists a later modern version", rpc(-32_022, { supported: ["2025-11-25", "2031-01-01"] }), false],
    ["headers that do not match", rpc(-32_020), false],
    ["a capability the client lacks", rpc(-32_021), false],
    ["an answer that is none", failed(undefined, "negotiate"), true],
    ["a loss", failed(new ConnectionLost({ server: "s", outcome: "unknown", reason: "r" })), false],
    ["no connection", failed(undefined, "transport"), false],
    ["no authorization", new Unauthorized({ server: "s", reason: "unauthenticated" }), false],
    ...[400, 404, 405, 406, 415, 422, 500, 501].map((code) => [`HTTP ${code}`, status(code), true] as const),
    ...[401, 403, 408, 429, 502, 503, 504].map((code) => [`HTTP ${code}`, status(code), false] as const),
  ];
  it.each(cases)("%s, asked server/discover", (_what, error, refused) => {
    expect(refusesEra(error, "modern")).toBe(refused);
  });

  it("versions that are no texts are none", () => {
    const unspeakable = { toString: 1, valueOf: 1 };
    for (const data of [null, { supported: [unspeakable, null] }, { supported: unspeakable }])
      expect(refusesEra(rpc(-32_022, data), "modern")).toBe(true);
  });

  it("every JSON-RPC error refuses initialize", () => {
    for (const code of [-32_022, -32_020, -32_601, 1])
      expect(refusesEra(rpc(code, { supported: ["2031-01-01"] }), "legacy")).toBe(true);
  });
});

const plugin = (options: Partial<TransportPlugin> = {}): TransportPlugin =>
  scripted({ now: bothServer }, options).plugin;
const eras = (found: ReturnType<typeof enginesFor>): unknown =>
  Array.isArray(found) ? found.map((engine: ProtocolEngine) => engine.era) : found;

describe("engines", () => {
  const both = [legacyEngine, modernEngine];

  it("are tried in the transport's order, the remembered one first, and only those installed", () => {
    expect(eras(enginesFor(both, plugin(), endpoint(), "auto", undefined))).toEqual(["legacy", "modern"]);
    expect(eras(enginesFor(both, plugin(http), endpoint(), "auto", undefined))).toEqual(["modern", "legacy"]);
    expect(eras(enginesFor(both, plugin(), endpoint(), "auto", "modern"))).toEqual(["modern", "legacy"]);
    expect(eras(enginesFor([legacyEngine], plugin(http), endpoint(), "auto", "modern"))).toEqual(["legacy"]);
    expect(eras(enginesFor(both, plugin(), endpoint(), "modern", "legacy"))).toEqual(["modern"]);
    expect(eras(enginesFor([legacyEngine], plugin(), endpoint(), "modern", undefined))).toMatchObject({
      _tag: "InvalidEndpoint",
      fix: "Register one, or use: legacy.",
    });
  });
});
