/** A network in memory: `fetch` is answered by a function, byte by byte, until it is put back. */
export interface Sent {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  /** The JSON-RPC message of a POST. */
  readonly message: any;
  readonly signal: AbortSignal | undefined;
}

export type Answering = (sent: Sent) => Response;

const bodyText = async (body: unknown): Promise<string> =>
  typeof body === "string" ? body : body instanceof Blob ? await body.text() : "";

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
};

/** Replaces `fetch`; answers how to put the real one back. */
export const answerFetch = (answer: Answering): (() => void) => {
  const real = globalThis.fetch;
  globalThis.fetch = (async (url: unknown, init: RequestInit = {}): Promise<Response> => {
    const signal = init.signal ?? undefined;
    signal?.throwIfAborted();
    const message = parsed(await bodyText(init.body));
    return answer({
      method: init.method ?? "GET",
      url: String(url),
      headers: new Headers(init.headers),
      message,
      signal,
    });
  }) as typeof fetch;
  return () => {
    globalThis.fetch = real;
  };
};

/** A body that is written while it is read. */
export class OpenBody {
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  open = true;
  readonly stream: ReadableStream<Uint8Array> = new ReadableStream<Uint8Array>({
    start: (controller) => {
      this.#controller = controller;
    },
    cancel: () => {
      this.open = false;
    },
  });

  constructor(signal?: AbortSignal) {
    signal?.addEventListener("abort", () => this.break(signal.reason), { once: true });
  }

  write(chunks: ReadonlyArray<Uint8Array>): void {
    if (this.open) for (const chunk of chunks) if (chunk.length > 0) this.#controller.enqueue(chunk);
  }

  end(): void {
    if (this.open) this.#controller.close();
    this.open = false;
  }

  break(reason: unknown = new TypeError("terminated")): void {
    if (this.open) this.#controller.error(reason);
    this.open = false;
  }
}

const bodiless: ReadonlyArray<number> = [204, 205, 304];

/** A response of any status; its body is left out where the status allows none. */
export const respond = (
  status: number,
  headers: ReadonlyArray<readonly [string, string]>,
  body: ReadableStream<Uint8Array> | string | undefined,
): Response =>
  new Response(bodiless.includes(status) ? null : ((body ?? null) as string | null), {
    status,
    headers: headers as Array<[string, string]>,
  });
