/** What legacy servers ask of the host, by the schemas of their SDK. */
import {
  CreateMessageRequestSchema,
  CreateMessageResultSchema,
  CreateMessageResultWithToolsSchema,
  ElicitRequestSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
} from "@modelcontextprotocol/sdk/types.js";
import type { HostHandlers, HostRequestContext } from "../../core/contracts.ts";
import { answerHostRequest, capabilitiesOf, type Fits } from "./host-requests.ts";
import type { Json } from "./legacy-calls.ts";

export { capabilitiesOf };

const schemas = {
  CreateMessageRequest: CreateMessageRequestSchema,
  CreateMessageResult: CreateMessageResultSchema,
  CreateMessageResultWithTools: CreateMessageResultWithToolsSchema,
  ElicitRequest: ElicitRequestSchema,
  ElicitResult: ElicitResultSchema,
  ListRootsResult: ListRootsResultSchema,
};

const fits: Fits = (shape, value) => schemas[shape].safeParse(value).success;

/** Answers one request of the server; rejects with an error that carries its JSON-RPC code. */
export const serveHost = (
  handlers: HostHandlers,
  method: string,
  params: unknown,
  context: HostRequestContext,
): Promise<Json> => answerHostRequest(handlers, method, params, context, fits);
