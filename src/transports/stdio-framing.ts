/**
 * Bytes of a server's stdout to JSON-RPC messages. Pure and linear in the bytes:
 * each is searched, copied and decoded at most once, however the chunks fall.
 *
 * Framing: MCP specification, basic/transports, stdio: one message a line, UTF-8.
 */

/** What a framer finds. */
export interface FrameSink {
  /** A JSON-RPC message; the elements of a batch come one by one. */
  readonly onMessage: (message: object) => void;
  /** A line that is no JSON-RPC message: blank, text, a scalar, any other JSON. */
  readonly onSkip: (line: string) => void;
  /**
   * A message over the limit, told once. `id` is the request it answers, where its
   * first or last bytes say so; it then comes as soon as it is known.
   */
  readonly onTooLarge: (tooLarge: { readonly id: string | number | undefined; readonly size: number }) => void;
}

const newline = 10;
/** Bytes kept of both ends of a message over the limit, to find its id. */
const edge = 512;
/** A buffer that grew beyond this is given back after its line. */
const keptCapacity = 1024 * 1024;

const idValue = String.raw`(-?\d+|"(?:[^"\\]|\\.)*")`;
const version = String.raw`"jsonrpc"\s*:\s*"2\.0"\s*`;
/** A response whose result or error comes first or after its id. A server's own request has a method instead. */
const responseHead = new RegExp(
  String.raw`^\s*\{\s*(?:${version},\s*)?(?:"id"\s*:\s*${idValue}\s*,\s*)?(?:${version},\s*)?"(?:result|error)"\s*:`,
);
/**
 * An id among the last members. The final brace closes the message itself and a
 * quote within a string is escaped, so this is the message's own id.
 */
const responseTail = new RegExp(String.raw`,\s*"id"\s*:\s*${idValue}\s*(?:,\s*${version})?\}\s*$`);

const idIn = (match: RegExpExecArray | null): string | number | undefined => {
  try {
    return match?.[1] === undefined ? undefined : (JSON.parse(match[1]) as string | number);
  } catch {
    return undefined;
  }
};

const isMessage = (value: unknown): value is object => {
  if (typeof value !== "object" || value === null) return false;
  const { jsonrpc, method } = value as { jsonrpc?: unknown; method?: unknown };
  return jsonrpc === "2.0" && (typeof method === "string" || "result" in value || "error" in value);
};

/** A message over the limit, while the rest of it is thrown away. */
interface Discarding {
  readonly isResponse: boolean;
  tail: Uint8Array;
  told: boolean;
}

export class Framer {
  readonly #max: number;
  readonly #sink: FrameSink;
  readonly #decoder = new TextDecoder();
  /** The line begun by earlier chunks: `#size` bytes of it are read, and kept while it is within the limit. */
  #buffer = new Uint8Array(0);
  #size = 0;
  #discarding: Discarding | undefined;

  /** `max`: bytes of the largest message. */
  constructor(max: number, sink: FrameSink) {
    this.#max = max;
    this.#sink = sink;
  }

  push(chunk: Uint8Array): void {
    let start = 0;
    if (this.#size > 0) {
      const end = chunk.indexOf(newline);
      this.#append(end < 0 ? chunk : chunk.subarray(0, end));
      if (end < 0) return;
      this.#endLine();
      start = end + 1;
    }
    const last = chunk.lastIndexOf(newline);
    if (last >= start) {
      this.#lines(chunk.subarray(start, last));
      start = last + 1;
    }
    if (start < chunk.length) this.#append(chunk.subarray(start));
  }

  /** Whole lines, joined by newlines: decoded at one go, unless one of them may be over the limit. */
  #lines(block: Uint8Array): void {
    if (block.length <= this.#max) {
      for (const line of this.#decoder.decode(block).split("\n")) this.#line(line);
      return;
    }
    for (let start = 0; start <= block.length;) {
      const found = block.indexOf(newline, start);
      const end = found < 0 ? block.length : found;
      this.#append(block.subarray(start, end));
      this.#endLine();
      start = end + 1;
    }
  }

  #line(line: string): void {
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      return this.#sink.onSkip(line);
    }
    if (isMessage(value)) this.#sink.onMessage(value);
    else if (Array.isArray(value) && value.some(isMessage)) value.filter(isMessage).forEach(this.#sink.onMessage);
    else this.#sink.onSkip(line);
  }

  #append(part: Uint8Array): void {
    const size = this.#size + part.length;
    if (this.#discarding) this.#discard(this.#discarding, part);
    else if (size > this.#max) this.#startDiscarding(part);
    else {
      if (size > this.#buffer.length) {
        const grown = new Uint8Array(Math.min(this.#max, Math.max(size, this.#buffer.length * 2, 4096)));
        grown.set(this.#buffer.subarray(0, this.#size));
        this.#buffer = grown;
      }
      this.#buffer.set(part, this.#size);
    }
    this.#size = size;
  }

  #endLine(): void {
    const discarding = this.#discarding;
    if (!discarding) this.#line(this.#decoder.decode(this.#buffer.subarray(0, this.#size)));
    else if (!discarding.told) {
      const id = discarding.isResponse ? idIn(responseTail.exec(this.#decoder.decode(discarding.tail))) : undefined;
      this.#sink.onTooLarge({ id, size: this.#size });
    }
    this.#discarding = undefined;
    this.#size = 0;
    if (this.#buffer.length > keptCapacity) this.#buffer = new Uint8Array(0);
  }

  #startDiscarding(part: Uint8Array): void {
    const read = this.#buffer.subarray(0, this.#size);
    const head = this.#decoder.decode(joined(read.subarray(0, edge), part.subarray(0, edge)));
    const match = responseHead.exec(head);
    const id = idIn(match);
    const tail = joined(read.subarray(-edge), part.subarray(-edge)).slice(-edge);
    this.#discarding = { isResponse: match !== null, tail, told: id !== undefined };
    if (id !== undefined) this.#sink.onTooLarge({ id, size: this.#size + part.length });
  }

  #discard(discarding: Discarding, part: Uint8Array): void {
    if (!discarding.told) discarding.tail = joined(discarding.tail, part.subarray(-edge)).slice(-edge);
  }
}

const joined = (a: Uint8Array, b: Uint8Array): Uint8Array => {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
};
