import { McpError } from "../core/errors.ts";

/** What was asked for cannot be done; the message says why. */
export class UsageError extends McpError {
  readonly _tag = "UsageError";
}
