/** A host that answers at once whatever servers ask of it. */
import type { HostHandlers } from "../../src/core/contracts.ts";

export const handlers: HostHandlers = {
  roots: () => [{ uri: "file:///home", name: "home" }],
  sampling: () => ({ role: "assistant", model: "fuzz", content: { type: "text", text: "hi" } }),
  elicitation: {
    form: () => ({ action: "accept", content: { name: "x" } }),
    url: () => ({ action: "accept" }),
  },
};
