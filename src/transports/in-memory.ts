/** Servers that live in the host's own process, spoken to without a pipe or a socket. */
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { McpTransport, TransportPlugin } from "../core/contracts.ts";
import { type Era, type McpEndpoint, validTimeout } from "../core/endpoint.ts";
import { ConnectFailed, InvalidEndpoint, isMcpError } from "../core/errors.ts";

export interface InMemoryEndpointOptions {
  /** Label. Mandatory. */
  readonly name: string;
  /**
   * Starts a server on its end of the channel, for example
   * `(transport) => makeServer().connect(transport)`. Called for each new
   * connection, so it makes a new server each time. It is also what identifies the
   * endpoint: two endpoints with the same function share one client.
   */
  readonly connect: (transport: Transport) => unknown;
  readonly requestTimeout?: Duration.Input | undefined;
  readonly era?: Era | "auto" | undefined;
}

const numbers = new WeakMap<object, number>();
let lastNumber = 0;
const numberOf = (connect: object): number => {
  const number = numbers.get(connect) ?? ++lastNumber;
  numbers.set(connect, number);
  return number;
};

/** A server embedded in the host's process. Messages are handed over as they are, not copied. */
export class InMemoryEndpoint implements McpEndpoint {
  readonly transportType = "in-memory" as const;
  readonly endpointId: string;
  readonly name: string;
  readonly connect: (transport: Transport) => unknown;
  readonly requestTimeout: Duration.Input | undefined;
  readonly era: Era | "auto" | undefined;

  constructor(options: InMemoryEndpointOptions) {
    this.name = options.name;
    this.connect = options.connect;
    this.requestTimeout = options.requestTimeout;
    this.era = options.era;
    this.endpointId =
      this.validate() === undefined ? `in-memory:${numberOf(this.connect)}` : `${String(options.name)}:invalid`;
  }

  validate(): InvalidEndpoint | undefined {
    if (typeof this.name !== "string" || this.name.trim() === "")
      return new InvalidEndpoint({ field: "name", reason: "is missing", fix: "Give the endpoint a label." });
    if (typeof this.connect !== "function") {
      const fix = "Give a function that starts a server on the transport it receives.";
      return new InvalidEndpoint({ field: "connect", reason: `of '${this.name}' is no function`, fix });
    }
    return validTimeout(this);
  }
}

/** The client's end. The SDK's pair tells an end by the other as well, so more than once. */
const tellOnce = (client: Transport): McpTransport => {
  let closed = false;
  const transport: McpTransport = {
    start: () => {
      Object.assign(client, {
        onmessage: (message) => transport.onmessage?.(message),
        onclose: () => {
          if (closed) return;
          closed = true;
          transport.onclose?.();
        },
      } satisfies Partial<Transport>);
      return client.start();
    },
    send: (message) => client.send(message),
    close: () => client.close(),
  };
  return transport;
};

/** Opens in-memory endpoints on the SDK's linked pair. No gate: the host's own process sets the limit. */
export const inMemoryTransport: TransportPlugin<InMemoryEndpoint> = {
  kind: "in-memory",
  open: (endpoint, { name }) =>
    Effect.gen(function* () {
      const [client, server] = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const { InMemoryTransport } = await import("@modelcontextprotocol/sdk/inMemory.js");
          return InMemoryTransport.createLinkedPair();
        }),
        ([client]) => Effect.promise(() => client.close()),
      );
      yield* Effect.tryPromise({
        try: async () => endpoint.connect(server),
        catch: (cause) => {
          if (isMcpError(cause)) return cause;
          const reason = `its server did not start: ${cause instanceof Error ? cause.message : String(cause)}`;
          const { endpointId } = endpoint;
          return new ConnectFailed({ server: name, endpointId, phase: "transport", reason }, cause);
        },
      });
      return tellOnce(client);
    }),
};
