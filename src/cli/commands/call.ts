/** `call <server> <tool>`: one tool call. */
import * as Effect from "effect/Effect";
import { type ArgumentIssue, ToolNotFound, type ToolQuarantined } from "../../core/errors.ts";
import { quarantineError } from "../../core/pinning/quarantine.ts";
import type { Provider } from "../../core/provider.ts";
import { modelText } from "../../core/results.ts";
import type { McpJson } from "../../plugins/endpoints/mcp-json.ts";
import { type GivenArguments, readArguments } from "../call-arguments.ts";
import { pickServer } from "../config.ts";
import { exitCodes } from "../exit-code.ts";
import { type Command, openRuntime, reach, type Reached } from "../session.ts";
import { openServers } from "../stored-logins.ts";
import { similarNames } from "../suggestions.ts";
import { UsageError } from "../usage-error.ts";

/** The tool by the server's own name, or by the name that models see. */
const pickTool = (
  { handle, connector, tools }: Reached,
  name: string,
): Effect.Effect<Provider, ToolNotFound | ToolQuarantined | UsageError> => {
  const provider = tools.find(({ tool }) => tool === name) ?? tools.find((one) => one.name === name);
  if (provider) return Effect.succeed(provider);
  const held = connector?.quarantine.find(({ tool }) => tool === name);
  if (held) return Effect.fail(quarantineError(name, handle, held));
  const skipped = connector?.skipped.find(({ tool }) => tool === name);
  if (skipped) return Effect.fail(new UsageError({ message: `The tool '${name}' cannot be used: ${skipped.reason}.` }));
  const names = tools.map(({ tool }) => tool);
  const similar = similarNames(name, names);
  return Effect.fail(new ToolNotFound({ tool: name, similar: similar.length > 0 ? similar : names.slice(0, 5) }));
};

export interface CallInput extends GivenArguments {
  readonly server: string;
  readonly tool: string;
}

/** What is wrong with the words themselves, before any schema. */
const unreadable = (issues: ReadonlyArray<ArgumentIssue>): UsageError => {
  const lines = issues.map(({ pointer, message }) => (pointer ? `'${pointer.slice(1)}' ${message}` : message));
  return new UsageError({ message: `${lines.join("\n")}\nSee nucleo-mcp call --help.` });
};

/** The name that models see, given where the server and the tool are two words. */
const joined = (config: McpJson, server: string): UsageError | undefined => {
  const handles = config.servers.map(({ handle }) => handle);
  const owner = handles.find((handle) => server.startsWith(`${handle}__`) && !handles.includes(server));
  if (owner === undefined) return undefined;
  const tool = server.slice(owner.length + 2);
  return new UsageError({
    message: `Server and tool are two words: nucleo-mcp call ${owner} ${tool}, then arguments.`,
  });
};

/** Calls a tool; its text goes to stdout, a failure that the tool reports to stderr. */
export const callCommand: Command<CallInput> = (input, session) =>
  Effect.gen(function* () {
    const { output, spinner } = session;
    const config = yield* openServers(session);
    const split = joined(config, input.server);
    if (split) return yield* split;
    const server = yield* pickServer(config, input.server);
    const runtime = yield* openRuntime(session);
    const reached = yield* spinner.during(`connecting to ${server.handle}`, reach(runtime, server));
    if (reached.error) return yield* reached.error;
    const provider = yield* pickTool(reached, input.tool);
    const given = readArguments(input, provider.inputSchema);
    if ("issues" in given) return yield* unreadable(given.issues);

    let progress = "";
    const call = runtime.callTool(
      { tool: provider.name, arguments: given.arguments },
      {
        onProgress: ({ progress: done, total, message }) => {
          progress = ` ${done}${total === undefined ? "" : `/${total}`}${message === undefined ? "" : ` ${message}`}`;
        },
      },
    );
    const result = yield* spinner.during(() => `calling ${input.tool}${progress}`, call);
    yield* output.document(result.raw);
    if (result.isError) {
      if (!output.json) yield* output.note(modelText(result));
      return exitCodes.tool;
    }
    yield* output.text(output.foreign(modelText(result)));
    return exitCodes.fine;
  });
