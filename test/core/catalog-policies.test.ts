/** Policies that fail hide what they were deciding on, say so once, and leave all else alone. */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import type { McpEvent } from "../../src/core/events.ts";
import { ports } from "../../src/effect.ts";
import { runtimeWith, settle } from "../support/runtime-with.ts";
import { ScriptedEndpoint } from "../support/scripted-endpoint.ts";

const tool = (name: string) => ({ name, inputSchema: { type: "object" } });

const policyOn = (odd: string, decide: () => unknown, name?: string) => ({
  ...(name !== undefined && { name }),
  decide: (given: { readonly name: string }) => (given.name === odd ? decide() : "keep"),
});

/** A runtime of three tools under the policies, and what its observers were told. */
const serve = (policies: ReadonlyArray<unknown>) =>
  Effect.gen(function* () {
    const events: Array<McpEvent> = [];
    const runtime = yield* runtimeWith({
      events,
      setup: (container) => {
        for (const policy of policies) container.registerInstance(ports.catalogPolicies.token, policy);
      },
    });
    const endpoint = new ScriptedEndpoint("s");
    endpoint.tools = [tool("echo"), tool("odd"), tool("plain")];
    endpoint.answer = (_method, params) => ({ content: [{ type: "text", text: String(params?.["name"]) }] });
    const connector = yield* runtime.attach("s", endpoint);
    const names = Effect.map(runtime.tools(), (tools) => tools.map((one) => one.name));
    const told = Effect.map(settle, () =>
      events.flatMap((event) => (event.type === "diagnostic" && /catalogPolicies/.test(event.message) ? [event] : [])),
    );
    return { runtime, endpoint, connector, names, told };
  });

/** What a policy may do wrong, and what is said of it. */
const faults: ReadonlyArray<readonly [string, () => unknown, RegExp]> = [
  [
    "throws",
    () => {
      throw new Error("boom");
    },
    /threw: boom/,
  ],
  [
    "throws what has no text",
    () => {
      throw Object.create(null);
    },
    /threw/,
  ],
  ["answers a promise", () => Promise.resolve("keep"), /promise/],
  ["answers a promise that rejects", () => Promise.reject(new Error("late")), /promise/],
  ["answers an effect", () => Effect.succeed("keep"), /effect/i],
  ["answers nothing", () => undefined, /undefined/],
  ["answers null", () => null, /null/],
  ["answers a number", () => 42, /42/],
  ["answers an unknown text", () => "show", /"show"/],
  ["renames to nothing", () => ({ rename: " " }), /rename/],
  ["renames to a number", () => ({ rename: 7 }), /rename/],
  [
    "answers an object that throws",
    () => ({
      get rename() {
        throw new Error("trap");
      },
    }),
    /trap/,
  ],
];

describe("a policy that fails", () => {
  for (const [what, decide, reason] of faults)
    it.effect(`${what}: hides that tool alone, named and told once`, () =>
      Effect.gen(function* () {
        const { runtime, endpoint, connector, names, told } = yield* serve([
          { decide: () => "keep" },
          policyOn("odd", decide),
        ]);
        expect(yield* names).toEqual(["s__echo", "s__plain"]);
        expect((yield* Effect.flip(runtime.callTool({ tool: "s__odd" })))._tag).toBe("ToolNotFound");
        expect((yield* runtime.callTool({ tool: "s__echo" })).textContent).toBe("echo");
        expect(connector.skipped.map((one) => one.tool)).toEqual(["odd"]);
        expect(connector.skipped[0]!.reason).toMatch(reason);
        expect(connector.skipped[0]!.reason).toContain("catalogPolicies[1]");

        // Decided on anew, with another server and a list that changed: not told anew.
        yield* runtime.attach("other", new ScriptedEndpoint("other"));
        endpoint.tools = [...endpoint.tools, tool("late")];
        expect(yield* names).toContain("s__echo");
        const diagnostics = yield* told;
        expect(diagnostics.length).toBe(1);
        expect(diagnostics[0]!.message).toMatch(reason);
        expect(diagnostics[0]!.message).toContain("'odd'");
        expect(diagnostics[0]!.server).toBe("s");
      }),
    );

  it.effect("is called by its name, where it has one", () =>
    Effect.gen(function* () {
      const { names, told } = yield* serve([policyOn("odd", () => 42, "no-writes")]);
      yield* names;
      expect((yield* told)[0]!.message).toContain("Plugin 'catalogPolicies[0] no-writes' failed");
    }),
  );

  it.effect("offers the tool again once it decides", () =>
    Effect.gen(function* () {
      let answer: unknown = 42;
      const { runtime, connector, names } = yield* serve([policyOn("odd", () => answer)]);
      expect(yield* names).not.toContain("s__odd");
      answer = "keep";
      yield* runtime.attach("other", new ScriptedEndpoint("other"));
      expect(yield* names).toContain("s__odd");
      expect(connector.skipped).toEqual([]);
    }),
  );
});
