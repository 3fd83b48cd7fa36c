/** Pure: tools that are held back until somebody approves them, and how that is said. */
import { ToolQuarantined } from "../errors.ts";
import type { PinnedDefinition } from "./fingerprint.ts";

/** A tool of a pinned server that is not as it was approved. */
export interface QuarantinedTool {
  /** The server's own name of the tool. */
  readonly tool: string;
  /** `changed` or `new` since the approval; `unknown`: what was approved could not be read. */
  readonly change: "changed" | "new" | "unknown";
  /** The parts that differ, where it changed: `description`, `inputSchema` and so on. */
  readonly fields: ReadonlyArray<string>;
  /** SHA-256 of what is offered now, hex. */
  readonly digest: string;
  readonly approved: PinnedDefinition | undefined;
  readonly offered: PinnedDefinition;
}

const listOf = (words: ReadonlyArray<string>): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

const reasons: Readonly<Record<QuarantinedTool["change"], (fields: ReadonlyArray<string>) => string>> = {
  changed: (fields) => `its ${listOf(fields)} changed since it was approved`,
  new: () => "it is new since the server's tools were approved",
  unknown: () => "what was approved of this server could not be read from the pin store",
};

/** The reason for people, with the fix. Says which parts changed, not to what. */
export const quarantineReason = ({ tool, change, fields }: QuarantinedTool): string => {
  const fix =
    change === "unknown"
      ? "mend the store"
      : `review it, then approve it: connector.approve(${JSON.stringify(tool)}), or nucleo-mcp pins approve`;
  return `${reasons[change](fields)}; ${fix}`;
};

/** What a call of it fails with; `name` is the tool as the caller called it. */
export const quarantineError = (name: string, server: string, tool: QuarantinedTool): ToolQuarantined => {
  const { change, fields } = tool;
  return new ToolQuarantined({ tool: name, server, change, fields, reason: reasons[change](fields) });
};
