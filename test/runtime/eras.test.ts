/** Which era real processes are spoken to in, and what that costs them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "@effect/vitest";
import { createRuntime, StdioEndpoint } from "../../src/mod.ts";
import { nodeBinary } from "../support/node-binary.ts";
import { readPids } from "../support/stdio-pids.ts";

const folder = mkdtempSync(join(tmpdir(), "nucleo-mcp-eras-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a stdio server that ends at what it does not know", () => {
  it("is started once by each connect, and met in its own era by the second one", async () => {
    const starts = join(folder, "starts");
    await using runtime = await createRuntime({ settings: { breakerCooldown: 1 } });
    const script = fileURLToPath(new URL("../support/modern-stdio-server.ts", import.meta.url));
    const endpoint = new StdioEndpoint({ name: "abrupt", command: nodeBinary, args: [script, "abrupt", starts] });
    const refused = await runtime.client(endpoint).catch((error: unknown) => error);
    expect(refused).toMatchObject({ _tag: "ConnectFailed", phase: "handshake", exitCode: 3 });
    expect(readPids(starts)).toHaveLength(1);
    await using client = await runtime.client(endpoint);
    expect(client.era).toBe("modern");
    expect(readPids(starts)).toHaveLength(2);
  });
});
