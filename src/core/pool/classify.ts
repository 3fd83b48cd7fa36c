/** Pure: what an error says about the endpoint. */
import type { AcquireError, McpError } from "../errors.ts";

/**
 * Whether a failed connect is the endpoint's fault, and so opens its circuit.
 * Faults the caller made or can mend at once (bad arguments, refused credentials,
 * cancellation, no room) do not, nor those of an authorization server: it pauses by itself.
 */
export const blamesEndpoint = (error: McpError): boolean => {
  switch ((error as AcquireError)._tag) {
    case "InvalidEndpoint":
    case "Unauthorized":
    case "InsufficientScope":
    case "AuthorizationDiscoveryFailed":
    case "TokenEndpointFailed":
    case "Cancelled":
    case "RuntimeClosed":
    case "Overloaded":
    case "CircuitOpen":
      return false;
    default:
      return true;
  }
};
