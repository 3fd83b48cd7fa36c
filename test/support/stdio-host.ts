/**
 * A host to be killed: opens the servers that its argument describes, prints one line
 * when all answer, and then has nothing more to do than to live.
 */
import * as Effect from "effect/Effect";
import type { StdioProgram } from "./scripted-stdio.ts";
import { scriptedStdio } from "./scripted-stdio.ts";
import { openStdio } from "./stdio-client.ts";

const programs = JSON.parse(process.argv[2]!) as ReadonlyArray<StdioProgram>;

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      for (const program of programs) {
        const client = yield* openStdio(scriptedStdio(program));
        yield* Effect.promise(() => client.request("ping"));
      }
      process.stdout.write("ready\n");
      return yield* Effect.never;
    }),
  ),
);
