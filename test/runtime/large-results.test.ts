/** Results of many megabytes from a real server, as a model meets them. */
import { createHash } from "node:crypto";
import { describe, expect, it } from "@effect/vitest";
import { createRuntime, type McpRuntime, StdioEndpoint } from "../../src/mod.ts";
import { scriptedStdio } from "../support/scripted-stdio.ts";

const bytes = (text: string): number => new TextEncoder().encode(text).length;

interface Page {
  readonly value: string;
  readonly total: number;
  readonly next?: number;
}

const pageOf = async (runtime: McpRuntime, args: Readonly<Record<string, unknown>>): Promise<Page> => {
  const result = await runtime.callTool({ tool: "get_artifact_field", arguments: args });
  expect(bytes(result.textContent)).toBeLessThanOrEqual(8_192);
  return result.resultArtifact as Page;
};

/** A server whose tool answers so many bytes of text, and what a model reads of one call. */
const called = async (runtime: McpRuntime, size: number): Promise<{ readonly whole: string; readonly ref: string }> => {
  const server = scriptedStdio({ on: { "tools/call": [{ big: size }] } });
  await runtime.attach("large", new StdioEndpoint({ name: "large", ...server }));
  const result = await runtime.callTool({ tool: "large__echo" });
  expect(result.textContent).toHaveLength(size);
  const shown = runtime.modelText(result);
  expect(bytes(shown)).toBeLessThanOrEqual(8_192);
  expect(shown).toContain(`of ${size} bytes`);
  return { whole: result.textContent, ref: /artifact:mcp~[0-9a-f]{12}/.exec(shown)![0] };
};

describe("large results", () => {
  it("20 MB: a model reads at most 8 KB of it, and every byte by its ref", async () => {
    await using runtime = await createRuntime();
    const { whole, ref } = await called(runtime, 20_000_000);
    const read = createHash("sha256");
    for (let offset: number | undefined = 0; offset !== undefined;) {
      const page: Page = await pageOf(runtime, { ref, offset });
      expect(page.total).toBe(whole.length);
      read.update(page.value);
      offset = page.next;
    }
    expect(read.digest("hex")).toBe(createHash("sha256").update(whole).digest("hex"));
  }, 120_000);

  it("bad input: a result of 50 MB is read in pages from any offset, and the server goes on", async () => {
    await using runtime = await createRuntime();
    const { whole, ref } = await called(runtime, 50_000_000);
    for (const offset of [0, 1, 24_999_999, whole.length - 5, whole.length]) {
      const { value, next = whole.length } = await pageOf(runtime, { ref, offset });
      expect(value).toBe(whole.slice(offset, next));
      expect(value === "").toBe(offset === whole.length);
    }
    expect((await runtime.callTool({ tool: "large__echo" })).textContent).toHaveLength(whole.length);
  }, 120_000);
});
