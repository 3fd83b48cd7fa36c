/** Files that only their owner can read, each replaced whole or not at all. */
import type { Dirent } from "node:fs";
import { isRecord } from "../../core/artifact/json.ts";
import { InvalidConfig } from "../../core/errors.ts";

const modules = () => Promise.all([import("node:fs/promises"), import("node:path")]);

const isAbsent = (cause: unknown): boolean => (cause as { readonly code?: unknown }).code === "ENOENT";

/** Answers `absent` where there is no such file or folder; passes other failures on. */
const unlessAbsent = async <A, B>(work: Promise<A>, absent: B): Promise<A | B> => {
  try {
    return await work;
  } catch (cause) {
    if (isAbsent(cause)) return absent;
    throw cause;
  }
};

export interface PrivateFile {
  readonly name: string;
  readonly size: number;
  /** Epoch ms. */
  readonly writtenAt: number;
}

export interface PrivateFiles {
  readonly read: (name: string) => Promise<string | undefined>;
  /** `durable`: settles when it survives the machine's fall, too. Makes the folder, mode 0700, where need be. */
  readonly replace: (name: string, text: string, options: { readonly durable: boolean }) => Promise<void>;
  readonly remove: (name: string) => Promise<void>;
  readonly names: () => Promise<ReadonlyArray<string>>;
  /** Oldest first. */
  readonly list: (suffix: string) => Promise<ReadonlyArray<PrivateFile>>;
}

/** The folder a store is made with; throws `InvalidConfig` when there is none, before anything is lost. */
export const directoryOf = (store: string, options: unknown): string => {
  const directory = isRecord(options) ? options["directory"] : undefined;
  if (typeof directory === "string" && directory !== "") return directory;
  const reason = directory === undefined ? "is missing" : "is no path";
  const given = typeof options === "string" && options !== "" ? options : "./state";
  const fix = `Write ${store}({ directory: ${JSON.stringify(given)} }).`;
  throw new InvalidConfig({ source: store, field: "directory", reason, fix });
};

/** Any number of processes may use one folder. */
export const privateFiles = (directory: string): PrivateFiles => {
  const remove = async (name: string): Promise<void> => {
    const [fs, path] = await modules();
    await fs.rm(path.join(directory, name), { force: true });
  };
  const names = async (): Promise<ReadonlyArray<string>> => {
    const [fs] = await modules();
    const entries = await unlessAbsent<Array<Dirent>, []>(fs.readdir(directory, { withFileTypes: true }), []);
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  };
  return {
    remove,
    names,
    read: async (name) => {
      const [fs, path] = await modules();
      return unlessAbsent(fs.readFile(path.join(directory, name), "utf8"), undefined);
    },
    replace: async (name, text, { durable }) => {
      const [fs, path] = await modules();
      await fs.mkdir(directory, { recursive: true, mode: 0o700 });
      const draft = `${name}.${crypto.randomUUID()}.tmp`;
      try {
        // A new file, so that its mode holds from its birth, and no link of another's is followed.
        const file = await fs.open(path.join(directory, draft), "wx", 0o600);
        try {
          await file.writeFile(text);
          if (durable) await file.sync();
        } finally {
          await file.close();
        }
        await fs.rename(path.join(directory, draft), path.join(directory, name));
      } catch (cause) {
        await remove(draft);
        throw cause;
      }
    },
    list: async (suffix) => {
      const [fs, path] = await modules();
      const found: Array<PrivateFile> = [];
      for (const name of await names()) {
        if (!name.endsWith(suffix)) continue;
        // What another process removed meanwhile is just not there.
        const info = await unlessAbsent(fs.stat(path.join(directory, name)), undefined);
        if (info) found.push({ name, size: info.size, writtenAt: info.mtimeMs });
      }
      return found.toSorted((a, b) => a.writtenAt - b.writtenAt);
    },
  };
};
