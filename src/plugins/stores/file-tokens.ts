/** Keeps tokens over restarts in files that only their owner can read, one for each key. */
import type { TokenStore } from "../../core/contracts.ts";
import { digest } from "../../core/identity.ts";
import { directoryOf, privateFiles } from "./private-files.ts";

export interface FileTokenStoreOptions {
  /** Made when it does not exist, mode 0700. Any number of processes may share it. */
  readonly directory: string;
}

export interface KeptToken {
  readonly key: string;
  readonly secret: string;
}

export interface FileTokenStore extends TokenStore {
  readonly load: (key: string) => Promise<string | undefined>;
  readonly save: (key: string, secret: string) => Promise<void>;
  readonly remove: (key: string) => Promise<void>;
  /** All that is kept. */
  readonly list: () => Promise<ReadonlyArray<KeptToken>>;
}

const suffix = ".json";
const nameOf = (key: string): string => digest(key, 32) + suffix;

const read = (text: string | undefined): KeptToken | undefined => {
  if (text === undefined) return undefined;
  try {
    const { key, secret } = JSON.parse(text) as Partial<KeptToken>;
    return typeof key === "string" && typeof secret === "string" ? { key, secret } : undefined;
  } catch {
    return undefined;
  }
};

/** A `TokenStore` on files of mode 0600. A reader sees the old text or the new one, never a part. Not encrypted. */
export const fileTokenStore = (options: FileTokenStoreOptions): FileTokenStore => {
  const files = privateFiles(directoryOf("fileTokenStore", options));
  return {
    load: async (key) => {
      const kept = read(await files.read(nameOf(key)));
      return kept?.key === key ? kept.secret : undefined;
    },
    save: (key, secret) =>
      files.replace(nameOf(key), JSON.stringify({ key, secret } satisfies KeptToken), { durable: true }),
    remove: (key) => files.remove(nameOf(key)),
    list: async () => {
      const names = (await files.names()).filter((name) => name.endsWith(suffix));
      const texts = await Promise.all(names.map(files.read));
      return texts.map(read).filter((kept) => kept !== undefined);
    },
  };
};
