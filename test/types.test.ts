/**
 * What the types promise. Most of it is checked by `tsc --noEmit`: this file does not
 * compile when a promise is broken. The rest runs.
 */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type {
  PromiseAdapter,
  PromiseClient,
  PromiseConnector,
  PromiseProvider,
  PromiseRuntime,
  Signalled,
} from "../src/core/promise.ts";
import type { Adapter, McpClient, McpConnector, McpRuntime, Provider, ToolFailed } from "../src/effect.ts";
import { type CallError, ConnectFailed, make } from "../src/effect.ts";
import { createRuntime, type McpEndpoint, ports, RequestTimeout, type Unauthorized } from "../src/mod.ts";
import * as promiseFace from "../src/mod.ts";
import * as effectFace from "../src/effect.ts";
import type { CircuitOpen } from "../src/mod.ts";
import type { TransportPlugin } from "../src/plugin.ts";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles for `true` alone. */
const holds = <_Claim extends true>(): void => {};

// ── Errors by tag ───────────────────────────────────────────────────────────

type ErrorsOf<T> = T extends Effect.Effect<infer _A, infer E, infer _R> ? E : never;

const handled = (runtime: McpRuntime) =>
  runtime.callTool({ tool: "a__b" }).pipe(
    Effect.catchTags({
      CircuitOpen: (error) => {
        holds<Equal<typeof error, CircuitOpen>>();
        return Effect.succeed(error.retryAt);
      },
      RequestTimeout: (error) => {
        holds<Equal<typeof error, RequestTimeout>>();
        return Effect.succeed(error.timeout);
      },
      Unauthorized: (error) => {
        holds<Equal<typeof error, Unauthorized>>();
        return Effect.succeed(error.reason);
      },
    }),
  );
type Before = ErrorsOf<ReturnType<McpRuntime["callTool"]>>;
type After = ErrorsOf<ReturnType<typeof handled>>;
holds<Equal<Before, CallError | ToolFailed>>();
holds<Equal<After, Exclude<Before, CircuitOpen | RequestTimeout | Unauthorized>>>();
holds<Equal<Extract<After, CircuitOpen | RequestTimeout | Unauthorized>, never>>();
// What remains is exact too: a tag that a call cannot fail with is no key of catchTags.
holds<Equal<Extract<After["_tag"], "InvalidConfig">, never>>();

// ── Every Effect verb has its Promise twin ──────────────────────────────────

/** Members that are an Effect, or answer one. */
type Verbs<T> = {
  [K in keyof T]: T[K] extends (...args: never) => Effect.Effect<infer _A, infer _E, infer _R>
    ? K
    : T[K] extends Effect.Effect<infer _A, infer _E, infer _R>
      ? K
      : never;
}[keyof T];

type ArgumentsOf<T> = T extends (...args: infer P) => unknown ? P : [];
type SuccessOf<T> = T extends (...args: never) => Effect.Effect<infer A, infer _E, infer _R>
  ? A
  : T extends Effect.Effect<infer A, infer _E, infer _R>
    ? A
    : never;

/** What a success becomes on the Promise side. */
type Twin<A> = A extends ReadonlyArray<infer Item> ? ReadonlyArray<TwinOf<Item>> : TwinOf<A>;
type TwinOf<A> = A extends McpClient
  ? PromiseClient
  : A extends McpConnector
    ? PromiseConnector
    : A extends Provider
      ? PromiseProvider
      : A extends Adapter
        ? PromiseAdapter
        : A;

type Required_<T extends ReadonlyArray<unknown>> = { [K in keyof T]-?: Exclude<T[K], undefined> };
/** The parameters with `signal` in the last one, which is made where there is none. */
type WithSignal<P extends ReadonlyArray<unknown>, Q extends ReadonlyArray<unknown>> =
  Required_<Q> extends readonly [...infer Head, infer Last]
    ? Required_<P> extends readonly [...Head, infer Given]
      ? Equal<keyof Last, keyof (Given & Signalled)>
      : Required_<P> extends Head
        ? Equal<Last, Signalled>
        : false
    : false;

/** Verbs that are done at once, so that there is nothing to cancel. */
type Instant = "attach" | "detach" | "health" | "keepArtifact" | "loadEndpoints" | "notifyRootsChanged";
/** Needs a Scope of the host's, which Promise hosts do not have: they attach and detach. */
type EffectOnly = "attachScoped";

type TwinsOf<P extends ReadonlyArray<unknown>> = { [I in keyof P]: Twin<P[I]> };

/** Names of the verbs whose twin is missing or differs. */
type Differing<E, P> = {
  [K in Exclude<Verbs<E>, EffectOnly>]: K extends keyof P
    ? P[K] extends (...args: never) => Promise<infer B>
      ? Equal<B, Twin<SuccessOf<E[K]>>> extends true
        ? K extends Instant
          ? Equal<ArgumentsOf<P[K]>, TwinsOf<ArgumentsOf<E[K]>>> extends true
            ? never
            : K
          : WithSignal<ArgumentsOf<E[K]>, ArgumentsOf<P[K]>> extends true
            ? never
            : K
        : K
      : K
    : K;
}[Exclude<Verbs<E>, EffectOnly>];

holds<Equal<Differing<McpRuntime, PromiseRuntime>, never>>();
holds<Equal<Differing<McpClient, PromiseClient>, never>>();
holds<Equal<Differing<McpConnector, PromiseConnector>, never>>();
holds<Equal<Differing<Provider, PromiseProvider>, never>>();
holds<Equal<Differing<Adapter, PromiseAdapter>, never>>();
// The claims above are about something: these are the verbs.
holds<
  Equal<
    Verbs<McpRuntime>,
    "attach" | "detach" | "attachScoped" | "tools" | "callTool" | "client" | "keepArtifact" | "loadEndpoints" | "health"
  >
>();
holds<Equal<Verbs<Adapter>, "execute">>();
holds<Equal<Verbs<Provider>, "create">>();
holds<Equal<Verbs<McpConnector>, "providers" | "approve">>();
// And they can fail: a twin without a signal, with another parameter, with another answer, and none at all.
holds<Equal<Differing<Adapter, { execute: Adapter["execute"] }>, "execute">>();
holds<Equal<Differing<Provider, { create: () => Promise<PromiseAdapter> }>, "create">>();
holds<Equal<Differing<Provider, { create: (options?: Signalled) => Promise<number> }>, "create">>();
holds<Equal<Differing<McpConnector, object>, "providers" | "approve">>();

// What both faces have beside verbs is the same.
type Plain<T> = Omit<T, Verbs<T>>;
holds<
  Equal<keyof Plain<McpRuntime>, Exclude<keyof PromiseRuntime, Verbs<McpRuntime> | "close" | symbol> | "plugins">
>();
holds<Equal<keyof Plain<McpConnector>, Exclude<keyof PromiseConnector, Verbs<McpConnector>>>>();
holds<Equal<keyof Plain<McpClient>, Exclude<keyof PromiseClient, Verbs<McpClient> | "close" | symbol>>>();

// A runtime is scoped, and its layer needs nothing.
holds<Equal<ReturnType<typeof make> extends Effect.Effect<McpRuntime, infer _E, Scope.Scope> ? true : false, true>>();

// ── The same instances ──────────────────────────────────────────────────────

const endpoint: McpEndpoint = { transportType: "refusing", endpointId: "refusing:1", name: "refusing" };
const refusal = new ConnectFailed({
  server: "refusing",
  endpointId: "refusing:1",
  phase: "transport",
  reason: "it is a test",
});
const refusing: TransportPlugin = { kind: "refusing", open: () => Effect.fail(refusal) };
const options: promiseFace.RuntimeOptions = {
  setup: (container) => container.registerInstance(ports.transports.token, refusing),
};

const classes = (face: object): ReadonlyArray<[string, unknown]> =>
  Object.entries(face).filter(([name]) => /^[A-Z]/.test(name) && name !== "McpRuntime");

const failing = (error: CallError): McpRuntime =>
  ({ callTool: () => Effect.fail(error) }) as Partial<McpRuntime> as McpRuntime;

describe("two faces", () => {
  it("export the same error classes and endpoints", () => {
    expect(Object.fromEntries(classes(promiseFace))).toEqual(Object.fromEntries(classes(effectFace)));
    expect(promiseFace.RequestTimeout).toBe(effectFace.RequestTimeout);
    expect(classes(promiseFace).length).toBeGreaterThan(20);
  });

  it("a Promise host is rejected with the very error that a plugin failed with", async () => {
    await using runtime = await createRuntime(options);
    const first: unknown = await runtime.client(endpoint).catch((error: unknown) => error);
    expect(first).toBe(refusal);
    expect(first).toBeInstanceOf(promiseFace.ConnectFailed);
    const second: any = await runtime.client(endpoint).catch((error: unknown) => error);
    expect(second).toBeInstanceOf(promiseFace.CircuitOpen);
    expect(second.cause).toBe(refusal);
  });

  it.effect("an Effect host catches the same instance by its tag", () =>
    Effect.gen(function* () {
      const runtime = yield* make(options);
      const caught = yield* runtime.client(endpoint).pipe(
        Effect.map(() => undefined),
        Effect.catchTag("ConnectFailed", (error) => Effect.succeed(error)),
      );
      expect(caught).toBe(refusal);
      const open = yield* Effect.flip(runtime.client(endpoint));
      expect(open._tag).toBe("CircuitOpen");
      expect(open.cause).toBe(refusal);
    }).pipe(Effect.scoped),
  );

  it("catchTags over CircuitOpen, RequestTimeout and Unauthorized handles just these", async () => {
    const timeout = new RequestTimeout({ server: "s", method: "tools/call", kind: "idle", timeout: 5 });
    expect(await Effect.runPromise(handled(failing(timeout)))).toBe(5);
    expect(await Effect.runPromise(Effect.flip(handled(failing(refusal))))).toBe(refusal);
  });
});
