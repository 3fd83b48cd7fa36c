/** What fault programs share, whatever the server speaks over: the server's description, and steps that mean the same everywhere. */

/** Any JSON. In a step, the string `"$id"` stands for the request's id, `"$token"` for its progress token, `"$params"` for its params. */
export type Json = unknown;

/** Writes a message in pieces of `size` bytes, `delay` ms apart (default 0: one piece per turn of the event loop). */
export interface Drip {
  readonly size: number;
  readonly delay?: number;
}

/** What the server says of itself and has. All of it is optional: without any it is a polite server with the tool `echo`. */
export interface ServerDescription {
  /** Default: the version the client asks for. */
  readonly protocolVersion?: string;
  /** Default: tools, and resources and prompts where there are some. */
  readonly capabilities?: Record<string, Json>;
  readonly serverInfo?: { readonly name: string; readonly version: string };
  readonly instructions?: string;
  readonly tools?: ReadonlyArray<{ readonly name: string } & Record<string, Json>>;
  readonly resources?: ReadonlyArray<{ readonly uri: string } & Record<string, Json>>;
  readonly resourceTemplates?: ReadonlyArray<Record<string, Json>>;
  readonly prompts?: ReadonlyArray<{ readonly name: string } & Record<string, Json>>;
  /** Items per page of every list. Default: all on one page. */
  readonly pageSize?: number;
}

/** Steps by name. A list of lists: successive messages take successive lists, the last one repeats. */
export type StepsBy<S> = Readonly<Record<string, ReadonlyArray<S> | ReadonlyArray<ReadonlyArray<S>>>>;

/** Steps that answer a request. */
export type AnsweringStep =
  /** Answers the request with a result; `id` forges another id. */
  | { readonly reply: Json; readonly id?: Json; readonly drip?: Drip }
  /** Answers with a JSON-RPC error. */
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: Json }; readonly id?: Json }
  /** Answers a tools/call with its arguments as JSON text. */
  | { readonly echo: true }
  /** Answers with one text content of this many characters; `char` (default `x`) may be of several bytes. */
  | { readonly big: number; readonly char?: string; readonly drip?: Drip }
  /** Gives no answer, not even the default one. */
  | { readonly never: true };

/** Steps that do something else; a request that has no other gets the default answer after them. */
export type ActingStep =
  /** Writes any JSON as one message, for example a batch or a second answer. */
  | { readonly message: Json }
  /** Writes text as it is; `$id` in it becomes the request's id. */
  | { readonly raw: string }
  /** Writes base64-decoded bytes. */
  | { readonly bytes: string; readonly drip?: Drip }
  | { readonly notify: { readonly method: string; readonly params?: Json } }
  /** Asks the client. */
  | { readonly request: { readonly id: Json; readonly method: string; readonly params?: Json } }
  /** Waits, ms. */
  | { readonly delay: number }
  /** Waits until some other request releases the key; a release may come first. */
  | { readonly hold: string }
  | { readonly release: string };
