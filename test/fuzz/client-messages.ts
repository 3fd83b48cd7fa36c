/** Valid messages of every kind a client can send to a gateway, of both eras, and mutations of them. */
import * as fc from "fast-check";
import { mutationOf } from "./mutate.ts";
import { type Json, oddValue } from "./odd-values.ts";

const prefix = "io.modelcontextprotocol/";
const envelope = {
  _meta: {
    [`${prefix}protocolVersion`]: "2026-07-28",
    [`${prefix}clientInfo`]: { name: "fuzz", version: "1" },
    [`${prefix}clientCapabilities`]: { sampling: {}, elicitation: { form: {} } },
  },
};

const request = (method: string, params?: Json): Json => ({ jsonrpc: "2.0", id: 7, method, ...(params && { params }) });
const told = (method: string, params?: Json): Json => ({ jsonrpc: "2.0", method, ...(params && { params }) });

const asked: ReadonlyArray<readonly [string, Json]> = [
  ["tools/list", {}],
  ["tools/list", { cursor: "from:0" }],
  ["tools/call", { name: "fuzz__echo", arguments: { q: "a" }, _meta: { progressToken: 1 } }],
  ["tools/call", { name: "own", arguments: { a: 1 } }],
  ["prompts/list", {}],
  ["prompts/get", { name: "fuzz__p", arguments: { a: "1" } }],
  ["resources/list", {}],
  ["resources/templates/list", {}],
  ["resources/read", { uri: "file:///a" }],
  ["resources/subscribe", { uri: "file:///a" }],
  ["resources/unsubscribe", { uri: "file:///a" }],
  ["completion/complete", { ref: { type: "ref/prompt", name: "fuzz__p" }, argument: { name: "a", value: "" } }],
  ["completion/complete", { ref: { type: "ref/resource", uri: "file:///a" }, argument: { name: "a", value: "" } }],
  ["logging/setLevel", { level: "info" }],
  ["ping", {}],
  ["server/discover", {}],
  ["subscriptions/listen", { notifications: { toolsListChanged: true, resourceSubscriptions: ["file:///a"] } }],
  ["tasks/get", { taskId: "t" }],
];

export const initialize: Json = request("initialize", {
  protocolVersion: "2025-11-25",
  capabilities: { sampling: {}, elicitation: { form: {}, url: {} }, roots: { listChanged: true } },
  clientInfo: { name: "fuzz", version: "1" },
});

const legacy: ReadonlyArray<Json> = [
  initialize,
  ...asked.map(([method, params]) => request(method, params)),
  told("notifications/initialized"),
  told("notifications/cancelled", { requestId: 7, reason: "r" }),
  told("notifications/progress", { progressToken: 1, progress: 1 }),
  told("notifications/roots/list_changed"),
  { jsonrpc: "2.0", id: 0, result: { action: "accept", content: {} } },
  { jsonrpc: "2.0", id: 0, error: { code: -1, message: "no" } },
];
const modern: ReadonlyArray<Json> = [
  ...asked.map(([method, params]) => request(method, { ...params, ...envelope })),
  request("tools/call", {
    name: "fuzz__echo",
    arguments: {},
    inputResponses: { a: { action: "accept", content: {} } },
    requestState: "state",
    ...envelope,
  }),
  told("notifications/cancelled", { requestId: 7, ...envelope }),
];

/** Any message of a client; its id is any number, so that few are used twice. */
export const clientMessage: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 30, arbitrary: mutationOf(legacy) },
  { weight: 20, arbitrary: mutationOf(modern) },
  { weight: 1, arbitrary: oddValue },
  { weight: 2, arbitrary: fc.array(mutationOf(legacy), { maxLength: 4 }) },
);
