/** An Effect host: the runtime as a layer, errors by tag, a client borrowed for a scope. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import * as Effect from "effect/Effect";
import { HttpEndpoint, layer, McpRuntime, type McpEndpoint, StdioEndpoint } from "../src/effect.ts";
import { nodeBinary, script } from "./support/servers.ts";

/** A server that wants a credential, on a free port, for as long as the scope. */
const protectedServer = Effect.acquireRelease(
  Effect.callback<ReturnType<typeof createServer>>((resume) => {
    const server = createServer((_request, response) => response.writeHead(401).end());
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)));
  }),
  (server) => Effect.callback<void>((resume) => void server.close(() => resume(Effect.void))),
).pipe(Effect.map((server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`));

/** What the server says of itself, or why it does not. The three errors are gone from the type; others remain. */
const ask = (endpoint: McpEndpoint) =>
  Effect.gen(function* () {
    const runtime = yield* McpRuntime;
    const client = yield* runtime.client(endpoint);
    yield* client.callTool("trigger-long-running-operation", { duration: 1, steps: 1 }, { timeout: "200 millis" });
    return client.serverInfo.name;
  }).pipe(
    Effect.scoped,
    Effect.catchTags({
      CircuitOpen: ({ retryAfter }) => Effect.succeed(`fails fast for ${Math.ceil(retryAfter / 1000)} s`),
      RequestTimeout: ({ method, timeout }) => Effect.succeed(`silent: ${method} got no answer in ${timeout} ms`),
      Unauthorized: ({ reason }) => Effect.succeed(`locked: ${reason}`),
    }),
  );

const program = Effect.gen(function* () {
  const dead = new StdioEndpoint({ name: "dead", command: nodeBinary, args: ["-e", "process.exit(1)"] });
  const slow = new StdioEndpoint({ name: "slow", command: nodeBinary, args: [script("server-everything"), "stdio"] });
  const locked = new HttpEndpoint({ name: "locked", url: yield* protectedServer });
  yield* Effect.ignore(ask(dead)); // ConnectFailed: the first use pays for the attempt, the next ones do not.
  return yield* Effect.forEach([dead, slow, locked], ask, { concurrency: "unbounded" });
});

const answers = await Effect.runPromise(program.pipe(Effect.provide(layer()), Effect.scoped));
for (const answer of answers) console.log(answer);
const expected = ["fails fast for 120 s", "silent: tools/call got no answer in 200 ms", "locked: unauthenticated"];
if (answers.join() !== expected.join()) throw new Error("not the expected answers");
