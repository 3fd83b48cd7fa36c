import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest";
import { userFolder } from "../../../src/cli/user-folders.ts";
import { fileTokenStore } from "../../../src/plugins/stores/file-tokens.ts";

let root = "";
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), "nucleo-tokens-"));
});
afterEach(() => rm(root, { recursive: true, force: true }));

const KEY = JSON.stringify(["authorization-code", "ada", "", "https://files.example/mcp"]);

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

describe("the token file store", () => {
  it("keeps, replaces, lists and removes by key", async () => {
    const store = fileTokenStore({ directory: join(root, "deep", "tokens") });
    expect(await store.load(KEY)).toBeUndefined();
    expect(await store.list()).toEqual([]);
    await store.save(KEY, "one");
    await store.save(KEY, "two");
    await store.save("other/../../key", "three");
    expect(await store.load(KEY)).toBe("two");
    expect(await store.load("other/../../key")).toBe("three");
    expect((await store.list()).map(({ key }) => key).toSorted()).toEqual([KEY, "other/../../key"].toSorted());
    await store.remove(KEY);
    await store.remove(KEY);
    expect(await store.load(KEY)).toBeUndefined();
    expect(await fileTokenStore({ directory: join(root, "deep", "tokens") }).load("other/../../key")).toBe("three");
  });

  it.skipIf(process.platform === "win32")(
    "only the owner can read what is kept, whatever was there before",
    async () => {
      const directory = join(root, "tokens");
      const store = fileTokenStore({ directory: directory });
      await store.save(KEY, "secret");
      const [name] = await readdir(directory);
      expect(await modeOf(directory)).toBe(0o700);
      expect(await modeOf(join(directory, name!))).toBe(0o600);
      await chmod(join(directory, name!), 0o644);
      await store.save(KEY, "secret");
      expect(await modeOf(join(directory, name!))).toBe(0o600);
      expect(name).not.toContain("ada");
    },
  );

  it("readers see one whole value or another while many writers replace it, and nothing is left behind", async () => {
    const store = fileTokenStore({ directory: root });
    const values = Array.from({ length: 20 }, (_, i) => String(i).repeat(20_000));
    await store.save(KEY, values[0]!);
    const writing = values.map((value) => store.save(KEY, value));
    const read = await Promise.all(Array.from({ length: 20 }, () => store.load(KEY)));
    await Promise.all(writing);
    for (const value of read) expect(values).toContain(value);
    expect(await readdir(root)).toHaveLength(1);
  });

  it("a file that is broken, or belongs to another key, is none", async () => {
    const store = fileTokenStore({ directory: root });
    await store.save(KEY, "secret");
    const [name] = await readdir(root);
    for (const text of ["", "{", "[]", "null", '{"key":"other","secret":"x"}']) {
      await writeFile(join(root, name!), text);
      expect(await store.load(KEY)).toBeUndefined();
    }
    await store.save(KEY, "again");
    expect(JSON.parse(await readFile(join(root, name!), "utf8"))).toEqual({ key: KEY, secret: "again" });
  });

  it("a directory that cannot be written is an error, not silence", async () => {
    await writeFile(join(root, "file"), "");
    await expect(fileTokenStore({ directory: join(root, "file", "tokens") }).save(KEY, "x")).rejects.toThrow();
  });

  it("has a place of its own in the user's state", async () => {
    expect(await userFolder("tokens")).toMatch(/nucleo-mcp.tokens$/);
  });
});
