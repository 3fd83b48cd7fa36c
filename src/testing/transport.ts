/** The contract of `TransportPlugin`: what an engine and the pool rely on. */
import type { McpEndpoint } from "../core/endpoint.ts";
import { isMcpError } from "../core/errors.ts";
import { resolveSettings } from "../core/resolve-settings.ts";
import {
  type ContractSuite,
  demand,
  demandSame,
  eventually,
  rejectionOf,
  runs,
  scoped,
  within,
} from "./contract-case.ts";
import {
  type ContractRequest,
  handshake,
  type Line,
  openIn,
  type TransportContractOptions,
  wire,
} from "./transport-line.ts";

export type { ContractRequest, TransportContractOptions } from "./transport-line.ts";

const texts: Readonly<Record<string, string>> = {
  "no text at all": "",
  "umlauts, ideographs, emoji, joined emoji": "äöü ß – 漢字かな 👩‍👩‍👧‍👦 \u{1F600}",
  "line ends and separators": "a\nb\r\nc\rd\u2028e\u2029f\u0085g",
  "control characters, quotes, backslashes": '\u0000\u0001\u001b[31m "quoted" \\n \\u0041',
  "what looks like framing": 'data: {"jsonrpc":"2.0"}\n\nContent-Length: 3\r\n\r\n',
};

const jsonEcho: NonNullable<TransportContractOptions<McpEndpoint>["echo"]> = {
  request: (text) => ({ method: "tools/call", params: { name: "echo", arguments: { text } } }),
  answer: (result) => JSON.parse(result.content[0].text).text,
};

/** Cases every transport plugin has to pass; they need a real server at the other end. */
export const transportContract = <E extends McpEndpoint>(options: TransportContractOptions<E>): ContractSuite => {
  const { plugin, echo = jsonEcho, largest = 1_000_000, live = () => 0 } = options;

  /** A connection past the handshake; released behind `use`, and then nothing of it may be left. */
  const connected = async (use: (line: Line) => Promise<void>): Promise<void> => {
    const before = await live();
    await scoped(async ({ scope, close }) => {
      const transport = await within("open", runs(openIn(options, await options.endpoint(), scope)));
      const line = wire(transport);
      await within("the handshake", handshake(line));
      await use({ ...line, release: close });
    });
    await eventually("releasing what the other side holds", async () => (await live()) <= before);
  };

  const echoed = async (line: Line, text: string, what = `${text.length} characters`): Promise<void> => {
    const result = await within(`a message of ${what}`, line.request(echo.request(text)));
    const answer = echo.answer(result);
    demand(answer === text, `${what} came back changed: ${JSON.stringify(answer)?.slice(0, 120)}`);
  };

  return [
    {
      name: "names its kind, and gates with a name and a capacity",
      run: async () => {
        const endpoint = await options.endpoint();
        demandSame("kind", plugin.kind, endpoint.transportType);
        const gates = plugin.gates?.(endpoint, await runs(resolveSettings(options.settings))) ?? [];
        for (const { name, capacity } of gates) {
          demand(typeof name === "string" && name !== "", "a gate has no name");
          demand(Number.isInteger(capacity) && capacity > 0, `gate '${name}' has the capacity ${capacity}`);
        }
        demandSame(
          "names of gates",
          [...new Set(gates.map(({ name }) => name))],
          gates.map(({ name }) => name),
        );
      },
    },
    {
      name: "opens, carries a handshake, and leaves nothing when its scope closes",
      run: () => connected(async () => {}),
    },
    {
      name: "delivers texts of all sorts unchanged",
      run: () =>
        connected(async (line) => {
          for (const [what, text] of Object.entries(texts)) await echoed(line, text, what);
        }),
    },
    {
      name: `delivers ${largest} characters in one message, and a small one after it`,
      run: () =>
        connected(async (line) => {
          await echoed(line, "ä漢\u{1F600}x".repeat(Math.ceil(largest / 5)).slice(0, largest - (largest % 5)));
          await echoed(line, "small");
        }),
    },
    {
      name: "delivers 100 messages one after the other",
      run: () =>
        connected(async (line) => {
          for (let i = 0; i < 100; i++) await echoed(line, `message ${i}`);
        }),
    },
    {
      name: "delivers 100 messages sent at once, each answer to its own request",
      run: () =>
        connected(async (line) => {
          await Promise.all(Array.from({ length: 100 }, (_, i) => echoed(line, `message ${i} ${"x".repeat(i * 37)}`)));
        }),
    },
    {
      name: "close() settles, fires onclose once, and may be called again",
      run: () =>
        connected(async (line) => {
          await echoed(line, "before");
          await within("close()", line.transport.close());
          await eventually("onclose", () => line.closes() > 0);
          await within("a second close()", line.transport.close());
          await line.release();
          demandSame("how often onclose fired", line.closes(), 1);
        }),
    },
    {
      name: "send() after close() rejects",
      run: () =>
        connected(async (line) => {
          await line.transport.close();
          await rejectionOf("send() after close()", line.transport.send({ jsonrpc: "2.0", id: 99, method: "ping" }));
        }),
    },
    {
      name: "is released by close() and the end of its scope: send() rejects, onclose fired at most once",
      run: () =>
        connected(async (line) => {
          await line.release();
          await rejectionOf("send() after the scope", line.transport.send({ jsonrpc: "2.0", id: 99, method: "ping" }));
          demand(line.closes() <= 1, `onclose fired ${line.closes()} times`);
        }),
    },
    {
      name: "two connections are independent of each other",
      run: () =>
        connected(async (first) =>
          connected(async (second) => {
            await Promise.all([echoed(first, "one"), echoed(second, "two")]);
            await first.transport.close();
            await echoed(second, "three");
          }),
        ),
    },
    {
      name: "an open that is interrupted leaves nothing",
      run: async () => {
        const before = await live();
        await scoped(async ({ scope }) => {
          const controller = new AbortController();
          const opening = runs(openIn(options, await options.endpoint(), scope), controller.signal);
          controller.abort();
          await within(
            "an interrupted open",
            opening.catch(() => {}),
          );
        });
        await eventually("releasing what the other side holds", async () => (await live()) <= before);
      },
    },
    ...(options.hangUp ? [hungUp(options.hangUp, connected)] : []),
    ...(options.unreachable ? [unreachable({ ...options, unreachable: options.unreachable })] : []),
  ];
};

const hungUp = (request: ContractRequest, connected: (use: (line: Line) => Promise<void>) => Promise<void>) => ({
  name: "tells by onclose, once, that the server ended the connection",
  run: () =>
    connected(async (line) => {
      await rejectionOf("a request that ends the connection", line.request(request));
      await eventually("onclose", () => line.closes() > 0);
      await line.release();
      demandSame("how often onclose fired", line.closes(), 1);
    }),
});

/** In open, in the answer to the first request, or by the end of the connection: but typed, and soon. */
const unreachable = <E extends McpEndpoint>(
  options: TransportContractOptions<E> & Required<Pick<TransportContractOptions<E>, "unreachable">>,
) => ({
  name: "fails with a typed error, or ends, when nobody serves the endpoint",
  run: () =>
    scoped(async ({ scope }) => {
      let line: Omit<Line, "release"> | undefined;
      const attempt = async (): Promise<void> => {
        line = wire(await runs(openIn(options, await options.unreachable(), scope)));
        await handshake(line);
      };
      const cause = await rejectionOf("connecting to an endpoint nobody serves", attempt());
      const ended = line !== undefined && line.closes() > 0;
      demand(ended || isMcpError(cause), `it failed with ${String(cause)}, which is no McpError`);
    }),
});
