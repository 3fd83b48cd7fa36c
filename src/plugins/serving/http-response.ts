/** Responses of the gateway: refusals, and bodies whose end is noticed. */

/** A refusal of a request that belongs to no session yet. */
export const refusal = (
  status: number,
  message: string,
  headers: Readonly<Record<string, string>> = {},
  code = -32000,
): Response => Response.json({ jsonrpc: "2.0", error: { code, message }, id: null }, { status, headers });

/**
 * The response, with one call when its body ended: read to the end, or given up by the
 * reader; before it, one with the first piece of the body. `greeting` comes before that.
 */
export const watched = (
  response: Response,
  onEnd: (givenUp: boolean) => void,
  onStart?: (first: Uint8Array) => void,
  greeting?: string,
): Response => {
  let ended = false;
  let started = false;
  const end = (givenUp: boolean): void => {
    // Giving up also ends the read that is under way.
    if (!ended) onEnd(givenUp);
    ended = true;
  };
  if (response.body === null) {
    end(false);
    return response;
  }
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start: (controller) => {
      if (greeting !== undefined) controller.enqueue(new TextEncoder().encode(greeting));
    },
    pull: async (controller) => {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        end(true);
        throw cause;
      });
      if (value && !started) onStart?.(value as Uint8Array);
      started ||= value !== undefined;
      if (value) controller.enqueue(value as Uint8Array<ArrayBuffer>);
      if (!done) return;
      end(false);
      controller.close();
    },
    cancel: async (reason) => {
      end(true);
      await reader.cancel(reason);
    },
  });
  return new Response(body, response);
};
