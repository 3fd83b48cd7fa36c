import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest";
import { artifactType } from "../../../src/core/artifact/alias.ts";
import { Artifact } from "../../../src/core/artifact/artifact.ts";
import { createRuntime, type McpRuntime, ports } from "../../../src/mod.ts";
import { fileArtifactStore } from "../../../src/stores.ts";
import { nodeBinary } from "../../support/node-binary.ts";
import { until } from "../../support/stdio-pids.ts";

let root = "";
let directory = "";
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "artifact-store-"));
  directory = join(root, "kept");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const support = (name: string): string => fileURLToPath(new URL(`../../support/${name}`, import.meta.url));
const start = (script: string, ...args: ReadonlyArray<string>) =>
  spawn(nodeBinary, [support(script), ...args], { stdio: ["pipe", "pipe", "inherit"] });

describe("file artifact store", () => {
  it("keeps texts as private files that another store on the directory finds", async () => {
    const store = fileArtifactStore({ directory });
    const text = `é😀${"x".repeat(100_000)}`;
    expect(await store.get("artifact:link:cite~1")).toBeUndefined();
    await store.put("artifact:link:cite~1", text);
    await store.put("artifact:link:cite~2", "two");
    await store.put("artifact:link:cite~2", "two again");
    expect(await fileArtifactStore({ directory }).get("artifact:link:cite~1")).toBe(text);
    expect(await store.get("artifact:link:cite~2")).toBe("two again");
    expect(await store.get("artifact:../../etc/passwd")).toBeUndefined();
    const names = readdirSync(directory);
    expect(names).toHaveLength(2);
    for (const name of names) {
      expect(name).toMatch(/^[0-9a-f]{32}\.artifact\.json$/);
      if (process.platform !== "win32") expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    }
    if (process.platform !== "win32") expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  it("is bounded by count and bytes over restarts, and leaves strange files alone", async () => {
    await fileArtifactStore({ directory }).put("artifact:a~0", "zero");
    writeFileSync(join(directory, "README"), "not mine");
    const store = fileArtifactStore({ directory, maxCount: 3 });
    for (let i = 1; i <= 5; i++) await store.put(`artifact:a~${i}`, `text ${i}`);
    expect(readdirSync(directory)).toHaveLength(4);
    expect(readdirSync(directory)).toContain("README");
    expect(await store.get("artifact:a~0")).toBeUndefined();
    expect(await store.get("artifact:a~5")).toBe("text 5");
    const small = fileArtifactStore({ directory, maxBytes: 10 });
    await small.put("artifact:a~6", "123456789");
    expect(readdirSync(directory)).toHaveLength(2);
    expect(await small.get("artifact:a~6")).toBe("123456789");
    await small.put("artifact:a~7", "larger than all that may be kept");
    expect(await small.get("artifact:a~7")).toBe("larger than all that may be kept");
    expect(await small.get("artifact:a~6")).toBeUndefined();
  });

  it("removes what a killed process left half written, but not what another one is writing", async () => {
    await fileArtifactStore({ directory }).put("artifact:a~0", "zero");
    const draft = readdirSync(directory)[0]!;
    writeFileSync(join(directory, `${draft}.old.tmp`), "half");
    writeFileSync(join(directory, `${draft}.new.tmp`), "half");
    utimesSync(join(directory, `${draft}.old.tmp`), 1_000, 1_000);
    await fileArtifactStore({ directory }).put("artifact:a~1", "one");
    expect(readdirSync(directory).filter((name) => name.endsWith(".tmp"))).toEqual([`${draft}.new.tmp`]);
  });

  it("four processes on one directory: every file is whole, and their number stays near the bound", async () => {
    const maxCount = 80;
    const writers = ["a", "b", "c", "d"].map((name) =>
      start("artifact-writer.ts", directory, name, "150", String(maxCount)),
    );
    const codes = await Promise.all(writers.map(async (child) => (await once(child, "exit"))[0]));
    expect(codes).toEqual([0, 0, 0, 0]);
    const names = readdirSync(directory);
    expect(names.filter((name) => !name.endsWith(".artifact.json"))).toEqual([]);
    // Each may be an eighth late.
    expect(names.length).toBeLessThanOrEqual(maxCount + 4 * (maxCount / 8));
    expect(names.length).toBeGreaterThan(maxCount / 2);
    for (const name of names) {
      const words = readFileSync(join(directory, name), "utf8")
        .trim()
        .split(/ (?=[a-d])/);
      expect([500, 20_000]).toContain(words.length);
      expect(new Set(words).size).toBe(1);
    }
  });

  it("a directory that cannot be made is an error, not silence", async () => {
    writeFileSync(directory, "a file is in the way");
    await expect(fileArtifactStore({ directory }).put("artifact:a~1", "x")).rejects.toThrow(/EEXIST|ENOTDIR|exists/i);
  });
});

/** Knows what every citation link has. */
class Cite extends Artifact {
  static override readonly typeAlias: string = "link:cite";
  readonly title: string;
  readonly text: string;
  constructor(title: string, text: string) {
    super();
    this.title = title;
    this.text = text;
  }
  static fromWire({ title, text }: Readonly<Record<string, unknown>>): Artifact {
    return new this(String(title), String(text));
  }
}

const nextHost = (): Promise<McpRuntime> =>
  createRuntime({
    setup: (c) => {
      c.registerInstance(ports.artifactStore.token, fileArtifactStore({ directory }));
      c.registerInstance(ports.artifactTypes.token, artifactType(Cite));
    },
  });

const read = async (runtime: McpRuntime, args: Readonly<Record<string, unknown>>) =>
  (await runtime.callTool({ tool: "get_artifact_field", arguments: args })).resultArtifact as {
    readonly value: unknown;
  };

describe("refs that a model was shown", () => {
  for (const [how, end] of [
    ["closed", (child: ReturnType<typeof start>) => void child.stdin!.end()],
    ["killed when they were written", (child: ReturnType<typeof start>) => void child.kill("SIGKILL")],
  ] as const)
    it(`are read by the next process after the host was ${how}`, async () => {
      const host = start("artifact-host.ts", directory);
      const exited = once(host, "exit");
      let printed = "";
      host.stdout!.on("data", (chunk) => (printed += String(chunk)));
      await until("the host has printed", () => printed.includes("\n"));
      const texts = JSON.parse(printed) as ReadonlyArray<string>;
      const refs = [...new Set(texts.join("\n").match(/artifact:[a-z:]+~[0-9a-f]+/g))];
      expect(refs.length).toBeGreaterThan(3);
      const kept = () =>
        (existsSync(directory) ? readdirSync(directory) : []).filter((name) => name.endsWith(".json")).length;
      if (how !== "closed") await until("all is written", () => kept() === refs.length);
      end(host);
      await exited;

      await using runtime = await nextHost();
      for (const ref of refs) expect((await read(runtime, { ref })).value).toBeDefined();
      const rows = refs.find((ref) => texts[0]!.includes(ref))!;
      expect((await read(runtime, { ref: rows, pointer: "/rows/1999/title" })).value).toBe("row 1999");
      expect((await read(runtime, { ref: "artifact:link:cite:pubmed~abc123", pointer: "/title" })).value).toBe("Bees");
    });

  it("a store that cannot be written harms no call, and the host is told", async () => {
    writeFileSync(directory, "a file is in the way");
    const host = start("artifact-host.ts", directory);
    let printed = "";
    host.stdout!.on("data", (chunk) => (printed += String(chunk)));
    await until("the host has printed", () => printed.includes("\n"));
    host.stdin!.end();
    await once(host, "close");
    const [texts, ...problems] = printed.trim().split("\n");
    const refs = new Set(texts!.match(/artifact:[a-z:]+~[0-9a-f]+/g));
    expect(problems).toHaveLength(refs.size);
    for (const ref of refs) expect(problems.join("\n")).toContain(`the artifact ${ref} was not stored: `);
    await using runtime = await nextHost();
    await expect(read(runtime, { ref: [...refs][0] })).rejects.toMatchObject({ _tag: "ArtifactNotFound" });
  });
});
