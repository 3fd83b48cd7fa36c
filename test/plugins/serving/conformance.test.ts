/** The official referee judges a server alone and behind the gateway, row by row. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "@effect/vitest";
import { startEverythingHttp } from "../../../examples/support/everything-http.ts";
import { nodeBinary, script } from "../../../examples/support/servers.ts";
import { StdioEndpoint } from "../../../src/mod.ts";
import { createGateway } from "../../../src/serve.ts";

const referee = fileURLToPath(
  new URL("../../../node_modules/@modelcontextprotocol/conformance/dist/index.js", import.meta.url),
);

/** Failed checks by scenario. The referee's exit code says only whether there was one. */
const judge = (url: string): Promise<ReadonlyMap<string, number>> =>
  new Promise((resolve) => {
    execFile(nodeBinary, [referee, "server", "--url", url], (_error, stdout) => {
      const rows = stdout.matchAll(/^[✓✗] ([\w-]+): \d+ passed, (\d+) failed/gm);
      resolve(new Map(Array.from(rows, ([, name, failed]) => [name!, Number(failed)])));
    });
  });

describe("the official server suite", () => {
  it("a server is not worse behind the gateway than alone, in any row", async () => {
    await using everything = await startEverythingHttp();
    await using gateway = await createGateway();
    const name = "everything";
    await gateway.runtime.attach(
      name,
      new StdioEndpoint({ name, command: nodeBinary, args: [script("server-everything")] }),
    );
    const { url } = await gateway.listen();
    const [alone, behind] = await Promise.all([judge(everything.url), judge(url)]);
    expect(alone.size).toBeGreaterThan(25);
    expect([...behind.keys()]).toEqual([...alone.keys()]);
    expect([...behind].filter(([row, failed]) => failed > alone.get(row)!)).toEqual([]);
    expect([behind.get("dns-rebinding-protection"), behind.get("server-session-lifecycle")]).toEqual([0, 0]);
  }, 60_000);
});
