/** Well-formed requests of a client, and what a well-behaved server answers. */
import { type Json } from "./odd-values.ts";
import { results } from "./server-messages.ts";

export type { Json };

const params: Readonly<Record<string, Record<string, unknown>>> = {
  "tools/call": { name: "echo", arguments: { q: "a" } },
  "prompts/get": { name: "p", arguments: {} },
  "resources/read": { uri: "file:///a" },
  "resources/subscribe": { uri: "file:///a" },
  "completion/complete": { ref: { type: "ref/prompt", name: "p" }, argument: { name: "a", value: "" } },
};

export const paramsOf = (method: string): Record<string, unknown> | undefined => params[method];

/** Methods that hosts ask of servers. */
export const methods: ReadonlyArray<string> = [
  "tools/list",
  "tools/call",
  "prompts/list",
  "prompts/get",
  "resources/list",
  "resources/templates/list",
  "resources/read",
  "resources/subscribe",
  "completion/complete",
  "ping",
];

const echoed = { content: [{ type: "text", text: "alive" }] };

export const goodResult = (method: string): unknown => {
  if (method === "tools/call") return echoed;
  if (method === "tools/list") return { tools: [{ name: "echo", inputSchema: { type: "object" } }] };
  return results[method]?.[0] ?? {};
};
