/** `doctor`: checks every server on its own, says what is wrong and how to mend it. */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type { ToolDefinition } from "../../core/catalog.ts";
import type { McpError } from "../../core/errors.ts";
import type { McpRuntime } from "../../core/runtime.ts";
import type { LoadedEndpoint } from "../../plugins/endpoints/mcp-json.ts";
import { exitCodes, serverExitCode, worst } from "../exit-code.ts";
import { errorDocument, type Output } from "../output.ts";
import { type Command, openRuntime, reach } from "../session.ts";
import { anthropic } from "../../plugins/schemas/anthropic.ts";
import type { SchemaDialect } from "../../plugins/schemas/dialect.ts";
import { gemini } from "../../plugins/schemas/gemini.ts";
import { openaiStrict } from "../../plugins/schemas/openai-strict.ts";
import { openai } from "../../plugins/schemas/openai.ts";
import { adviseLogin, openServers } from "../stored-logins.ts";

const dialects: ReadonlyArray<SchemaDialect> = [anthropic, openai, openaiStrict, gemini];

export interface DoctorInput {
  /** Also say what this model provider makes of the tools' schemas. */
  readonly dialect: string | undefined;
}

/** How far a server came: the check that failed, or the last one. */
type Step = "config" | "connect" | "list" | "tools" | "schemas";

interface Finding {
  readonly server: string | undefined;
  readonly step: Step;
  readonly state: "fine" | "warning" | "failed";
  readonly message: string;
  readonly error?: McpError | undefined;
}

const failed = (server: string | undefined, step: Step, error: McpError): Finding => ({
  server,
  step,
  state: "failed",
  message: error.message,
  error,
});

/** What a model provider would say of the tools' schemas: taken as they are, rewritten by its dialect, or hopeless. */
const schemaFindings = (
  server: string,
  dialect: SchemaDialect,
  tools: ReadonlyArray<Pick<ToolDefinition, "tool" | "inputSchema">>,
): ReadonlyArray<Finding> => {
  const refused = tools.filter(({ inputSchema }) => dialect.accepts(inputSchema).length > 0);
  const hopeless = refused.flatMap(({ tool, inputSchema }): ReadonlyArray<Finding> => {
    try {
      dialect.normalize(inputSchema, { name: tool });
      return [];
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      return [
        { server, step: "schemas", state: "warning", message: `tool '${tool}' has no ${dialect.name} form: ${reason}` },
      ];
    }
  });
  const asTheyAre = tools.length - refused.length;
  const message = `${dialect.name} takes ${asTheyAre} of ${tools.length} tools as they are; its dialect rewrites ${refused.length - hopeless.length}`;
  return [{ server, step: "schemas", state: "fine", message }, ...hopeless];
};

/** Connects, so that a failure names its phase; then lists, and names each tool that is left out. */
const check = (
  runtime: McpRuntime,
  server: LoadedEndpoint,
  dialect: SchemaDialect | undefined,
): Effect.Effect<ReadonlyArray<Finding>> =>
  Effect.gen(function* () {
    const { handle, endpoint } = server;
    const startedAt = yield* Clock.currentTimeMillis;
    const client = yield* runtime.client(endpoint);
    const took = (yield* Clock.currentTimeMillis) - startedAt;
    const { name, version } = client.serverInfo;
    const { connector, tools, error } = yield* reach(runtime, server);
    if (error) return [failed(handle, "list", error)];
    const message = `${name} ${version}, protocol ${client.protocolVersion}, ${tools.length} tools, connected in ${took} ms`;
    const skipped = (connector?.skipped ?? []).map(({ tool, reason }): Finding => ({
      server: handle,
      step: "tools",
      state: "warning",
      message: connector?.quarantine.some((held) => held.tool === tool)
        ? `tool '${tool}' is held back: ${reason}.`
        : `tool '${tool}' is left out: ${reason}. Mend it in the server.`,
    }));
    const schemas = dialect ? schemaFindings(handle, dialect, tools) : [];
    return [{ server: handle, step: "tools" as const, state: "fine" as const, message }, ...skipped, ...schemas];
  }).pipe(
    Effect.scoped,
    Effect.catch((error) => Effect.succeed([failed(server.handle, "connect", adviseLogin(server, error))])),
  );

const findingText = (finding: Finding, { style, foreign }: Output): string => {
  const mark = { fine: style.green("ok  "), warning: style.yellow("warn"), failed: style.red("FAIL") }[finding.state];
  const who = finding.server === undefined ? "" : `${style.bold(foreign(finding.server))} `;
  return `${mark} ${who}${style.dim(`[${finding.step}]`)} ${foreign(finding.message).replaceAll("\n", "\n     ")}`;
};

const codeOf = ({ state, step, error }: Finding): number => {
  if (state === "fine") return exitCodes.fine;
  if (state === "warning") return exitCodes.tool;
  return step === "config" ? exitCodes.usage : serverExitCode(error);
};

/** Checks configuration, start, handshake and listing of all servers side by side. */
export const doctorCommand: Command<DoctorInput> = (input, session) =>
  Effect.gen(function* () {
    const dialect = dialects.find(({ name }) => name === input.dialect);
    const { output, spinner } = session;
    const config = yield* openServers(session);
    const runtime = yield* openRuntime(session);
    const pending = new Set(config.servers.map(({ handle }) => handle));
    const one = (server: LoadedEndpoint) =>
      Effect.tap(check(runtime, server, dialect), () => Effect.sync(() => pending.delete(server.handle)));
    const checked = yield* spinner.during(
      () => `checking ${[...pending].join(", ")}`,
      Effect.forEach(config.servers, one, { concurrency: "unbounded" }),
    );
    const findings = [...config.faults.map(({ handle, error }) => failed(handle, "config", error)), ...checked.flat()];
    const bad = findings.filter(({ state }) => state !== "fine").length;
    const verdict = bad === 0 ? "Everything is fine." : `${bad} of ${findings.length} findings need mending.`;
    const disabled = config.disabled.map((name) => `${name} is disabled.`);
    yield* output.text([...findings.map((finding) => findingText(finding, output)), ...disabled, verdict].join("\n"));
    yield* output.document({
      config: config.source,
      fine: bad === 0,
      findings: findings.map(({ error, ...rest }) => ({ ...rest, ...(error && { error: errorDocument(error) }) })),
      disabled: config.disabled,
    });
    return worst(findings.map(codeOf));
  });
