/** Pure: what the HTTP transports must know of a JSON-RPC message. The engine does the real checking. */
import { isRecord } from "../core/artifact/json.ts";
import type {
  JSONRPCErrorResponse,
  JSONRPCMessage,
  JSONRPCNotification,
  JSONRPCRequest,
  JSONRPCResultResponse,
} from "@modelcontextprotocol/sdk/types.js";

export type { JSONRPCMessage, JSONRPCRequest };
export type JSONRPCAnswer = JSONRPCResultResponse | JSONRPCErrorResponse;

export const isRequest = (message: JSONRPCMessage): message is JSONRPCRequest => "method" in message && "id" in message;

export const isInitialize = (message: JSONRPCMessage): message is JSONRPCRequest =>
  isRequest(message) && message.method === "initialize";

export const isNotification = (message: JSONRPCMessage, method: string): message is JSONRPCNotification =>
  "method" in message && !("id" in message) && message.method === method;

const idText = (id: unknown): string | undefined =>
  typeof id === "string" || typeof id === "number" ? String(id) : undefined;

/** The request that a `notifications/cancelled` cancels. */
export const cancelledId = (message: JSONRPCMessage): string | undefined => {
  if (!isNotification(message, "notifications/cancelled")) return undefined;
  return idText(message.params?.["requestId"]);
};

/** The id of the request a message answers. */
export const answeredId = (message: JSONRPCMessage): string | undefined =>
  "method" in message || !("id" in message) ? undefined : idText(message.id);

/** The code of the error a message answers with; servers also send errors that are no objects. */
export const errorCode = (message: JSONRPCMessage): unknown => {
  const error: unknown = "error" in message ? message.error : undefined;
  return isRecord(error) ? error["code"] : undefined;
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

/** The messages of a JSON text, also of a batch (an array); none when it holds none. */
export const parseMessages = (text: string): ReadonlyArray<JSONRPCMessage> => {
  const json = parseJson(text);
  return (Array.isArray(json) ? json : [json]).filter(
    (item): item is JSONRPCMessage & Record<string, unknown> =>
      isRecord(item) && ("method" in item || "result" in item || "error" in item),
  );
};

/** A JSON-RPC error object in a text, with the id it names; `null` when it names none that a request could have. */
export const parseError = (
  text: string,
): { readonly id: string | null; readonly error: JSONRPCErrorResponse["error"] } | undefined => {
  const json = parseJson(text);
  if (!isRecord(json) || json["jsonrpc"] !== "2.0") return undefined;
  const error = json["error"];
  if (!isRecord(error) || typeof error["code"] !== "number" || typeof error["message"] !== "string") return undefined;
  return { id: idText(json["id"]) ?? null, error: error as JSONRPCErrorResponse["error"] };
};

/** True when a serialized message may be sent again: it asks for nothing that could run twice. */
export const isSafe = (text: string): boolean => {
  const json = parseJson(text);
  if (!isRecord(json)) return false;
  if (!("id" in json) || !("method" in json)) return true;
  const method = String(json["method"]);
  return (
    method.endsWith("/list") ||
    [
      "initialize",
      "server/discover",
      "subscriptions/listen",
      "ping",
      "completion/complete",
      "resources/read",
      "prompts/get",
    ].includes(method)
  );
};
