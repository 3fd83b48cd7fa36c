/** Local servers as subprocesses, over their stdin and stdout. */
import * as Effect from "effect/Effect";
import type { TransportPlugin } from "../core/contracts.ts";
import type { StdioEndpoint } from "../core/endpoint.ts";

/**
 * Runs an endpoint's command and speaks newline-framed JSON-RPC with it (MCP
 * specification, basic/transports, stdio).
 *
 * The process gets a small part of the host's environment (`inheritedOnPosix`,
 * `inheritedOnWindows`) plus the endpoint's own entries, and a process group of its
 * own. Closing ends its stdin, waits `closeGrace`, sends SIGTERM to the group, waits
 * again, sends SIGKILL; it settles when the whole group is gone.
 *
 * Fails with `ConnectFailed`, phase `spawn`, which says what is wrong with command or cwd.
 */
export const stdioTransport: TransportPlugin<StdioEndpoint> = {
  kind: "stdio",
  subprocess: true,
  gates: ({ name }, settings) => [
    { name: `mcp:${name}`, capacity: settings.stdioEndpointMax },
    { name: "mcp:stdio", capacity: settings.stdioPoolMax },
  ],
  open: (endpoint, context) =>
    Effect.flatMap(
      Effect.promise(() => import("./stdio-process.ts")),
      ({ openProcess }) => openProcess(endpoint, context),
    ),
};
