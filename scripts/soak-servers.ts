/**
 * The HTTP servers of a soak, in a process of their own, so that their memory is not
 * counted: prints their URLs as one line of JSON, and ends with its stdin.
 */
import { type HttpExchange, startScriptedHttp } from "../src/testing/servers/http.ts";

/** Forgets its sessions, as a restart would, after this many requests. */
const restartEvery = 5000;

const answer = (exchange: HttpExchange): void => {
  const { request, server } = exchange;
  // All is recorded, which is of use in a test of ten requests.
  server.requests.length = 0;
  count += 1;
  if (count % restartEvery === 0) server.restart();
  const { rpc } = request;
  if (rpc?.method !== "tools/call" || rpc.params?.name !== "slow") return exchange.mcp();
  // Answers never: the caller gives up, or the connection is cut.
  if (rpc.params.arguments?.cut) exchange.destroy();
};
let count = 0;

const servers = await Promise.all([
  startScriptedHttp(answer),
  startScriptedHttp(answer, { answers: "sse", push: true }),
  startScriptedHttp(answer, { kind: "sse" }),
]);
const [json, stream, sse] = servers.map(({ url }) => url);
console.log(JSON.stringify({ json, stream, sse }));
process.stdin.on("end", () => process.exit()).resume();
