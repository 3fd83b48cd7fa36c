/** Where the logins of the user who runs the command are kept. */
import { type FileTokenStore, fileTokenStore } from "../plugins/stores/file-tokens.ts";

/** `$XDG_STATE_HOME/nucleo-mcp/tokens`, `~/.local/state/nucleo-mcp/tokens`, on Windows below `%LOCALAPPDATA%`. */
export const defaultTokenDirectory = async (): Promise<string> => {
  const [{ homedir }, { join }] = await Promise.all([import("node:os"), import("node:path")]);
  const { XDG_STATE_HOME, LOCALAPPDATA } = process.env;
  const base = LOCALAPPDATA ?? XDG_STATE_HOME ?? join(homedir(), ".local", "state");
  return join(base, "nucleo-mcp", "tokens");
};

export const userTokens = async (): Promise<FileTokenStore> =>
  fileTokenStore({ directory: await defaultTokenDirectory() });
