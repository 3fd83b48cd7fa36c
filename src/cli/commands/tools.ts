/** `tools [server]`: what the servers offer. */
import * as Effect from "effect/Effect";
import type { Provider } from "../../core/provider.ts";
import { pickServer, warnOfFaults } from "../config.ts";
import { exitCodes, serverExitCode, worst } from "../exit-code.ts";
import { errorDocument, type Output } from "../output.ts";
import { type Command, openRuntime, type Reached, reachAll } from "../session.ts";
import { openServers } from "../stored-logins.ts";

type Schema = Readonly<Record<string, any>>;

/** `path=<string>` for each argument that the schema requires. */
const requiredArguments = ({ inputSchema }: Provider): ReadonlyArray<string> => {
  const { properties, required } = inputSchema as Schema;
  const names: ReadonlyArray<unknown> = Array.isArray(required) ? required : [];
  return names.map((name) => {
    const type: unknown = properties?.[String(name)]?.type;
    return `${String(name)}=<${typeof type === "string" ? type : "value"}>`;
  });
};

const firstLine = (text: string): string =>
  text
    .trim()
    .split(/\r\n|\r|\n/)[0]!
    .trim();

/** No line is wider than the terminal, nor than is pleasant to read. */
const shorten = (text: string, columns = 100): string => {
  const characters = [...text];
  const room = Math.min(columns, 100);
  return characters.length <= room ? text : `${characters.slice(0, room - 1).join("")}…`;
};

const toolLines = (provider: Provider, output: Output): ReadonlyArray<string> => {
  const { style, foreign, columns } = output;
  const required = requiredArguments(provider).map((argument) => style.dim(foreign(argument)));
  const about = firstLine(provider.description ?? provider.title ?? "");
  return [
    ["  " + style.bold(foreign(provider.tool)), ...required].join(" "),
    ...(about === "" ? [] : [shorten(`      ${foreign(about)}`, columns)]),
  ];
};

const serverLines = ({ handle, tools }: Reached, output: Output): string => {
  const count = tools.length === 1 ? "1 tool" : `${tools.length} tools`;
  const heading = `${output.style.green(output.style.bold(handle))} ${output.style.dim(`(${count})`)}`;
  return [heading, ...tools.flatMap((provider) => toolLines(provider, output))].join("\n");
};

const toolDocument = ({ handle, tool, name, title, description, inputSchema, raw }: Provider) => ({
  server: handle,
  name: tool,
  exposedName: name,
  title,
  description,
  inputSchema,
  outputSchema: raw.outputSchema,
  annotations: raw.annotations,
});

/** Lists the tools of one server, or of all; a server that fails hides no other. */
export const toolsCommand: Command<{ readonly server: string | undefined }> = ({ server }, session) =>
  Effect.gen(function* () {
    const { output, spinner } = session;
    const config = yield* openServers(session);
    const wanted = server === undefined ? config.servers : [yield* pickServer(config, server)];
    const faults = server === undefined ? config.faults : [];
    if (server === undefined) yield* warnOfFaults(config, output);

    const runtime = yield* openRuntime(session);
    const reached = yield* reachAll(runtime, wanted, spinner);
    const failed = reached.flatMap(({ handle, error }) => (error ? [{ server: handle, error }] : []));
    const skipped = reached.flatMap(({ handle, connector }) =>
      (connector?.skipped ?? []).map((tool) => ({ server: handle, ...tool })),
    );
    const listed = reached.filter(({ error }) => error === undefined);
    if (listed.length > 0) yield* output.text(listed.map((one) => serverLines(one, output)).join("\n\n"));
    for (const one of skipped) yield* output.warn(`${one.server}: tool '${one.tool}' is left out: ${one.reason}`);
    for (const one of failed) yield* output.warn(one.error.message);
    if (reached.length === 0 && faults.length === 0) yield* output.note(`${config.source} has no servers.`);
    yield* output.document({
      tools: reached.flatMap(({ tools }) => tools.map(toolDocument)),
      skipped,
      errors: [
        ...faults.map(({ handle, error }) => ({ server: handle, ...errorDocument(error) })),
        ...failed.map((one) => ({ server: one.server, ...errorDocument(one.error) })),
      ],
    });
    return worst([
      ...(faults.length > 0 ? [exitCodes.usage] : []),
      ...failed.map(({ error }) => serverExitCode(error)),
    ]);
  });
