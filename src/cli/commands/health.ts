/** `health`: connects every server and shows the runtime's snapshot. */
import * as Effect from "effect/Effect";
import type { ConnectorHealth, EndpointHealth, HealthSnapshot } from "../../core/health.ts";
import { warnOfFaults } from "../config.ts";
import { exitCodes, serverExitCode, worst } from "../exit-code.ts";
import type { Output } from "../output.ts";
import { type Command, openRuntime, reachAll } from "../session.ts";
import { openServers } from "../stored-logins.ts";

type Row = ReadonlyArray<string>;

/** Columns as wide as their widest cell. */
const table = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => {
  const widths = (rows[0] ?? []).map((_, i) => Math.max(...rows.map((row) => (row[i] ?? "").length)));
  return rows.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join("  ")
      .trimEnd(),
  );
};

const serverRow = (endpoint: EndpointHealth, connectors: ReadonlyArray<ConnectorHealth>): Row => {
  const mine = connectors.filter(({ endpointId }) => endpointId === endpoint.endpointId);
  const tools = mine.reduce((sum, one) => sum + one.tools, 0);
  const error = mine.find((one) => one.error)?.error ?? endpoint.lastError;
  const [reason = ""] = (error?.message ?? "").split("\n");
  return [
    mine.map(({ handle }) => handle).join(", ") || endpoint.server,
    endpoint.state,
    endpoint.transport,
    endpoint.pid === undefined ? "" : `pid ${endpoint.pid}`,
    endpoint.protocolVersion ?? "",
    `${tools} tools`,
    endpoint.state === "ready" ? "" : reason,
  ];
};

const healthText = (health: HealthSnapshot, { style, foreign }: Output): string => {
  const servers = table(health.endpoints.map((endpoint) => serverRow(endpoint, health.connectors)));
  const gates = table(
    health.gates.map(({ name, used, capacity, waiting }) => [name, `${used}/${capacity}`, `${waiting} waiting`]),
  );
  return [style.bold("Servers"), ...servers, "", style.bold("Gates"), ...gates].map(foreign).join("\n");
};

/** Connects all servers side by side; why one failed goes to stderr. */
export const healthCommand: Command<{}> = (_input, session) =>
  Effect.gen(function* () {
    const { output, spinner } = session;
    const config = yield* openServers(session);
    yield* warnOfFaults(config, output);
    const runtime = yield* openRuntime(session);
    const reached = yield* reachAll(runtime, config.servers, spinner);
    const health = yield* runtime.health;
    yield* output.text(healthText(health, output));
    yield* output.document(health);
    const errors = reached.flatMap(({ error }) => (error ? [error] : []));
    for (const error of errors) yield* output.warn(error.message);
    return worst([...(config.faults.length > 0 ? [exitCodes.usage] : []), ...errors.map(serverExitCode)]);
  });
