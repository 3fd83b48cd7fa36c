/** What holds whatever the servers did. Each check answers the breaks it found, in words. */
import { ConnectionLost, type HealthSnapshot, isMcpError } from "../../src/mod.ts";
import { isConnected, type Recording } from "./callers.ts";
import { type Outcome, slack } from "./outcome.ts";

/** Errors that a caller may get of a faulty server. `PluginFailed` is none: no plugin of a run fails. */
const known = new Set([
  "AuthorizationDiscoveryFailed",
  "Cancelled",
  "CircuitOpen",
  "ConnectFailed",
  "ConnectionLost",
  "HttpFailed",
  "InsufficientScope",
  "InvalidArguments",
  "MessageTooLarge",
  "OutputInvalid",
  "Overloaded",
  "ProtocolError",
  "RequestTimeout",
  "RuntimeClosed",
  "TokenEndpointFailed",
  "ToolNotFound",
  "Unauthorized",
]);
/** A call that failed so was never sent. */
const unsent = new Set([
  "CircuitOpen",
  "ConnectFailed",
  "InvalidArguments",
  "Overloaded",
  "RuntimeClosed",
  "ToolNotFound",
]);
/** How calls may end that the host's own close cut short. */
const cut = new Set(["Cancelled", "ConnectionLost", "RuntimeClosed"]);

const tagOf = (error: unknown): string => (isMcpError(error) ? error._tag : "");
const inWords = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}\n${error.stack ?? ""}`.slice(0, 1500) : String(error);

type Check = (recording: Recording) => ReadonlyArray<string>;

const settles: Check = ({ outcomes }) =>
  outcomes
    .filter(({ state, took, bound, abort }) => state === "pending" || took > (abort ?? bound) + slack)
    .map(({ what, took, bound, abort, state }) => {
      const limit = abort === undefined ? `its bound is ${bound} ms` : `its signal was aborted after ${abort} ms`;
      return `${what}: ${state} after ${Math.round(took)} ms, and ${limit}`;
    });

const isTyped = ({ error, reason }: Outcome): boolean =>
  (reason !== undefined && error === reason) || known.has(tagOf(error));

const failsTyped: Check = ({ outcomes }) =>
  outcomes
    .filter((outcome) => outcome.state === "failed" && !isTyped(outcome))
    .map(({ what, error }) => `${what} failed with ${inWords(error)}`);

const abortsAreKept: Check = ({ outcomes }) =>
  outcomes
    .filter(({ abort, state, error, reason }) => abort === 0 && !(state === "failed" && error === reason))
    .map(({ what, state }) => `${what} was aborted before it began, and yet ${state}`);

const sentOnce: Check = ({ received, load, outcomes }) => {
  const most = load.resend === "annotated" ? 2 : 1;
  const twice = [...received].filter(([, count]) => count > most);
  const never = outcomes.filter(({ state, marker, error, abort }) => {
    if (state !== "failed" || marker === undefined || !received.has(marker)) return false;
    const notSent = error instanceof ConnectionLost && error.outcome === "not-sent";
    return notSent || unsent.has(tagOf(error)) || abort === 0;
  });
  return [
    ...twice.map(([marker, count]) => `the call ${marker} reached the server ${count} times`),
    ...never.map(({ what, error }) => `${what} reached the server, and yet failed with ${inWords(error)}`),
  ];
};

/** The marker that an answer carries; a faulty server's answer may have none. */
const markerIn = (value: unknown): unknown => {
  try {
    return JSON.parse((value as { textContent: string }).textContent).marker;
  } catch {
    return undefined;
  }
};

/** No program answers a call with the arguments of another one. */
const answersItsOwn: Check = ({ outcomes }) =>
  outcomes
    .filter(({ marker, value }) => marker !== undefined && ![undefined, marker].includes(markerIn(value) as string))
    .map(({ what, value }) => `${what} got the answer to the call ${String(markerIn(value))}`);

const sparesNeighbours: Check = ({ outcomes, received }) =>
  outcomes
    .filter(({ to }) => to === "neighbour")
    .flatMap((outcome) => {
      const { what, marker, state, error, closing } = outcome;
      if (state === "answered") {
        if (markerIn(outcome.value) !== marker) return [`${what} got another answer: ${JSON.stringify(outcome.value)}`];
        return received.get(marker!) === 1 ? [] : [`${what} was answered without having reached its server once`];
      }
      return closing && cut.has(tagOf(error)) ? [] : [`${what}: ${state} ${inWords(error)}`];
    });

const gatesInUse = (health: HealthSnapshot | undefined, ...except: ReadonlyArray<string>): ReadonlyArray<string> =>
  (health?.gates ?? [])
    .filter(({ name, used, waiting }) => (used > 0 && !except.includes(name)) || waiting > 0)
    .map(({ name, used, waiting }) => `gate ${name}: ${used} used, ${waiting} waiting`);

const givesBack: Check = ({ rest, closed }) => [
  ...gatesInUse(rest, "mcp:stdio-processes").map((gate) => `when all callers were done, ${gate}`),
  ...gatesInUse(closed).map((gate) => `after the close, ${gate}`),
];

const closes: Check = ({ closed, leaks }) => [
  ...(closed?.state === "closed" ? [] : [`the runtime is ${closed?.state}`]),
  ...(closed?.endpoints ?? [])
    .filter(isConnected)
    .map((endpoint) => `endpoint ${endpoint.server} is still ${endpoint.state}`),
  ...leaks.map((leak) => `still there after the close: ${leak}`),
];

export const invariants: Readonly<Record<string, Check>> = {
  "every promise settles within its bound": settles,
  "every failure is one of our tagged errors, or the caller's own abort reason": failsTyped,
  "what was aborted before it began never begins": abortsAreKept,
  "a tools/call reaches the server at most once, and not at all when its error says so": sentOnce,
  "an answer reaches the call it belongs to": answersItsOwn,
  "a healthy neighbour is untouched": sparesNeighbours,
  "no slot of a gate is lost": givesBack,
  "nothing outlives the runtime": closes,
};

/** All breaks, each with the invariant it breaks. */
export const breaksOf = (recording: Recording): ReadonlyArray<string> =>
  Object.entries(invariants).flatMap(([name, check]) => check(recording).map((found) => `${name}: ${found}`));
