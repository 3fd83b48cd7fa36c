/** How a polite MCP server answers each request, as its description says. */
import type { Json, ServerDescription } from "./fault-program.ts";

/** A JSON-RPC message of the client. */
export interface Message {
  readonly id?: Json;
  readonly method?: string;
  readonly params?: { readonly [key: string]: any };
}

/** The revision that opens with `server/discover`. */
const MODERN = "2026-07-28";

class Refusal extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** A tool result of one text. */
export const textResult = (value: string): Json => ({ content: [{ type: "text", text: value }] });

/** The answer to a request: a result, or a JSON-RPC error where the server has none. */
export type DefaultAnswer = (message: Message) => Json;

export const defaultAnswers = (server: ServerDescription, era: "legacy" | "modern" = "legacy"): DefaultAnswer => {
  const { resources = [], resourceTemplates = [], prompts = [], instructions } = server;
  const tools = server.tools ?? [
    { name: "echo", description: "Answers its arguments.", inputSchema: { type: "object" } },
  ];
  const own = {
    capabilities: server.capabilities ?? {
      tools: { listChanged: true },
      ...(server.resources || server.resourceTemplates ? { resources: { listChanged: true, subscribe: true } } : {}),
      ...(server.prompts ? { prompts: { listChanged: true } } : {}),
    },
    serverInfo: server.serverInfo ?? { name: "scripted", version: "1.0.0" },
    ...(instructions === undefined ? {} : { instructions }),
  };

  const page = (key: string, items: ReadonlyArray<Json>, cursor: unknown): Json => {
    const size = server.pageSize ?? Math.max(items.length, 1);
    const from = cursor === undefined ? 0 : Number(Buffer.from(String(cursor), "base64url").toString().split(":")[1]);
    if (!Number.isInteger(from) || from < 0 || from > items.length) throw new Refusal(-32602, "Invalid cursor");
    const next = from + size;
    return {
      [key]: items.slice(from, next),
      ...(next < items.length ? { nextCursor: Buffer.from(`${key}:${next}`).toString("base64url") } : {}),
    };
  };

  const opening: Record<string, (params: Readonly<Record<string, any>>) => Json> =
    era === "modern"
      ? { "server/discover": () => ({ supportedVersions: [server.protocolVersion ?? MODERN], ...own }) }
      : {
          initialize: (params) => ({ protocolVersion: server.protocolVersion ?? params["protocolVersion"], ...own }),
          ping: () => ({}),
        };

  const results: typeof opening = {
    ...opening,
    "tools/list": (params) => page("tools", tools, params["cursor"]),
    "tools/call": (params) => textResult(JSON.stringify(params["arguments"] ?? {})),
    "resources/list": (params) => page("resources", resources, params["cursor"]),
    "resources/templates/list": (params) => page("resourceTemplates", resourceTemplates, params["cursor"]),
    "resources/read": (params) => ({ contents: [{ uri: params["uri"], text: String(params["uri"]) }] }),
    "resources/subscribe": () => ({}),
    "resources/unsubscribe": () => ({}),
    "prompts/list": (params) => page("prompts", prompts, params["cursor"]),
    "prompts/get": (params) => ({
      messages: [{ role: "user", content: { type: "text", text: JSON.stringify(params) } }],
    }),
    "completion/complete": () => ({ completion: { values: [] } }),
    "logging/setLevel": () => ({}),
  };

  return ({ id, method = "", params = {} }) => {
    const make = Object.hasOwn(results, method) ? results[method] : undefined;
    try {
      if (!make) throw new Refusal(-32601, `Method not found: ${method}`);
      return { jsonrpc: "2.0", id, result: make(params) };
    } catch (error) {
      const { code, message } = error as Refusal;
      return { jsonrpc: "2.0", id, error: { code, message } };
    }
  };
};
