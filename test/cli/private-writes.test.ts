/** What the command writes holds secrets: it is its owner's alone, and follows no link that another user laid. */
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import { publishRecord } from "../../src/cli/gateway-record.ts";
import { within } from "./run-command.ts";

let folder = "";
const at = (name: string): string => join(folder, name);
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "nucleo-mcp-writes-"));
});
afterEach(() => rm(folder, { recursive: true }));

const writers: ReadonlyArray<readonly [string, (path: string) => Promise<unknown>]> = [
  [
    "the record of a gateway",
    (path) => {
      const record = { pid: process.pid, url: "http://127.0.0.1:1/mcp", token: "s3cr3t" };
      return Effect.runPromise(Effect.scoped(Effect.andThen(publishRecord(path, record), look(path))));
    },
  ],
  [
    "a merged configuration",
    async (path) => {
      await mkdir(at("home/.cursor"), { recursive: true });
      const entry = { command: "x", env: { TOKEN: "s3cr3t" } };
      await writeFile(at("home/.cursor/mcp.json"), JSON.stringify({ mcpServers: { a: entry } }));
      expect((await within("import", "--home", at("home"), "--write", path)).code).toBe(0);
      return Effect.runPromise(look(path));
    },
  ],
];

const look = (path: string) =>
  Effect.promise(async () => ({ mode: (await stat(path)).mode & 0o777, text: await readFile(path, "utf8") }));

describe.skipIf(process.platform === "win32")("private writes", () => {
  it.each(writers)("%s has mode 0600, whatever was there, and leaves nothing beside it", async (_what, write) => {
    await mkdir(at("out"));
    await writeFile(at("out/file.json"), '{"mcpServers":{}}', { mode: 0o666 });
    const seen = await write(at("out/file.json"));
    expect(seen).toMatchObject({ mode: 0o600, text: expect.stringContaining("s3cr3t") });
    expect((await readdir(at("out"))).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });

  it.each(writers)("%s goes through no link that lies where its draft could be", async (_what, write) => {
    await mkdir(at("out"));
    await writeFile(at("victim"), "untouched", { mode: 0o644 });
    await symlink(at("victim"), at(`out/file.json.${process.pid}.tmp`));
    await write(at("out/file.json"));
    expect(await readFile(at("victim"), "utf8")).toBe("untouched");
  });
});
