/** Where a running gateway can be found by those who want to join it: one file for each configuration. */
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { digest } from "../core/identity.ts";
import { privateFiles } from "../plugins/stores/private-files.ts";
import { userFolder } from "./user-folders.ts";

/** Holds the token that clients must send; not an option, because all users of a machine can read those. */
export const tokenVariable = "NUCLEO_MCP_GATEWAY_TOKEN";

/** How to reach a gateway. The token is a secret; the file is its owner's alone. */
export interface GatewayRecord {
  readonly pid: number;
  readonly url: string;
  readonly token: string;
}

/** `$XDG_STATE_HOME/nucleo-mcp/gateways`, `~/.local/state/nucleo-mcp/gateways`, on Windows below `%LOCALAPPDATA%`. */
export const gatewayFolder = (): Promise<string> => userFolder("gateways");

/** One name per configuration: a file that changed means another gateway. */
export const recordName = (path: string, text: string): string => digest(`${path}\n${text}`, 16);

export const readRecord = async (file: string): Promise<GatewayRecord | undefined> => {
  const { readFile } = await import("node:fs/promises");
  try {
    const { pid, url, token } = JSON.parse(await readFile(file, "utf8")) as Partial<GatewayRecord>;
    return pid !== undefined && url !== undefined && token !== undefined ? { pid, url, token } : undefined;
  } catch {
    return undefined;
  }
};

/** Whether the process exists. Another one may have got its id since. */
export const isRunning = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (cause) {
    return (cause as { readonly code?: string }).code === "EPERM";
  }
};

/** Whether that very gateway answers: only it knows the token. */
export const answers = async ({ pid, url, token }: GatewayRecord): Promise<boolean> => {
  if (!isRunning(pid)) return false;
  try {
    const headers = { authorization: `Bearer ${token}` };
    const response = await fetch(url, { headers, signal: AbortSignal.timeout(5_000) });
    await response.body?.cancel();
    // Without a session a gateway that accepts the token has this to say.
    return response.status === 400;
  } catch {
    return false;
  }
};

/** Writes the record whole, and removes it with the scope unless another gateway has replaced it. */
export const publishRecord = (file: string, record: GatewayRecord): Effect.Effect<void, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const { basename, dirname } = await import("node:path");
      await privateFiles(dirname(file)).replace(basename(file), JSON.stringify(record), { durable: false });
    }),
    () =>
      Effect.promise(async () => {
        const { rm } = await import("node:fs/promises");
        if ((await readRecord(file))?.token === record.token) await rm(file, { force: true });
      }),
  );
