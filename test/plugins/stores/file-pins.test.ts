import { chmod, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest";
import type { ToolPin } from "../../../src/core/contracts.ts";
import { filePinStore } from "../../../src/stores.ts";

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "nucleo-pins-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const KEY = JSON.stringify(["../files", "npx -y server ."]);
const pin = (tool: string): ToolPin => ({
  tool,
  digest: "0".repeat(64),
  approvedAt: 1,
  definition: { name: tool, description: "does it" },
});

describe("the pin file store", () => {
  it("keeps, replaces and lists by key, for every process that uses the folder", async () => {
    const directory = join(root, "deep", "pins");
    const store = filePinStore({ directory });
    expect(await store.load(KEY)).toBeUndefined();
    expect(await store.list()).toEqual([]);
    await store.save(KEY, [pin("a")]);
    await store.save(KEY, [pin("a"), pin("b")]);
    const other = filePinStore({ directory });
    expect(await other.load(KEY)).toEqual([pin("a"), pin("b")]);
    expect(await other.list()).toEqual([{ key: KEY, pins: [pin("a"), pin("b")] }]);
    expect(await readdir(root)).toEqual(["deep"]);
  });

  it.skipIf(process.platform === "win32")("only the owner can read or change what is kept", async () => {
    const directory = join(root, "pins");
    const store = filePinStore({ directory });
    await store.save(KEY, [pin("a")]);
    const [name] = await readdir(directory);
    const modeOf = async (path: string) => (await stat(path)).mode & 0o777;
    expect([await modeOf(directory), await modeOf(join(directory, name!))]).toEqual([0o700, 0o600]);
    await chmod(join(directory, name!), 0o666);
    await store.save(KEY, [pin("a")]);
    expect(await modeOf(join(directory, name!))).toBe(0o600);
  });

  it("fails to load what is damaged or another key's, naming the file and the fix; lists the rest", async () => {
    const store = filePinStore({ directory: root });
    await store.save(KEY, [pin("a")]);
    const [name] = await readdir(root);
    for (const text of ["", "{", "null", "[]", '{"key":1,"pins":[]}', `{"key":"other","pins":[]}`]) {
      await writeFile(join(root, name!), text);
      await expect(store.load(KEY)).rejects.toThrow(new RegExp(`${name}.*delete it`));
    }
    await writeFile(join(root, name!), "{");
    await store.save("second", [pin("b")]);
    expect((await store.list()).map(({ key }) => key)).toEqual(["second"]);
  });
});
