/**
 * A host to be killed: opens the servers that its argument describes, by program or command, prints one line
 * when all answer, and then has nothing more to do than to live.
 */
import * as Effect from "effect/Effect";
import type { StdioProgram } from "./scripted-stdio.ts";
import { scriptedStdio } from "./scripted-stdio.ts";
import { openStdio } from "./stdio-client.ts";

export type HostServer = StdioProgram | { readonly command: string; readonly args: ReadonlyArray<string> };

const servers = JSON.parse(process.argv[2]!) as ReadonlyArray<HostServer>;

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      for (const server of servers) {
        const client = yield* openStdio("command" in server ? server : scriptedStdio(server));
        yield* Effect.promise(() => client.request("ping"));
      }
      process.stdout.write("ready\n");
      return yield* Effect.never;
    }),
  ),
);
