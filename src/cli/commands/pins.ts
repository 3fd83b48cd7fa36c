/** `pins list|approve`: which tools of pinned servers are approved, and the review of those that changed. */
import * as Effect from "effect/Effect";
import { type McpError, ToolNotFound } from "../../core/errors.ts";
import type { QuarantinedTool } from "../../core/pinning/quarantine.ts";
import { pinKey } from "../../core/pinning/tool-shelf.ts";
import type { KeptPins } from "../../plugins/stores/file-pins.ts";
import { attempt } from "../attempt.ts";
import { pickServer } from "../config.ts";
import { exitCodes } from "../exit-code.ts";
import type { Output } from "../output.ts";
import { type Command, openRuntime, reach } from "../session.ts";
import { openServers } from "../stored-logins.ts";
import { type ChangeLine, changeLines, markOf, visible } from "../tool-changes.ts";
import { UsageError } from "../usage-error.ts";
import { userPins } from "../user-folders.ts";

const iso = (at: number): string => new Date(at).toISOString();

/** Approvals of one server. */
interface Approvals {
  readonly server: string;
  /** Whether the configuration has the server, and `"pin": true` in it. */
  readonly pinned: boolean;
  readonly pins: KeptPins["pins"];
}

const approvalsText = ({ server, pinned, pins }: Approvals, { style, foreign }: Output): string => {
  const state = pinned ? "" : style.dim(" (not pinned in the configuration)");
  const tools = pins.map(
    ({ tool, digest, approvedAt }) =>
      `\n  ${foreign(visible(tool))} ${style.dim(`${digest.slice(0, 12)} ${iso(approvedAt)}`)}`,
  );
  return `${style.bold(foreign(server))}${state}: ${pins.length === 0 ? "nothing approved yet" : tools.join("")}`;
};

const handleIn = (key: string): string => {
  try {
    return String((JSON.parse(key) as ReadonlyArray<unknown>)[0]);
  } catch {
    return key;
  }
};

/** Shows what is approved; asks no server. */
export const listPinsCommand: Command<{ readonly server: string | undefined }> = (input, session) =>
  Effect.gen(function* () {
    const { output } = session;
    const config = yield* openServers(session);
    const wanted = input.server === undefined ? config.servers : [yield* pickServer(config, input.server)];
    const kept = yield* attempt("pinStore", async () => (await userPins()).list());
    const keys = new Set(config.servers.map(({ handle, endpoint }) => pinKey(handle, endpoint)));
    const own = wanted.flatMap(({ handle, endpoint, pin }): ReadonlyArray<Approvals> => {
      const pins = kept.find(({ key }) => key === pinKey(handle, endpoint))?.pins ?? [];
      return pin || pins.length > 0 ? [{ server: handle, pinned: pin === true, pins }] : [];
    });
    const others = kept.filter(({ key }) => input.server === undefined && !keys.has(key));
    const shown = [...own, ...others.map(({ key, pins }) => ({ server: handleIn(key), pinned: false, pins }))];
    if (shown.length > 0) yield* output.text(shown.map((one) => approvalsText(one, output)).join("\n"));
    else yield* output.note(`No server of ${config.source} is pinned; put "pin": true into its entry.`);
    yield* output.document({
      servers: shown.map(({ server, pinned, pins }) => ({
        server,
        pinned,
        tools: pins.map(({ tool, digest, approvedAt }) => ({ tool, digest, approvedAt: iso(approvedAt) })),
      })),
    });
    return exitCodes.fine;
  });

const lineText = ({ kind, text }: ChangeLine, { style, foreign }: Output): string => {
  const shown = foreign(text);
  if (kind === "field") return `  ${shown}:`;
  if (kind === "removed") return style.red(`  - ${shown}`);
  return kind === "added" ? style.green(`  + ${shown}`) : style.dim(`    ${shown}`);
};

const toolText = (tool: QuarantinedTool, output: Output): string => {
  const heading = `${output.style.bold(output.foreign(visible(tool.tool)))} (${tool.change})`;
  return [heading, ...changeLines(tool).map((line) => lineText(line, output))].join("\n");
};

const word = (text: string): string => (/^[\w.-]+$/.test(text) ? text : JSON.stringify(text));

export interface ApprovePinsInput {
  readonly server: string;
  /** Only this tool. */
  readonly tool: string | undefined;
  /** What a review printed: the changes it stands for, and no others, are approved. */
  readonly yes: string | undefined;
}

/** Shows what is held back; with the mark of what was shown, approves exactly that. */
export const approvePinsCommand: Command<ApprovePinsInput> = (input, session) =>
  Effect.gen(function* () {
    const { output, spinner } = session;
    const server = yield* pickServer(yield* openServers(session), input.server);
    const { handle } = server;
    if (!server.pin)
      return yield* new UsageError({ message: `'${handle}' is not pinned; put "pin": true into its entry.` });
    const runtime = yield* openRuntime(session);
    const { connector, tools, error } = yield* spinner.during(`connecting to ${handle}`, reach(runtime, server));
    if (error) return yield* error;
    const all = connector!.quarantine;
    const held = input.tool === undefined ? all : all.filter(({ tool }) => tool === input.tool);
    const known = tools.some(({ tool }) => tool === input.tool);
    if (input.tool !== undefined && held.length === 0 && !known)
      return yield* new ToolNotFound({ tool: input.tool, similar: all.map(({ tool }) => tool).slice(0, 5) });

    if (held.length === 0) {
      yield* output.text(`Nothing of '${handle}' is held back: what it offers is as it was approved.`);
      yield* output.document({ server: handle, held: [], approved: [] });
      return exitCodes.fine;
    }
    const mark = markOf(held);
    if (input.yes === mark) {
      const approved: Array<string> = [];
      // Each as it was shown: what changes meanwhile stays held back.
      for (const tool of held)
        approved.push(...(yield* connector!.approve(tool) as Effect.Effect<ReadonlyArray<string>, McpError>));
      yield* output.text(
        `Approved of '${handle}': ${approved.map((tool) => output.foreign(visible(tool))).join(", ")}.`,
      );
      yield* output.document({ server: handle, held: [], approved });
      return exitCodes.fine;
    }
    yield* output.text(held.map((tool) => toolText(tool, output)).join("\n"));
    yield* output.document({ server: handle, held, mark, approved: [] });
    if (input.yes !== undefined)
      yield* output.warn(`'${input.yes}' stands for other changes than these; nothing is approved.`);
    const command = ["nucleo-mcp pins approve", word(handle), ...(input.tool === undefined ? [] : [word(input.tool)])];
    yield* output.note(`To approve exactly this: ${command.join(" ")} --yes ${mark}`);
    return input.yes === undefined ? exitCodes.tool : exitCodes.usage;
  });
