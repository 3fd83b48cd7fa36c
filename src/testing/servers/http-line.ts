/** The way back to the client that one HTTP request opens: JSON, an event stream, or the standing stream of HTTP+SSE. */
import type { Drip, Json } from "./fault-program.ts";
import type { EventWriter, HttpExchange } from "./http.ts";
import type { EventFields } from "./http-program.ts";
import { sleep } from "./step-script.ts";

export interface LineOptions {
  readonly exchange: HttpExchange;
  readonly kind: "json" | "stream";
  /** The session that the request names or opens. */
  readonly session: string;
  /** Makes headers of the answer's head, once it begins. */
  readonly headers?: () => Record<string, string>;
  /** Where messages go when they do not go into the answer, which is then an empty 202. */
  readonly elsewhere?: EventWriter | undefined;
  /** The answer is a standing stream, which does not end by itself; told of it when it begins. */
  readonly onStanding?: ((stream: EventWriter) => void) | undefined;
}

export const renderEvent = ({ data, id, event, retry }: EventFields): string => {
  const text = typeof data === "string" ? data : JSON.stringify(data ?? "");
  const lines = [
    ...(event === undefined ? [] : [`event: ${event}`]),
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(retry === undefined ? [] : [`retry: ${retry}`]),
    `data: ${data === undefined ? "" : text}`,
  ];
  return `${lines.join("\n")}\n\n`;
};

const types = { json: "application/json", stream: "text/event-stream" };

export class Line {
  readonly #options: LineOptions;
  #opened: EventWriter | undefined;
  #answered = false;

  constructor(options: LineOptions) {
    this.#options = options;
  }

  get session(): string {
    return this.#options.session;
  }

  /** True once nothing can be written any more. */
  get closed(): boolean {
    const { exchange, elsewhere } = this.#options;
    return this.#answered || (elsewhere ? elsewhere.closed : exchange.closed);
  }

  /** Whether it takes messages beside the answer. */
  get isStream(): boolean {
    return this.#options.kind === "stream";
  }

  /** Whether it stays open when all is said. */
  get stays(): boolean {
    return this.#options.onStanding !== undefined;
  }

  /** Sends the head of the answer, once; nothing when a status was the answer. */
  open(headers: Readonly<Record<string, string>> = {}): EventWriter | undefined {
    if (this.#opened || this.#answered) return this.#opened;
    const { exchange, kind, elsewhere, onStanding } = this.#options;
    if (elsewhere) {
      this.#accept(headers);
      return (this.#opened = elsewhere);
    }
    this.#opened = exchange.open(200, {
      "content-type": types[kind],
      "cache-control": "no-cache",
      ...this.#options.headers?.(),
      ...headers,
    });
    onStanding?.(this.#opened);
    return this.#opened;
  }

  async raw(data: string | Uint8Array, drip?: Drip): Promise<void> {
    if (this.#answered) return;
    const writer = this.open();
    if (!writer) return;
    if (!drip) return writer.raw(data);
    const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
    for (let at = 0; at < bytes.length && !writer.closed; at += drip.size) {
      writer.raw(bytes.subarray(at, at + drip.size));
      await sleep(drip.delay ?? 0);
    }
  }

  event(fields: EventFields, drip?: Drip): Promise<void> {
    return this.raw(renderEvent(fields), drip);
  }

  /** Writes a message; as JSON it is the whole answer. */
  async message(value: Json, drip?: Drip): Promise<void> {
    const { exchange, kind, elsewhere, headers } = this.#options;
    if (this.#answered) return;
    if (kind === "stream" || elsewhere) return this.event({ event: "message", data: value }, drip);
    if (!this.#opened && !drip) exchange.json(value, 200, headers?.());
    else {
      await this.raw(JSON.stringify(value), drip);
      this.#opened?.end();
    }
    this.#answered = true;
  }

  /** Answers with a status and no message; too late once the answer has begun. */
  status(status: number, body?: string, headers?: Readonly<Record<string, string>>): void {
    if (this.#answered || this.#opened) return;
    this.#options.exchange.text(status, body, { ...headers });
    this.#answered = true;
  }

  /** Ends the answer. */
  end(): void {
    if (this.#answered) return;
    const { elsewhere } = this.#options;
    if (!elsewhere) this.open()?.end();
    else if (!this.#opened) this.#accept();
    this.#answered = true;
  }

  /** Settles when what was written has left, or nothing can leave any more. */
  async drained(): Promise<void> {
    await this.#opened?.drained();
  }

  #accept(headers: Readonly<Record<string, string>> = {}): void {
    this.#options.exchange.text(202, "Accepted", { ...headers });
  }
}
