/** Valid messages of every kind a server can send, and mutations of them. */
import * as fc from "fast-check";
import { mutationOf } from "./mutate.ts";
import { type Json, oddValue } from "./odd-values.ts";

/** Stands for the id of the request that waits for its answer. */
export const ownId = "@id";
const subscriptionId = "io.modelcontextprotocol/subscriptionId";

const capabilities = {
  tools: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {},
};
const serverInfo = { name: "fuzz", version: "1.0.0", title: "Fuzz" };
const schema = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  properties: { q: { $ref: "#/$defs/q" }, n: { type: ["integer", "null"], "x-mcp-header": "n" } },
  required: ["q"],
  $defs: { q: { type: "string", enum: ["a", "b"] } },
};
const content = [
  { type: "text", text: '{"a":[1,2,{"b":null}]}' },
  { type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" },
  { type: "audio", data: "AAAA", mimeType: "audio/wav" },
  { type: "resource", resource: { uri: "file:///a", mimeType: "text/plain", text: "x" } },
  { type: "resource", resource: { uri: "file:///b", blob: "AAAA" } },
  { type: "resource_link", uri: "file:///c", name: "c" },
];
const sampling = {
  messages: [{ role: "user", content: { type: "text", text: "hi" } }],
  maxTokens: 10,
  modelPreferences: { hints: [{ name: "x" }], costPriority: 0.5 },
};
const form = {
  mode: "form",
  message: "who?",
  requestedSchema: {
    type: "object",
    properties: { name: { type: "string", default: "x" }, age: { type: "integer", minimum: 0 } },
    required: ["name"],
  },
};
const url = { mode: "url", message: "go", url: "https://example.com/", elicitationId: "e1" };

/** Results by the method they answer. */
export const results: Readonly<Record<string, ReadonlyArray<unknown>>> = {
  initialize: [{ protocolVersion: "2025-11-25", capabilities, serverInfo, instructions: "Hi." }],
  "server/discover": [
    {
      resultType: "complete",
      supportedVersions: ["2026-07-28"],
      capabilities,
      serverInfo,
      instructions: "Hi.",
      _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
    },
  ],
  "tools/list": [
    {
      tools: [
        {
          name: "echo",
          title: "Echo",
          description: "Echoes.",
          inputSchema: schema,
          annotations: { readOnlyHint: true },
        },
        { name: "other/tool", inputSchema: { type: "object" }, outputSchema: { type: "object" } },
      ],
      nextCursor: "next",
      ttlMs: 1000,
    },
  ],
  "tools/call": [
    { content },
    { content: content.slice(0, 1), isError: true },
    { content: [], structuredContent: { a: [1, "2", { b: null }] }, _meta: { a: 1 } },
    { structuredContent: { artifact_ref: "artifact:link:cite~a7f3b2", url: "x" }, content: [] },
    { content: [], structuredContent: [{ artifact_ref: "artifact:list~a7f3b2", items: [] }] },
    { toolResult: { old: true } },
  ],
  "prompts/list": [{ prompts: [{ name: "p", arguments: [{ name: "a", required: true }] }] }],
  "prompts/get": [{ description: "d", messages: [{ role: "user", content: content[0] }] }],
  "resources/list": [{ resources: [{ uri: "file:///a", name: "a", size: 1 }], nextCursor: "" }],
  "resources/templates/list": [{ resourceTemplates: [{ uriTemplate: "file:///{a}/{b}", name: "t" }] }],
  "resources/read": [
    {
      contents: [
        { uri: "file:///a", text: "x" },
        { uri: "file:///b", blob: "AAAA" },
      ],
    },
  ],
  "completion/complete": [{ completion: { values: ["a"], total: 1, hasMore: false } }],
  ping: [{}],
};

const inputRequired: ReadonlyArray<unknown> = [
  {
    resultType: "input_required",
    inputRequests: {
      a: { method: "elicitation/create", params: form },
      b: { method: "sampling/createMessage", params: sampling },
      c: { method: "roots/list" },
      d: { method: "elicitation/create", params: url },
    },
    requestState: "state",
  },
  { resultType: "input_required", inputRequests: { a: { method: "elicitation/create", params: form } } },
  { resultType: "input_required", requestState: "state" },
];

const error = (code: number, message: string, data?: unknown): Json => ({
  jsonrpc: "2.0",
  id: ownId,
  error: { code, message, ...(data !== undefined && { data }) },
});

const errors: ReadonlyArray<Json> = [
  error(-32_700, "Parse error"),
  error(-32_600, "Invalid request"),
  error(-32_601, "Method not found"),
  error(-32_602, "Unknown tool", { hint: 1 }),
  error(-32_603, "Internal error"),
  error(-32_002, "Resource not found", { uri: "file:///a" }),
  error(-32_000, "Bad Request: Server not initialized"),
  error(-32_020, "Header mismatch"),
  error(-32_022, "Unsupported protocol version", { supported: ["2026-07-28"], requested: "1" }),
  error(-32_602, "Unsupported protocol version", { supported: ["2025-06-18", "2024-11-05"] }),
  error(-32_042, "URL elicitation required", { elicitations: [url] }),
];

const asked = (id: unknown, method: string, params?: unknown): Json => ({
  jsonrpc: "2.0",
  id,
  method,
  ...(params !== undefined && { params }),
});
const requests: ReadonlyArray<Json> = [
  asked(0, "ping"),
  asked("r", "roots/list"),
  asked(1, "sampling/createMessage", sampling),
  asked(2, "sampling/createMessage", { ...sampling, tools: [{ name: "t", inputSchema: schema }] }),
  asked(3, "elicitation/create", form),
  asked("4", "elicitation/create", url),
  asked(5, "tasks/get", { taskId: "t" }),
  asked(6, "no/such", {}),
];

const told = (method: string, params?: unknown): Json => ({
  jsonrpc: "2.0",
  method,
  ...(params !== undefined && { params }),
});
const notifications: ReadonlyArray<Json> = [
  told("notifications/progress", { progressToken: ownId, progress: 1, total: 2, message: "m" }),
  told("notifications/progress", { progressToken: ownId, progress: 0.5 }),
  told("notifications/cancelled", { requestId: 0, reason: "r" }),
  told("notifications/cancelled", { requestId: ownId }),
  told("notifications/message", { level: "info", logger: "l", data: { a: 1 } }),
  told("notifications/tools/list_changed"),
  told("notifications/prompts/list_changed"),
  told("notifications/resources/list_changed", {}),
  told("notifications/resources/updated", { uri: "file:///a", _meta: { [subscriptionId]: ownId } }),
  told("notifications/subscriptions/acknowledged", {
    _meta: { [subscriptionId]: ownId },
    notifications: { toolsListChanged: true, resourceSubscriptions: ["file:///a"] },
  }),
  told("notifications/elicitation/complete", { elicitationId: "e1" }),
  told("notifications/tasks/status", { taskId: "t", status: "working" }),
];

const answered = (result: unknown): Json => ({ jsonrpc: "2.0", id: ownId, result });

/** Ids that are not the right one, or not quite. */
const odd = fc.oneof(fc.constantFrom<unknown>("@text", "@next", "@fraction", "@null", "@none"), oddValue);

/** A mutated message; one in five gets an odd id instead of its own. */
const withIds = (message: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(message, fc.option(odd, { freq: 4 }))
    .map(([value, id]) =>
      id === null || typeof value !== "object" || value === null || Array.isArray(value) ? value : { ...value, id },
    );

const others = [...errors, ...requests, ...notifications];

/** Any message of a server while a request of `method` waits for its answer. */
export const serverMessage = (method: string): fc.Arbitrary<unknown> => {
  const own = (results[method] ?? results["ping"]!).map(answered);
  const all = Object.values(results).flat().map(answered);
  const one = fc.oneof(
    { weight: 8, arbitrary: withIds(mutationOf(own)) },
    { weight: 3, arbitrary: withIds(mutationOf(inputRequired.map(answered))) },
    { weight: 6, arbitrary: withIds(mutationOf(others)) },
    { weight: 1, arbitrary: withIds(mutationOf(all)) },
    { weight: 1, arbitrary: oddValue },
  );
  return fc.oneof(
    { weight: 40, arbitrary: one },
    { weight: 1, arbitrary: fc.array(one, { maxLength: 5 }) },
    {
      weight: 1,
      arbitrary: fc
        .tuple(fc.constantFrom(...notifications), fc.integer({ min: 2, max: 40 }))
        .map(([m, n]) => Array<unknown>(n).fill(m)),
    },
  );
};

const idOf = (given: unknown, id: number): unknown =>
  given === ownId
    ? id
    : given === "@text"
      ? String(id)
      : given === "@next"
        ? id + 1
        : given === "@fraction"
          ? id + 0.5
          : given === "@null"
            ? null
            : given === "@none"
              ? undefined
              : given;

const isObject = (value: unknown): value is Json =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** Puts the id of the waiting request where a message stands for it. */
export const addressed = (message: unknown, id: number): unknown => {
  if (Array.isArray(message)) return message.map((item) => (Array.isArray(item) ? item : addressed(item, id)));
  if (!isObject(message)) return message;
  const copy: Record<string, unknown> = Object.fromEntries(Object.entries(message));
  if (Object.hasOwn(copy, "id")) {
    copy["id"] = idOf(copy["id"], id);
    if (copy["id"] === undefined) delete copy["id"];
  }
  const params = copy["params"];
  if (isObject(params)) {
    const next = Object.fromEntries(Object.entries(params).map(([key, value]) => [key, value === ownId ? id : value]));
    const meta = next["_meta"];
    if (isObject(meta) && meta[subscriptionId] === ownId) next["_meta"] = { ...meta, [subscriptionId]: String(id) };
    copy["params"] = next;
  }
  return copy;
};

/** How many messages arrive. */
export const countOf = (message: unknown): number => (Array.isArray(message) ? Math.max(1, message.length) : 1);
