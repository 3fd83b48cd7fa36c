/** Pure: what the command's end says to the shell. */

export const exitCodes = {
  fine: 0,
  /** The tool or the server reports an error. */
  tool: 1,
  /** Wrong usage, configuration or arguments; unknown server or tool. */
  usage: 2,
  connection: 3,
  unauthorized: 4,
} as const;

const byTag: Readonly<Record<string, number>> = {
  InvalidConfig: exitCodes.usage,
  InvalidEndpoint: exitCodes.usage,
  InvalidArguments: exitCodes.usage,
  ToolNotFound: exitCodes.usage,
  ToolQuarantined: exitCodes.usage,
  SchemaRejected: exitCodes.usage,
  UsageError: exitCodes.usage,
  ConnectFailed: exitCodes.connection,
  ConnectionLost: exitCodes.connection,
  RequestTimeout: exitCodes.connection,
  HttpFailed: exitCodes.connection,
  MessageTooLarge: exitCodes.connection,
  Overloaded: exitCodes.connection,
  RuntimeClosed: exitCodes.connection,
  Unauthorized: exitCodes.unauthorized,
  InsufficientScope: exitCodes.unauthorized,
  AuthorizationDiscoveryFailed: exitCodes.unauthorized,
  TokenEndpointFailed: exitCodes.unauthorized,
};

export const tagOf = (error: unknown): string =>
  typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : "Error";

/** The exit code of an error; `CircuitOpen` counts as what opened the circuit. */
export const exitCodeOf = (error: unknown): number => {
  if (tagOf(error) !== "CircuitOpen") return byTag[tagOf(error)] ?? exitCodes.tool;
  const { cause } = error as { readonly cause?: unknown };
  return cause === undefined ? exitCodes.connection : serverExitCode(cause);
};

/** The exit code of a server that could not be connected or listed: never just a tool's error. */
export const serverExitCode = (error: unknown): number => {
  const code = exitCodeOf(error);
  return code === exitCodes.tool ? exitCodes.connection : code;
};

/** Of several, the one that tells most. */
export const worst = (codes: ReadonlyArray<number>): number => Math.max(exitCodes.fine, ...codes);
