/** Answers what servers ask of the host: roots, sampling, elicitation. Shared by the eras, which differ in shapes. */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import { isRecord } from "../../core/artifact/json.ts";
import { type Answer, lift } from "../../core/answer.ts";
import type { ClientCapabilities, ElicitResult, HostHandlers, HostRequestContext } from "../../core/contracts.ts";
import { PluginFailed, ProtocolError } from "../../core/errors.ts";
import { type Json } from "./legacy-calls.ts";

const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

/** What is checked on the way; the names are those of both SDKs. */
export type HostShape =
  | "CreateMessageRequest"
  | "CreateMessageResult"
  | "CreateMessageResultWithTools"
  | "ElicitRequest"
  | "ElicitResult"
  | "ListRootsResult";

/** Whether a value has the shape, by the schemas of one era. */
export type Fits = (shape: HostShape, value: unknown) => boolean;

/** The capabilities of a host with these handlers. */
export const capabilitiesOf = ({ roots, sampling, elicitation }: HostHandlers): ClientCapabilities => ({
  ...(roots && { roots: { listChanged: true } }),
  ...(sampling && { sampling: { tools: {} } }),
  ...((elicitation?.form ?? elicitation?.url) && {
    elicitation: { ...(elicitation.form && { form: {} }), ...(elicitation.url && { url: {} }) },
  }),
});

/** An error in the form the SDK's `Protocol` sends: code, message, data. */
const fault = (code: number, message: string, data?: unknown): Error =>
  Object.assign(new Error(message.slice(0, 300)), { code, ...(data !== undefined && { data }) });

/** What a failed handler tells the server: its own code where it chose one. */
const handlerFault = (failure: unknown): Error => {
  const origin = failure instanceof PluginFailed && failure.cause !== undefined ? failure.cause : failure;
  if (origin instanceof ProtocolError) return fault(origin.code, origin.reason, origin.data);
  // The errors of both SDKs carry a JSON-RPC code; those of the platform have text or positive numbers there.
  const { code, data } = origin as { readonly code?: unknown; readonly data?: unknown };
  if (origin instanceof Error && Number.isInteger(code) && (code as number) < 0)
    return fault(code as number, origin.message, data);
  return fault(
    INTERNAL_ERROR,
    `The host could not answer: ${origin instanceof Error ? origin.message : String(origin)}`,
  );
};

const ask = async <A>(
  handler: (context: HostRequestContext) => Answer<A>,
  context: HostRequestContext,
  check: (answer: A) => { readonly shape: HostShape; readonly result: unknown },
  fits: Fits,
): Promise<Json> => {
  // The cancellation may have come in the same breath as the request.
  context.signal.throwIfAborted();
  const exit = await Effect.runPromiseExit(
    lift("host handlers", () => handler(context)),
    { signal: context.signal },
  );
  if (Exit.isFailure(exit)) throw handlerFault(Cause.squash(exit.cause));
  const { shape, result } = check(exit.value);
  if (!fits(shape, result)) throw fault(INTERNAL_ERROR, "The host's answer has the wrong form");
  return result as Json;
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
export const answerHostRequest = async (
  handlers: HostHandlers,
  method: string,
  params: any,
  context: HostRequestContext,
  fits: Fits,
): Promise<Json> => {
  const demand = (shape: HostShape): void => {
    if (!fits(shape, { method, params })) throw fault(INVALID_PARAMS, `Invalid params of ${method}`);
  };
  const { roots, sampling, elicitation } = handlers;
  if (method === "roots/list" && roots)
    return ask(roots, context, (list) => ({ shape: "ListRootsResult", result: { roots: list } }), fits);

  if (method === "sampling/createMessage" && sampling) {
    demand("CreateMessageRequest");
    const shape = params.tools || params.toolChoice ? "CreateMessageResultWithTools" : "CreateMessageResult";
    return ask(
      (context) => sampling(params, context),
      context,
      (result) => ({ shape, result }),
      fits,
    );
  }

  if (method === "elicitation/create" && (elicitation?.form ?? elicitation?.url)) {
    demand("ElicitRequest");
    const shape = "ElicitResult";
    if (params.mode === "url") {
      const { url } = elicitation;
      if (!url) throw fault(INVALID_PARAMS, "This client does not support elicitation by URL");
      return ask(
        (context) => url(params, context),
        context,
        (result) => ({ shape, result }),
        fits,
      );
    }
    const { form } = elicitation;
    if (!form) throw fault(INVALID_PARAMS, "This client does not support elicitation by form");
    return ask(
      (context) => form(params, context),
      context,
      (answer) => ({ shape, result: withDefaults(answer, params.requestedSchema.properties) }),
      fits,
    );
  }
  throw fault(METHOD_NOT_FOUND, "Method not found");
};
