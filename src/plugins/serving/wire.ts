/** Tools and results as they go to a client: the wire forms of MCP, artifacts with their `artifact_ref`. */
import { Artifact, ListArtifact, wireText } from "../../core/artifact/artifact.ts";
import { isDeep, isRecord, jsonText } from "../../core/artifact/json.ts";
import type { ToolDefinition } from "../../core/catalog.ts";
import { isMcpError, ProtocolError } from "../../core/errors.ts";
import { McpToolResult } from "../../core/results.ts";
import type { HostTool } from "./served-runtime.ts";

export type Wire = Readonly<Record<string, unknown>>;

/** A tool of a list. Clients refuse whole lists for a schema whose type is not `object`. */
export const wireTool = (tool: ToolDefinition | HostTool): Wire => {
  const { name, title, description, inputSchema, outputSchema, annotations } = tool;
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: inputSchema["type"] === "object" ? inputSchema : { ...inputSchema, type: "object" },
    ...(isRecord(outputSchema) && outputSchema["type"] === "object" && { outputSchema }),
    ...(annotations !== undefined && { annotations }),
  };
};

/** A result that says what went wrong, for the model to read. */
export const failure = (error: unknown): Wire => ({
  content: [{ type: "text", text: error instanceof Error ? error.message : String(error) }],
  isError: true,
});

const tooDeep = (): Wire => failure("The tool ran, but its result is nested too deep to be passed on.");

/** The result of an attached server's tool, as the server sent it. */
export const wireResult = ({ raw }: McpToolResult): Wire => {
  const { content, structuredContent, isError, _meta } = raw;
  if (structuredContent !== undefined && isDeep(structuredContent)) return tooDeep();
  return {
    content,
    ...(structuredContent !== undefined && { structuredContent }),
    ...(isError && { isError }),
    ...(_meta !== undefined && { _meta }),
  };
};

const structured = (text: string): Wire => ({
  content: [{ type: "text", text }],
  structuredContent: JSON.parse(text) as unknown,
});

/** What a host's tool answered. An artifact carries its ref as one more string field beside its own. */
export const wireAnswer = (answer: unknown): Wire => {
  if (answer instanceof McpToolResult) return wireResult(answer);
  if (Array.isArray(answer) && answer.length > 0 && answer.every((item) => item instanceof Artifact))
    return wireAnswer(new ListArtifact(answer));
  if (answer instanceof Artifact) return isDeep(answer.toWire()) ? tooDeep() : structured(wireText(answer));
  if (typeof answer === "string") return { content: [{ type: "text", text: answer }] };
  if (answer === undefined || answer === null) return { content: [] };
  if (isDeep(answer)) return tooDeep();
  if (isRecord(answer) && Array.isArray(answer["content"])) return answer;
  const text = jsonText(answer);
  return isRecord(answer) ? structured(text) : { content: [{ type: "text", text }] };
};

/** An error as JSON-RPC sends it. */
export const rpcError = (code: number, message: string, data?: unknown): Error =>
  Object.assign(new Error(message), { code, ...(data !== undefined && { data }) });

/** A parameter that has to be a text. Anything else is refused. */
export const textParam = (value: unknown, what: string): string => {
  if (typeof value === "string") return value;
  throw rpcError(-32602, `Give the ${what}`);
};

/** What a failed call answers: the server's own protocol error as it is, all else as a result that the model reads. */
export const wireFailure = (error: unknown): Wire => {
  if (error instanceof ProtocolError) throw rpcError(error.code, error.reason, error.data);
  return failure(error);
};

/** What a failed request of another kind answers, as JSON-RPC sends it. */
export const wireError = (error: unknown): never => {
  if (error instanceof ProtocolError) throw rpcError(error.code, error.reason, error.data);
  throw isMcpError(error) ? rpcError(-32603, error.message) : error;
};
