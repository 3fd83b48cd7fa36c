/** Recorded catalogs of real servers, replayed page by page through a real process. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@effect/vitest";
import { createRuntime, StdioEndpoint } from "../../src/mod.ts";
import { sharedData } from "../support/paths.ts";
import { scriptedStdio } from "../support/scripted-stdio.ts";

const folder = sharedData("catalogs");

describe.runIf(folder !== undefined)("recorded catalogs at ten tools a page", () => {
  const names = folder === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith(".json"));

  it("all tools of all servers are listed or skipped with a reason, none is lost", async () => {
    await using runtime = await createRuntime({ settings: { connectTimeout: "60 seconds" } });
    const expected = new Map<string, ReadonlyArray<string>>();
    for (const name of names) {
      const { tools } = JSON.parse(readFileSync(join(folder!, name), "utf8"));
      const handle = name.replace(".json", "");
      expected.set(
        handle,
        tools.map((tool: { name: string }) => tool.name),
      );
      await runtime.attach(handle, new StdioEndpoint({ name: handle, ...scriptedStdio({ tools, pageSize: 10 }) }));
    }
    const definitions = await runtime.tools();
    const exposed = new Set(definitions.map((definition) => definition.name));
    expect(exposed.size).toBe(definitions.length);
    let total = 0;
    for (const connector of runtime.connectors()) {
      expect(connector.status.state).toBe("listed");
      const wanted = expected.get(connector.handle)!;
      const listed = definitions.filter((d) => d.handle === connector.handle).map((d) => d.tool);
      const skipped = connector.skipped.map(({ tool }) => tool);
      expect([...listed, ...skipped].toSorted()).toEqual([...wanted].toSorted());
      expect(listed).toEqual(wanted.filter((tool) => listed.includes(tool)));
      for (const { reason } of connector.skipped) expect(reason.length).toBeGreaterThan(10);
      total += wanted.length;
    }
    expect(total).toBe(1256);
    for (const { name, inputSchema } of definitions) {
      expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
      expect(JSON.parse(JSON.stringify(inputSchema))).toEqual(inputSchema);
      expect(inputSchema["$schema"]).toBeUndefined();
    }
  });
});
