/**
 * Fault programs for the scripted stdio server: what it is and does, as plain JSON, so
 * that a program can be generated, printed and kept. `stdio.ts` makes a command line of one.
 */
/** Any JSON. In a step, the string `"$id"` stands for the request's id, `"$token"` for its progress token, `"$params"` for its params. */
export type Json = unknown;

/** Writes a frame in pieces of `size` bytes, `delay` ms apart (default 0: one write per turn of the event loop). */
export interface Drip {
  readonly size: number;
  readonly delay?: number;
}

/** A process that the server starts and leaves behind. */
export interface Grandchild {
  /** Whether it holds the server's stdin, stdout and stderr open. Default true. */
  readonly holdsPipes?: boolean;
  /** Its pid is appended to this file. */
  readonly pidFile?: string;
  readonly ignoreSigterm?: boolean;
}

/**
 * One thing the server does. The steps of a request run in order, requests run side
 * by side. A request whose steps give no answer gets the default one, unless `never` says no.
 */
export type Step =
  /** Answers the request with a result; `id` forges another id. */
  | { readonly reply: Json; readonly id?: Json; readonly drip?: Drip }
  /** Answers with a JSON-RPC error. */
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: Json }; readonly id?: Json }
  /** Answers a tools/call with its arguments as JSON text. */
  | { readonly echo: true }
  /** Answers with one text content of this many characters; `char` (default `x`) may be of several bytes. */
  | { readonly big: number; readonly char?: string; readonly drip?: Drip }
  /** Answers with pid, ppid, cwd, argv and env as JSON text. */
  | { readonly about: true }
  /** Gives no answer, not even the default one. */
  | { readonly never: true }
  /** Writes any JSON as one frame, for example a batch or a second answer. */
  | { readonly message: Json }
  /** Writes text to stdout as it is; `$id` in it becomes the request's id. */
  | { readonly raw: string }
  /** Writes base64-decoded bytes to stdout. */
  | { readonly bytes: string; readonly drip?: Drip }
  /** Writes this many bytes to stdout without a newline, then a newline; `head` and `tail` frame them. */
  | { readonly stdoutFlood: number; readonly head?: string; readonly tail?: string }
  | { readonly notify: { readonly method: string; readonly params?: Json } }
  /** Asks the client; its answer shows in the log. */
  | { readonly request: { readonly id: Json; readonly method: string; readonly params?: Json } }
  | { readonly delay: number }
  /** Waits until some other request releases the key; a release may come first. */
  | { readonly hold: string }
  | { readonly release: string }
  | { readonly stderr: string }
  /** Writes to stderr synchronously, in lines of 80 bytes or without any newline. */
  | { readonly stderrFlood: { readonly bytes: number; readonly newline?: boolean } }
  | { readonly closeStdout: true }
  | { readonly exit: number }
  /** Sends itself a signal. */
  | { readonly kill: string }
  | { readonly grandchild: Grandchild };

/** What the server is and does. All of it is optional: an empty program is a polite server with the tool `echo`. */
export interface StdioProgram {
  /** Default: the version the client asks for. */
  readonly protocolVersion?: string;
  /** Default: tools, and resources and prompts where the program has some. */
  readonly capabilities?: Record<string, Json>;
  readonly serverInfo?: { readonly name: string; readonly version: string };
  readonly instructions?: string;
  readonly tools?: ReadonlyArray<{ readonly name: string } & Record<string, Json>>;
  readonly resources?: ReadonlyArray<{ readonly uri: string } & Record<string, Json>>;
  readonly resourceTemplates?: ReadonlyArray<Record<string, Json>>;
  readonly prompts?: ReadonlyArray<{ readonly name: string } & Record<string, Json>>;
  /** Items per page of every list. Default: all on one page. */
  readonly pageSize?: number;
  /** The pid is appended to this file at start, as one line. */
  readonly pidFile?: string;
  /** A JSON line (`LogLine`) is appended to this file for all that happens to the server. */
  readonly log?: string;
  /** Lives on after the end of its stdin. */
  readonly ignoreStdinEnd?: boolean;
  readonly ignoreSigterm?: boolean;
  /** Steps at start, before anything is read. */
  readonly onStart?: ReadonlyArray<Step>;
  /**
   * Steps by method, requests and notifications alike. A list of lists: successive
   * messages take successive lists, the last one repeats.
   */
  readonly on?: Readonly<Record<string, ReadonlyArray<Step> | ReadonlyArray<ReadonlyArray<Step>>>>;
}

/** One line of `StdioProgram.log`. */
export type LogLine =
  | { readonly kind: "start"; readonly pid: number }
  | { readonly kind: "message"; readonly pid: number; readonly message: { readonly [key: string]: any } }
  | { readonly kind: "stdin-end"; readonly pid: number }
  | { readonly kind: "signal"; readonly pid: number; readonly signal: string };
