/** Where the command keeps what belongs to the user who runs it. */
import { type FilePinStore, filePinStore } from "../plugins/stores/file-pins.ts";
import { type FileTokenStore, fileTokenStore } from "../plugins/stores/file-tokens.ts";

/** `$XDG_STATE_HOME/nucleo-mcp/<name>`, `~/.local/state/nucleo-mcp/<name>`, on Windows below `%LOCALAPPDATA%`. */
export const userFolder = async (name: string): Promise<string> => {
  const [{ homedir }, { join }] = await Promise.all([import("node:os"), import("node:path")]);
  const { XDG_STATE_HOME, LOCALAPPDATA } = process.env;
  return join(LOCALAPPDATA ?? XDG_STATE_HOME ?? join(homedir(), ".local", "state"), "nucleo-mcp", name);
};

/** Logins. */
export const userTokens = async (): Promise<FileTokenStore> =>
  fileTokenStore({ directory: await userFolder("tokens") });

/** Approvals of tools. */
export const userPins = async (): Promise<FilePinStore> => filePinStore({ directory: await userFolder("pins") });
