/**
 * Plugins as classes in a tsyringe container, with dependencies injected.
 *
 * A decorator is a function. Where a compiler has legacy decorators, write
 * `@injectable()` on the class and `@inject(Tally)` before the parameter. Type
 * stripping has none of them, so this example, which runs on Node, Deno and Bun as it
 * is, calls the same functions by hand.
 */
import { container, inject, injectable, Lifecycle } from "../src/di.ts";
import { createRuntime, InMemoryEndpoint, type McpEvent, ports } from "../src/mod.ts";
import type { CatalogPolicy, CatalogTool, Observer } from "../src/plugin.ts";
import { startNotes } from "./support/notes-server.ts";

class Tally {
  readonly calls: Map<string, number> = new Map();
}

class CallCounter implements Observer {
  readonly tally: Tally;
  constructor(tally: Tally) {
    this.tally = tally;
  }
  on(event: McpEvent): void {
    if (event.type === "call.end") this.tally.calls.set(event.tool, (this.tally.calls.get(event.tool) ?? 0) + 1);
  }
}
inject(Tally)(CallCounter, undefined, 0);
injectable()(CallCounter);

class NothingDestructive implements CatalogPolicy {
  decide(tool: CatalogTool): "keep" | "hide" {
    return tool.annotations?.["destructiveHint"] === true ? "hide" : "keep";
  }
}
injectable()(NothingDestructive);

const mine = container.createChildContainer();
mine.register(Tally, { useClass: Tally }, { lifecycle: Lifecycle.Singleton });
mine.register(ports.observers.token, { useClass: CallCounter });
mine.register(ports.catalogPolicies.token, { useClass: NothingDestructive });

const runtime = await createRuntime({ container: mine });
await runtime.attach("notes", new InMemoryEndpoint({ name: "notes", connect: startNotes }));
const offered = (await runtime.tools()).map((tool) => tool.name);
await runtime.callTool({ tool: "notes__add", arguments: { text: "milk" } });
await runtime.callTool({ tool: "notes__add", arguments: { text: "eggs" } });
await runtime.close();

const { calls } = mine.resolve(Tally);
console.log(`offered: ${offered.join(", ")}; calls: ${JSON.stringify([...calls])}`);
if (offered.includes("notes__clear")) throw new Error("a destructive tool is offered");
if (calls.get("notes__add") !== 2) throw new Error("the observer did not see both calls");
