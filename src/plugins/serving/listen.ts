/** Listens with the runtime's own HTTP server: `Deno.serve`, `Bun.serve`, or a thin bridge over node:http. */
import { InvalidConfig } from "../../core/errors.ts";

export interface ListenOptions {
  /** Default `127.0.0.1`. */
  readonly hostname?: string | undefined;
  /** Default 0: a free one. */
  readonly port?: number | undefined;
}

export interface Listening {
  readonly hostname: string;
  readonly port: number;
  /** Takes no more connections and drops the open ones. */
  readonly close: () => Promise<void>;
}

type Handler = (request: Request) => Promise<Response>;
type Address = Required<{ readonly [K in keyof ListenOptions]: NonNullable<ListenOptions[K]> }>;

/** As much of the other runtimes as is used here. */
interface Globals {
  readonly Deno?: {
    readonly serve: (
      options: Address & { readonly onListen: () => void; readonly signal: AbortSignal },
      handler: Handler,
    ) => { readonly addr: { readonly port: number }; readonly finished: Promise<void> };
  };
  readonly Bun?: {
    readonly serve: (options: Address & { readonly fetch: Handler; readonly idleTimeout: number }) => {
      readonly port: number;
      readonly stop: (closeActive: boolean) => Promise<void>;
    };
  };
}

const listenNode = async (handler: Handler, { hostname, port }: Address): Promise<Listening> => {
  const { makeNodeListener } = await import("./node-listener.ts");
  return makeNodeListener(handler, hostname, port);
};

/** Settles when connections are taken. Rejects with `InvalidConfig` when the address cannot be used. */
export const listen = async (handler: Handler, options: ListenOptions = {}): Promise<Listening> => {
  const { hostname = "127.0.0.1", port = 0 } = options;
  const { Deno, Bun } = globalThis as Globals;
  try {
    if (Deno) {
      const stop = new AbortController();
      const { addr, finished } = Deno.serve({ hostname, port, onListen: () => {}, signal: stop.signal }, handler);
      return {
        hostname,
        port: addr.port,
        close: () => {
          stop.abort();
          return finished;
        },
      };
    }
    if (Bun) {
      // Its default would end quiet streams after ten seconds.
      const server = Bun.serve({ hostname, port, fetch: handler, idleTimeout: 0 });
      return { hostname, port: server.port, close: () => server.stop(true) };
    }
    return await listenNode(handler, { hostname, port });
  } catch (cause) {
    const reason = `cannot be used: ${cause instanceof Error ? cause.message : String(cause)}`;
    const fix = "Give another address and port.";
    throw new InvalidConfig({ source: "gateway", field: `${hostname}:${port}`, reason, fix }, cause);
  }
};
