/**
 * A gateway: serves the tools of all attached servers, and tools of the host, to many
 * MCP clients that share one pool.
 *
 * ```ts
 * import { createGateway } from "nucleo-mcp/serve";
 * import { StdioEndpoint } from "nucleo-mcp";
 *
 * await using gateway = await createGateway();
 * await gateway.runtime.attach("files", new StdioEndpoint({ name: "files", command: "npx", args: ["-y", "server", "."] }));
 * const { url } = await gateway.listen({ port: 7777 });
 * ```
 */
import type { DependencyContainer } from "./core/bridge.ts";
import { createPromiseRuntime, type PromiseRuntime } from "./core/promise.ts";
import type { RuntimeOptions } from "./core/runtime.ts";
import { defaults } from "./defaults.ts";
import { schemaValidator } from "./plugins/schemas/validator.ts";
import { loopbackHosts, makeGuard } from "./plugins/serving/http-guard.ts";
import { type HttpHandler, type HttpOptions, makeHttpHandler } from "./plugins/serving/http-handler.ts";
import { listen, type ListenOptions, type Listening } from "./plugins/serving/listen.ts";
import { withKeptArtifacts, withPagedResults } from "./plugins/serving/paged-results.ts";
import type { ServingOptions } from "./plugins/serving/served-runtime.ts";
import { type Clients, makeServing } from "./plugins/serving/serving.ts";
import { serveStdio } from "./plugins/serving/stdio.ts";

export { Artifact, ListArtifact, typeAlias } from "./core/artifact/artifact.ts";
export type { HttpOptions } from "./plugins/serving/http-handler.ts";
export type { ListenOptions, Listening } from "./plugins/serving/listen.ts";
export type { HostTool, HostToolContext, ServingOptions } from "./plugins/serving/served-runtime.ts";

export interface GatewayOptions extends RuntimeOptions {
  readonly serve?: ServingOptions | undefined;
}

export interface Gateway extends AsyncDisposable {
  /** Attach the servers here. */
  readonly runtime: PromiseRuntime;
  /** Serves one client over any transport of the SDK. */
  readonly connect: Clients["connect"];
  /** A handler for Streamable HTTP, to be mounted in a server of the host's. Throws `InvalidConfig`. */
  readonly http: (options?: HttpOptions) => HttpHandler;
  /** Serves Streamable HTTP. Beyond loopback it needs a token and the allowed host names. Rejects with `InvalidConfig`. */
  readonly listen: (options?: ListenOptions & HttpOptions) => Promise<Listening & { readonly url: string }>;
  /** Serves the client that started this process; settles when it has gone. */
  readonly stdio: () => Promise<void>;
  readonly clients: () => number;
  /** Stops listening, ends the sessions, then the servers. */
  readonly close: () => Promise<void>;
}

/** Builds a runtime that is served. @throws PluginFailed, InvalidConfig as `createRuntime`. */
export const createGateway = async (options: GatewayOptions = {}): Promise<Gateway> => {
  const { serve = {}, ...runtimeOptions } = options;
  const tools = serve.artifacts
    ? withKeptArtifacts(serve.tools ?? [], (made) => runtime.keepArtifact(made))
    : serve.tools;
  const serving = makeServing({ ...serve, tools }, { validator: schemaValidator });
  const setup = (container: DependencyContainer): void => {
    options.setup?.(container);
    serving.install(container);
  };
  const runtime: PromiseRuntime = await createPromiseRuntime({ ...runtimeOptions, setup }, defaults);
  const clients = serving.start(serve.artifacts ? withPagedResults(runtime) : runtime);
  const closers: Array<() => unknown> = [];
  const http = (given: HttpOptions = {}): HttpHandler => {
    const handler = makeHttpHandler(clients, given);
    closers.push(handler.close);
    return handler;
  };
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await clients.close();
    await Promise.all(closers.map((closer) => closer()));
    await runtime.close();
  };
  return {
    runtime,
    connect: clients.connect,
    http,
    listen: async (given = {}) => {
      const { hostname = "127.0.0.1" } = given;
      const name = hostname.includes(":") ? `[${hostname}]` : hostname;
      // An address beyond loopback counts as a host that others reach.
      makeGuard({ token: given.token, allowedHosts: [name] });
      const allowedHosts = given.allowedHosts ?? [...loopbackHosts, name];
      const listening = await listen(http({ ...given, allowedHosts }).fetch, given);
      closers.push(listening.close);
      return { ...listening, url: `http://${name}:${listening.port}${given.path ?? "/mcp"}` };
    },
    stdio: () => serveStdio(clients),
    clients: clients.count,
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
  };
};
