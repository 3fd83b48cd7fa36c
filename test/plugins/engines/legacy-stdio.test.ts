/** The engine on real processes: scripted servers over the stdio transport. */
import { describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Scope from "effect/Scope";
import { lift } from "../../../src/core/answer.ts";
import { StdioEndpoint } from "../../../src/core/endpoint.ts";
import { legacyEngine } from "../../../src/plugins/engines/legacy.ts";
import { stdioTransport } from "../../../src/transports/stdio.ts";
import { type Connected, connectEngine, rejection, testSettings } from "../../support/engine-peer.ts";
import { scriptedStdio, type StdioProgram } from "../../support/scripted-stdio.ts";

const using = async (program: StdioProgram, use: (connected: Connected) => Promise<void>): Promise<void> => {
  const scope = Effect.runSync(Scope.make());
  const endpoint = new StdioEndpoint({ name: "scripted", ...scriptedStdio(program) });
  const context = { name: "scripted", settings: testSettings, era: "legacy" as const, diagnose: () => {} };
  const opened = lift(stdioTransport.kind, () => stdioTransport.open(endpoint, context));
  try {
    await use(await connectEngine(legacyEngine, await Effect.runPromise(Scope.provide(opened, scope))));
  } finally {
    await Effect.runPromise(Scope.close(scope, Exit.void));
  }
};

describe("the legacy engine over stdio", () => {
  it("C-071, C-073, C-076: out of order, late and beside the server's own requests", async () => {
    const program: StdioProgram = {
      on: {
        "tools/call": [
          [{ hold: "first" }, { echo: true }],
          [{ request: { id: 2, method: "ping" } }, { request: { id: "r", method: "roots/list" } }, { echo: true }],
          [{ release: "first" }, { delay: 20 }, { echo: true }],
        ],
      },
    };
    await using(program, async ({ ask, diagnostics }) => {
      const controller = new AbortController();
      const call = (n: number, signal = new AbortController().signal) =>
        ask("tools/call", { name: "echo", arguments: { n } }, { signal });
      const first = rejection(call(1, controller.signal));
      expect((await call(2)).content[0].text).toBe('{"n":2}');
      controller.abort();
      expect((await first)._tag).toBe("Cancelled");
      expect((await call(3)).content[0].text).toBe('{"n":3}');
      expect(diagnostics).toEqual([expect.stringContaining("ignored an answer for a request that is done")]);
    });
  });

  it("C-078: a server that dies in a call fails all that wait, with what it said last", async () => {
    const program: StdioProgram = {
      on: { "tools/call": [[{ never: true }], [{ stderr: "out of luck\n" }, { exit: 7 }]] },
    };
    await using(program, async ({ ask, closed }) => {
      const lost = [1, 2].map(() => rejection(ask("tools/call", { name: "echo" })));
      for (const error of await Promise.all(lost)) {
        expect(error).toMatchObject({ _tag: "ConnectionLost", outcome: "unknown", exitCode: 7 });
        expect(error.stderrTail).toContain("out of luck");
      }
      expect(closed).toHaveLength(1);
    });
  });

  it("a server that exits at once is a ConnectFailed with exit code and stderr", async () => {
    const program: StdioProgram = { onStart: [{ stderr: "missing API key\n" }, { exit: 2 }] };
    const error = await rejection(using(program, async () => {}));
    expect(error).toMatchObject({ _tag: "ConnectFailed", phase: "handshake", exitCode: 2 });
    expect(error.stderrTail).toContain("missing API key");
  });
});
