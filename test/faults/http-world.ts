/** Worlds over HTTP: scripted servers on loopback, Streamable HTTP or HTTP+SSE, some behind a login. */
import { AgentSecret, HttpEndpoint } from "../../src/mod.ts";
import { type RecordedRequest, type ScriptedHttp, startOAuth, startScriptedHttp } from "../../src/testing.ts";
import { type HttpFaultProgram, httpPrograms, ssePrograms } from "./http-programs.ts";
import type { FaultTransport, FaultWorld } from "./world.ts";

/**
 * A request answered so was refused and did not run, so it may come again: for want of a
 * token (401, 403), in a session that is over (404, or 400 of servers made after the SDK's
 * samples), in an era that the server has left (404, 405), on another connection (421, which
 * fetch itself does: RFC 9110 section 15.5.20), or elsewhere (redirects).
 */
const refused = (status: number | undefined): boolean =>
  status !== undefined && ((status >= 300 && status < 400) || [400, 401, 403, 404, 405, 421].includes(status));

const markerOf = ({ rpc, status }: RecordedRequest): string | undefined =>
  rpc?.method === "tools/call" && !refused(status) ? String(rpc.params?.arguments?.marker) : undefined;

const startFaulty = async ({ server, oauth, flavor }: HttpFaultProgram) => {
  if (!oauth) {
    const faulty = await startScriptedHttp(server);
    return { servers: [faulty], endpoint: new HttpEndpoint({ name: "faulty", url: faulty.url, flavor }), stop: faulty };
  }
  // A token request is let run to its end, 10 s at most, also when nobody waits for it any more: a
  // refresh token that the server has rotated would be lost. So the issuer is not asked for leaks.
  const world = await startOAuth({ ...oauth, program: server });
  const credential = new AgentSecret({ clientId: "robot", clientSecret: "s3cr3t-of-the-robot" });
  return {
    servers: [world.resource],
    endpoint: new HttpEndpoint({ name: "faulty", url: world.url, flavor, credential }),
    stop: world,
  };
};

const isMcp = ({ path }: RecordedRequest): boolean => !path.startsWith("/.well-known/");

const inWords = ({ method, path, rpc }: RecordedRequest): string =>
  `${method} ${path.split("?", 1)[0]}${rpc?.method ? ` ${rpc.method}` : ""}`;

/** The end of a connection reaches the server a little later than the client that let go. */
const left = async (servers: ReadonlyArray<ScriptedHttp>, neighbour: ScriptedHttp): Promise<ReadonlyArray<string>> => {
  const found = (): ReadonlyArray<string> => [
    ...[...servers, neighbour].flatMap((server) =>
      [...server.inProgress].filter(isMcp).map((one) => `a request, ${inWords(one)}`),
    ),
    // One that nobody spoke in may be unknown to the client, which did not wait for the answer to its handshake.
    ...[...neighbour.sessions]
      .filter((session) => neighbour.requests.some(({ headers }) => headers["mcp-session-id"] === session))
      .map(() => "a session of the neighbour"),
  ];
  const deadline = performance.now() + 1000;
  while (found().length > 0 && performance.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
  return found();
};

const start = async (program: HttpFaultProgram): Promise<FaultWorld> => {
  const { kind, answers, sessions, push, era } = program.server;
  const behaviour = Object.fromEntries(
    Object.entries({ kind, answers, sessions, push, era }).filter(([, value]) => value !== undefined),
  );
  const healthy = await startScriptedHttp(behaviour);
  const { servers, endpoint, stop } = await startFaulty(program);
  return {
    faulty: endpoint,
    neighbour: new HttpEndpoint({
      name: "neighbour",
      url: healthy.url,
      flavor: kind === "sse" ? "sse" : "auto",
      requestTimeout: 10_000,
    }),
    received: () => {
      const counts = new Map<string, number>();
      for (const request of [...servers, healthy].flatMap((server) => server.requests)) {
        const marker = markerOf(request);
        if (marker !== undefined) counts.set(marker, (counts.get(marker) ?? 0) + 1);
      }
      return counts;
    },
    leaks: () => left(servers, healthy),
    stop: async () => {
      await stop[Symbol.asyncDispose]();
      await healthy[Symbol.asyncDispose]();
      // The handles of what was closed go some turns later.
      await new Promise((resolve) => setTimeout(resolve, 20));
    },
  };
};

export const httpFaults: FaultTransport<HttpFaultProgram> = { name: "http", programs: httpPrograms, start };
export const sseFaults: FaultTransport<HttpFaultProgram> = { name: "sse", programs: ssePrograms, start };
