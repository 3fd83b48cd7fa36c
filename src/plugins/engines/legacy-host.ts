/** What servers ask of the host: roots, sampling, elicitation. What is absent is not advertised. */
import {
  CreateMessageRequestSchema,
  CreateMessageResultSchema,
  CreateMessageResultWithToolsSchema,
  ElicitRequestSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
  McpError as SdkError,
} from "@modelcontextprotocol/sdk/types.js";
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { type Answer, lift } from "../../core/answer.ts";
import type { ClientCapabilities, ElicitResult, HostHandlers, HostRequestContext } from "../../core/contracts.ts";
import { PluginFailed, ProtocolError } from "../../core/errors.ts";
import { isRecord, type Json } from "./legacy-calls.ts";

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

/** The capabilities of a host with these handlers. */
export const capabilitiesOf = ({ roots, sampling, elicitation }: HostHandlers): ClientCapabilities => ({
  ...(roots && { roots: { listChanged: true } }),
  ...(sampling && { sampling: { tools: {} } }),
  ...((elicitation?.form ?? elicitation?.url) && {
    elicitation: { ...(elicitation.form && { form: {} }), ...(elicitation.url && { url: {} }) },
  }),
});

interface Check {
  readonly safeParse: (value: unknown) => { readonly success: boolean };
}

/** An error in the form the SDK's `Protocol` sends: code, message, data. */
const fault = (code: number, message: string, data?: unknown): Error =>
  Object.assign(new Error(message.slice(0, 300)), { code, ...(data !== undefined && { data }) });

/** What a failed handler tells the server: its own code where it chose one. */
const handlerFault = (failure: unknown): Error => {
  const origin = failure instanceof PluginFailed && failure.cause !== undefined ? failure.cause : failure;
  if (origin instanceof SdkError) return fault(origin.code, origin.message, origin.data);
  if (origin instanceof ProtocolError) return fault(origin.code, origin.reason, origin.data);
  return fault(
    INTERNAL_ERROR,
    `The host could not answer: ${origin instanceof Error ? origin.message : String(origin)}`,
  );
};

const ask = async <A>(
  handler: (context: HostRequestContext) => Answer<A>,
  context: HostRequestContext,
  check: (answer: A) => { readonly shape: Check; readonly result: unknown },
): Promise<Json> => {
  // The cancellation may have come in the same breath as the request.
  context.signal.throwIfAborted();
  const exit = await Effect.runPromiseExit(
    lift("host handlers", () => handler(context)),
    { signal: context.signal },
  );
  if (Exit.isFailure(exit)) throw handlerFault(Cause.squash(exit.cause));
  const { shape, result } = check(exit.value);
  if (!shape.safeParse(result).success) throw fault(INTERNAL_ERROR, "The host's answer has the wrong form");
  return result as Json;
};

const demand = (shape: Check, method: string, params: unknown): void => {
  if (!shape.safeParse({ method, params }).success) throw fault(INVALID_PARAMS, `Invalid params of ${method}`);
};

/** Defaults of the form fill what an accepting user left out (elicitation, schema defaults). */
const withDefaults = (answer: ElicitResult, properties: Json): ElicitResult => {
  if (!isRecord(answer) || answer.action !== "accept") return answer;
  const defaults = Object.entries(properties).flatMap(([key, property]) =>
    isRecord(property) && property["default"] !== undefined ? [[key, property["default"]] as const] : [],
  );
  const given = Object.entries(answer.content ?? {}).filter(([, value]) => value !== undefined);
  return { ...answer, content: Object.fromEntries([...defaults, ...given]) as NonNullable<ElicitResult["content"]> };
};

/** Answers one request of the server; rejects with an error that carries its JSON-RPC code. */
export const serveHost = async (
  handlers: HostHandlers,
  method: string,
  params: any,
  context: HostRequestContext,
): Promise<Json> => {
  const { roots, sampling, elicitation } = handlers;
  if (method === "roots/list" && roots)
    return ask(roots, context, (list) => ({ shape: ListRootsResultSchema, result: { roots: list } }));

  if (method === "sampling/createMessage" && sampling) {
    demand(CreateMessageRequestSchema, method, params);
    const shape = params.tools || params.toolChoice ? CreateMessageResultWithToolsSchema : CreateMessageResultSchema;
    return ask(
      (context) => sampling(params, context),
      context,
      (result) => ({ shape, result }),
    );
  }

  if (method === "elicitation/create" && (elicitation?.form ?? elicitation?.url)) {
    demand(ElicitRequestSchema, method, params);
    const shape = ElicitResultSchema;
    if (params.mode === "url") {
      const { url } = elicitation;
      if (!url) throw fault(INVALID_PARAMS, "This client does not support elicitation by URL");
      return ask(
        (context) => url(params, context),
        context,
        (result) => ({ shape, result }),
      );
    }
    const { form } = elicitation;
    if (!form) throw fault(INVALID_PARAMS, "This client does not support elicitation by form");
    return ask(
      (context) => form(params, context),
      context,
      (answer) => ({ shape, result: withDefaults(answer, params.requestedSchema.properties) }),
    );
  }
  throw fault(METHOD_NOT_FOUND, "Method not found");
};
