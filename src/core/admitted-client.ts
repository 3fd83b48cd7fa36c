/** A borrowed client whose work passes admission, as a connector's calls do. */
import type * as Effect from "effect/Effect";
import type { Admission } from "./admission/admission.ts";
import type { LiveClient, McpClient } from "./client.ts";
import type { RequestError } from "./errors.ts";

/** Calls, reads, prompts and completions wait for their grant; listing and pings do not. */
export const admitted = (client: LiveClient, admission: Admission): McpClient => {
  const granted = <A>(work: Effect.Effect<A, RequestError>): Effect.Effect<A, RequestError> =>
    admission.withGrant(client.demand, work);
  return Object.assign(Object.create(client) as LiveClient, {
    callTool: (...args: Parameters<McpClient["callTool"]>) => granted(client.callTool(...args)),
    readResource: (...args: Parameters<McpClient["readResource"]>) => granted(client.readResource(...args)),
    getPrompt: (...args: Parameters<McpClient["getPrompt"]>) => granted(client.getPrompt(...args)),
    complete: (...args: Parameters<McpClient["complete"]>) => granted(client.complete(...args)),
  });
};
