/** Keeps logins in files that only their owner can read, one for each key. */
import type { TokenStore } from "../core/contracts.ts";
import { digest } from "../core/identity.ts";

export interface KeptLogin {
  readonly key: string;
  /** Holds tokens. */
  readonly secret: string;
}

export interface TokenFileStore extends TokenStore {
  readonly load: (key: string) => Promise<string | undefined>;
  readonly save: (key: string, secret: string) => Promise<void>;
  readonly remove: (key: string) => Promise<void>;
  /** All that is kept, for `auth status`. */
  readonly list: () => Promise<ReadonlyArray<KeptLogin>>;
}

/** `$XDG_STATE_HOME/nucleo-mcp/tokens`, `~/.local/state/nucleo-mcp/tokens`, on Windows below `%LOCALAPPDATA%`. */
export const defaultTokenDirectory = async (): Promise<string> => {
  const [{ homedir }, { join }] = await Promise.all([import("node:os"), import("node:path")]);
  const { XDG_STATE_HOME, LOCALAPPDATA } = process.env;
  const base = LOCALAPPDATA ?? XDG_STATE_HOME ?? join(homedir(), ".local", "state");
  return join(base, "nucleo-mcp", "tokens");
};

/** The store of the user who runs the command. */
export const userTokens = async (): Promise<TokenFileStore> => tokenFileStore(await defaultTokenDirectory());

const isAbsent = (cause: unknown): boolean => (cause as { readonly code?: unknown }).code === "ENOENT";

const read = (text: string): KeptLogin | undefined => {
  try {
    const { key, secret } = JSON.parse(text) as Partial<KeptLogin>;
    return typeof key === "string" && typeof secret === "string" ? { key, secret } : undefined;
  } catch {
    return undefined;
  }
};

const files = () => Promise.all([import("node:fs/promises"), import("node:path")]);

const nameOf = (key: string): string => `${digest(key, 32)}.json`;

/**
 * A store in `directory` (made with mode 0700). A file has mode 0600 from its birth and is
 * replaced by a rename, so that a reader sees the old or the new one, never a part.
 */
export const tokenFileStore = (directory: string): TokenFileStore => {
  const readFile = async (name: string): Promise<KeptLogin | undefined> => {
    const [fs, path] = await files();
    try {
      return read(await fs.readFile(path.join(directory, name), "utf8"));
    } catch (cause) {
      if (isAbsent(cause)) return undefined;
      throw cause;
    }
  };
  return {
    load: async (key) => {
      const kept = await readFile(nameOf(key));
      return kept?.key === key ? kept.secret : undefined;
    },
    save: async (key, secret) => {
      const [fs, path] = await files();
      await fs.mkdir(directory, { recursive: true, mode: 0o700 });
      const target = path.join(directory, nameOf(key));
      const temporary = `${target}.${crypto.randomUUID()}.tmp`;
      try {
        const file = await fs.open(temporary, "wx", 0o600);
        try {
          await file.writeFile(JSON.stringify({ key, secret } satisfies KeptLogin));
          await file.sync();
        } finally {
          await file.close();
        }
        await fs.rename(temporary, target);
      } catch (cause) {
        await fs.rm(temporary, { force: true });
        throw cause;
      }
    },
    remove: async (key) => {
      const [fs, path] = await files();
      await fs.rm(path.join(directory, nameOf(key)), { force: true });
    },
    list: async () => {
      const [fs] = await files();
      try {
        const names = (await fs.readdir(directory)).filter((name) => name.endsWith(".json"));
        return (await Promise.all(names.map(readFile))).filter((kept) => kept !== undefined);
      } catch (cause) {
        if (isAbsent(cause)) return [];
        throw cause;
      }
    },
  };
};
