/** Serves the one client that started this process, over its stdin and stdout. */
import type { Clients } from "./serving.ts";

/** Settles when the client has gone: its end of stdin is closed. stdout belongs to the protocol meanwhile. */
export const serveStdio = async (clients: Pick<Clients, "connect">): Promise<void> => {
  const { StdioServerTransport } = await import("@modelcontextprotocol/sdk/server/stdio.js");
  const { stdin } = await import("node:process");
  const served = await clients.connect(new StdioServerTransport());
  const leave = (): void => void served.close().catch(() => {});
  stdin.once("end", leave).once("close", leave).once("error", leave);
  await served.closed;
};
