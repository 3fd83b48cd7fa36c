/** Clients of 2026-07-28 in front of gateways: real SDK v2 clients, and plain requests. */
import {
  Client,
  type ClientOptions,
  LOG_LEVEL_META_KEY,
  StreamableHTTPClientTransport,
} from "@modelcontextprotocol/client";

export const revision = "2026-07-28";
export const pinned: ClientOptions = { versionNegotiation: { mode: { pin: revision } } };
export const automatic: ClientOptions = { versionNegotiation: { mode: "auto" } };

export interface ModernAgent extends AsyncDisposable {
  readonly client: Client;
}

/** A client of the SDK v2 over Streamable HTTP, pinned to the revision unless said otherwise. */
export const modernAgent = async (
  url: string,
  options: ClientOptions = {},
  prepare: (client: Client) => void = () => {},
  name = "modern-agent",
): Promise<ModernAgent> => {
  const client = new Client({ name, version: "2.0.0" }, { ...pinned, ...options });
  prepare(client);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return { client, [Symbol.asyncDispose]: () => client.close() };
};

/** What a request says of its client. */
export const envelope = (capabilities: object = {}, more: object = {}): Record<string, unknown> => ({
  "io.modelcontextprotocol/protocolVersion": revision,
  "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": capabilities,
  ...more,
});

export const logLevel = (level: string): Record<string, string> => ({ [LOG_LEVEL_META_KEY]: level });

export const headersOf = (method: string, name?: string): Record<string, string> => ({
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": revision,
  "mcp-method": method,
  ...(name !== undefined && { "mcp-name": name }),
});

/** One request as it is on the wire; the answer is the last message of the response. */
export const post = async (
  url: string,
  method: string,
  params: Record<string, unknown> = {},
  init: RequestInit = {},
): Promise<{ readonly status: number; readonly answer: any }> => {
  const named = params["name"] ?? params["uri"];
  const body = { jsonrpc: "2.0", id: 1, method, params: { _meta: envelope(), ...params } };
  const response = await fetch(url, {
    method: "POST",
    headers: headersOf(method, typeof named === "string" ? named : undefined),
    body: JSON.stringify(body),
    ...init,
  });
  return { status: response.status, answer: lastMessage(await response.text()) };
};

/** A stream of `subscriptions/listen` as it is on the wire; settles when it is acknowledged. */
export const listenTo = async (
  url: string,
  notifications: Record<string, unknown>,
): Promise<{ readonly acknowledged: any; readonly close: () => void }> => {
  const stop = new AbortController();
  const response = await fetch(url, {
    method: "POST",
    headers: headersOf("subscriptions/listen"),
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "subscriptions/listen",
      params: { notifications, _meta: envelope() },
    }),
    signal: stop.signal,
  });
  const reader = response.body!.getReader();
  const { value } = await reader.read();
  reader.read().catch(() => {});
  return { acknowledged: lastMessage(new TextDecoder().decode(value)).params, close: () => stop.abort() };
};

/** The last message of a response, whether it is JSON or an event stream. */
export const lastMessage = (text: string): any => {
  const events = text.split("\n").filter((line) => line.startsWith("data: "));
  const last = events.at(-1)?.slice("data: ".length) ?? text;
  return last === "" ? undefined : JSON.parse(last);
};
