/** Keeps over restarts which tools of pinned servers are approved: one file for each handle and server. */
import type { PinStore, ToolPin } from "../../core/contracts.ts";
import { digest } from "../../core/identity.ts";
import { parseJson } from "../../core/artifact/json.ts";
import { directoryOf, privateFiles } from "./private-files.ts";

export interface FilePinStoreOptions {
  /** Made when it does not exist, mode 0700. Any number of processes may share it. */
  readonly directory: string;
}

export interface KeptPins {
  readonly key: string;
  readonly pins: ReadonlyArray<ToolPin>;
}

export interface FilePinStore extends PinStore {
  readonly load: (key: string) => Promise<ReadonlyArray<ToolPin> | undefined>;
  readonly save: (key: string, pins: ReadonlyArray<ToolPin>) => Promise<void>;
  /** All that is kept and can be read. */
  readonly list: () => Promise<ReadonlyArray<KeptPins>>;
}

const suffix = ".pins.json";
const nameOf = (key: string): string => digest(key, 32) + suffix;

const read = (text: string): KeptPins | undefined => {
  const { key, pins } = (parseJson(text) ?? {}) as Partial<KeptPins>;
  return typeof key === "string" && Array.isArray(pins) ? { key, pins } : undefined;
};

/**
 * A `PinStore` on files of mode 0600. A reader sees the old pins or the new ones, never a
 * part. A file that cannot be read fails `load`: to trust the server anew, delete it.
 */
export const filePinStore = (options: FilePinStoreOptions): FilePinStore => {
  const directory = directoryOf("filePinStore", options);
  const files = privateFiles(directory);
  return {
    load: async (key) => {
      const text = await files.read(nameOf(key));
      if (text === undefined) return undefined;
      const kept = read(text);
      if (kept?.key === key) return kept.pins;
      throw new Error(
        `${directory}/${nameOf(key)} is damaged; mend it, or delete it to approve the server's tools anew`,
      );
    },
    save: (key, pins) =>
      files.replace(nameOf(key), JSON.stringify({ key, pins } satisfies KeptPins, null, 2), { durable: true }),
    list: async () => {
      const names = (await files.names()).filter((name) => name.endsWith(suffix));
      const texts = await Promise.all(names.map(files.read));
      return texts.flatMap((text) => (text === undefined ? [] : (read(text) ?? [])));
    },
  };
};
