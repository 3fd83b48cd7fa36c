/** Plugins that lack what their contract asks for are named when the runtime is built, all at once. */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { ports } from "../../src/effect.ts";
import { listPorts, singlePorts } from "../../src/core/ports.ts";
import { runtimeWith } from "../support/runtime-with.ts";

const register = (plugins: Readonly<Record<string, ReadonlyArray<unknown>>>) =>
  runtimeWith({
    setup: (container) => {
      for (const [name, values] of Object.entries(plugins))
        for (const value of values)
          container.register((ports as never as Record<string, { token: symbol }>)[name]!.token, {
            useFactory: () => value,
          });
    },
  });

describe("a plugin without its verb", () => {
  it.effect("is named at every port but the one where all is optional, all faults at once", () =>
    Effect.gen(function* () {
      const all = [...listPorts, ...singlePorts].map(({ name }) => name);
      const named = { kind: "mine", era: "mine", name: "mine", alias: "mine" };
      const error = yield* Effect.flip(register(Object.fromEntries(all.map((name) => [name, [named]]))));
      expect(error._tag).toBe("PluginFailed");
      for (const name of all)
        if (name === "hostHandlers") expect(error.message).not.toContain(name);
        else expect(error.message).toContain(`${name}: `);
      expect(error.message).toContain("transports: 'mine' has no function 'open'");
      expect(error.message).toContain("pinStore: the plugin has no function 'load' and no function 'save'");
    }),
  );

  for (const [port, value, fault] of [
    ["observers", {}, "observers: a plugin has no function 'on'"],
    ["observers", { on: "yes" }, "observers: a plugin has no function 'on'"],
    ["observers", null, "observers: a plugin has no function 'on'"],
    ["observers", () => {}, "observers: a plugin has no function 'on'"],
    ["transports", { open() {} }, "transports: a plugin has no kind"],
    ["transports", { kind: "x", open() {}, gates: [] }, "transports: 'x' has 'gates', which is no function"],
    ["pinStore", { load() {} }, "pinStore: the plugin has no function 'save'"],
    ["pinStore", null, "pinStore: the plugin has no function 'load'"],
    ["hostHandlers", { sampling: true }, "hostHandlers: the plugin has 'sampling', which is no function"],
    ["hostHandlers", { elicitation: () => {} }, "hostHandlers: the plugin has 'elicitation', which is no object"],
    [
      "hostHandlers",
      { elicitation: { form: 1 } },
      "hostHandlers: the plugin has 'elicitation.form', which is no function",
    ],
    ["hostHandlers", 7, "hostHandlers: the plugin is no object"],
  ] as const)
    it.effect(`${port} ${String(value === null ? null : JSON.stringify(value))}: ${fault}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(register({ [port]: [value] }));
        expect(error).toMatchObject({ _tag: "PluginFailed", plugin: "registration" });
        expect(error.message).toContain(fault);
      }),
    );

  it.effect("is named when a layer provides it", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(
        runtimeWith().pipe(
          Effect.provideService(ports.observers.service, [{} as never]),
          Effect.provideService(ports.tokenStore.service, {} as never),
        ),
      );
      expect(error.message).toContain("observers: a plugin has no function 'on'");
      expect(error.message).toContain("tokenStore: the plugin has no function 'load'");
    }),
  );

  it.effect("methods of a class count, and an empty host is one", () =>
    Effect.gen(function* () {
      class Quiet {
        on(): void {}
      }
      yield* register({ observers: [new Quiet()], hostHandlers: [{ elicitation: undefined }] });
    }),
  );
});
