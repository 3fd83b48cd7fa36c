/** The error of a tool that is held back. It is exported with the family from `errors.ts`. */
import { type McpErrorClass, tagged } from "../error-class.ts";

const ToolQuarantinedBase: McpErrorClass<
  "ToolQuarantined",
  {
    tool: string;
    server: string;
    change: "changed" | "new" | "unknown";
    /** The parts of the tool that changed. */
    fields: ReadonlyArray<string>;
    reason: string;
  }
> = tagged(
  "ToolQuarantined",
  (f) =>
    `The tool '${f.tool}' of MCP server '${f.server}' is held back and was not called: ${f.reason}. ` +
    (f.change === "unknown"
      ? "Tell the user that the pin store has to be mended; until then, do without the tool."
      : "Do without it, or ask the user to review and approve it (nucleo-mcp pins approve)."),
);
/** The server is pinned, and the tool is not as it was approved; nothing was sent. */
export class ToolQuarantined extends ToolQuarantinedBase {}
