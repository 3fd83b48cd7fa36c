import { describe, expect, it } from "@effect/vitest";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Logger from "effect/Logger";
import * as Metric from "effect/Metric";
import * as References from "effect/References";
import type { Observer } from "../../../src/core/contracts.ts";
import { ConnectionLost } from "../../../src/core/errors.ts";
import { make, ports } from "../../../src/effect.ts";
import { loggerObserver } from "../../../src/plugins/observers/logger.ts";
import { metricsObserver } from "../../../src/plugins/observers/metrics.ts";
import { ScriptedEndpoint, scriptedEngine, scriptedTransport } from "../../support/scripted-endpoint.ts";

const secret = "s3cr3t-value";

/** A runtime that connects, calls well and badly, is notified, and loses its server; settled when all of it is observed. */
const story = (observer: Observer) =>
  Effect.gen(function* () {
    const last = yield* Deferred.make<void>();
    const runtime = yield* make({
      setup: (c) => {
        c.registerInstance(ports.transports.token, scriptedTransport());
        c.registerInstance(ports.engines.token, scriptedEngine);
        c.registerInstance(ports.observers.token, observer);
        c.registerInstance(ports.observers.token, {
          on: (event) => (event.type === "circuit.open" ? Effect.asVoid(Deferred.succeed(last, undefined)) : undefined),
        } satisfies Observer);
      },
    });
    const dead = new ScriptedEndpoint("dead");
    dead.attempts = ["fail"];
    yield* runtime.attach("dead", dead);
    const good = new ScriptedEndpoint("good");
    good.answer = (_method, params) => ({
      content: [{ type: "text", text: secret }],
      isError: JSON.stringify(params).includes("bad"),
    });
    yield* runtime.attach("good", good);
    yield* runtime.callTool({ tool: "good__echo", arguments: { secret } });
    yield* runtime.callTool({ tool: "good__echo", arguments: { secret, bad: true } });
    yield* Effect.exit(runtime.client(dead).pipe(Effect.scoped));
    good.listeners[0]!.onNotification("notifications/message", { data: secret });
    good.die(new ConnectionLost({ server: "good", outcome: "unknown", reason: "it died" }));
    yield* Deferred.await(last);
  }).pipe(Effect.scoped);

describe("observers", () => {
  it.live("logger: what breaks is a warning, with the server, and no secret shows", () =>
    Effect.gen(function* () {
      const lines: Array<string> = [];
      const sink = Logger.make(({ fiber, logLevel, message }) => {
        const server = fiber.getRef(References.CurrentLogAnnotations)["mcp.server"];
        lines.push(`${logLevel} [${String(server)}] ${String(message)}`);
      });
      yield* story(loggerObserver).pipe(
        Effect.provide(Logger.layer([sink])),
        Effect.provideService(References.MinimumLogLevel, "All"),
      );
      const expected = [
        /^Info \[good\] .*connected, .* era, protocol /,
        /^Debug \[good\] .*call of good__echo ends after \d+ ms, success$/,
        /^Debug \[good\] .*call of good__echo ends after \d+ ms, tool-error$/,
        /^Warn \[dead\] .*could not connect: /,
        /^Debug \[good\] .*sent notifications\/message$/,
        /^Warn \[good\] .*connection lost: .*it died/,
        /^Warn \[good\] .*fails fast until \d{4}-/,
      ];
      for (const pattern of expected) expect(lines).toContainEqual(expect.stringMatching(pattern));
      expect(lines.join("\n")).not.toContain(secret);
    }),
  );

  it.live("metrics: counts connections and times calls by outcome", () =>
    Effect.gen(function* () {
      yield* story(metricsObserver);
      const found = (yield* Metric.snapshot).map(({ id, attributes, state }) => {
        const { unit: _unit, ...rest } = attributes ?? {};
        const total = "count" in state ? Number(state.count) : undefined;
        return [id, rest, total] as const;
      });
      const call = { "mcp.server": "good", "mcp.method.name": "tools/call", "gen_ai.tool.name": "good__echo" };
      expect(found).toContainEqual(["mcp.client.operation.duration", call, 1]);
      expect(found).toContainEqual(["mcp.client.operation.duration", { ...call, "error.type": "tool_error" }, 1]);
      expect(found).toContainEqual(["nucleo_mcp.connects", { "mcp.server": "good", outcome: "ready" }, 1]);
      expect(found).toContainEqual([
        "nucleo_mcp.connects",
        { "mcp.server": "dead", outcome: "failed", "error.type": "ConnectFailed" },
        1,
      ]);
      expect(found).toContainEqual(["nucleo_mcp.disconnects", { "mcp.server": "good", reason: "lost" }, 1]);
      expect(found).toContainEqual(["nucleo_mcp.circuits_opened", { "mcp.server": "good" }, 1]);
      const noted = { "mcp.server": "good", "mcp.method.name": "notifications/message" };
      expect(found).toContainEqual(["nucleo_mcp.notifications", noted, 1]);
      expect(JSON.stringify(found)).not.toContain(secret);
    }).pipe(Effect.provideService(Metric.MetricRegistry, new Map())),
  );
});
