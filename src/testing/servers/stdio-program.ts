/**
 * Fault programs for the scripted stdio server: what it is and does, as plain JSON, so
 * that a program can be generated, printed and kept. `stdio.ts` makes a command line of one.
 */
import type { ActingStep, AnsweringStep, ServerDescription, StepsBy } from "./fault-program.ts";

/** A process that the server starts and leaves behind. */
export interface Grandchild {
  /** Whether it holds the server's stdin, stdout and stderr open. Default true. */
  readonly holdsPipes?: boolean;
  /** Its pid is appended to this file. */
  readonly pidFile?: string;
  readonly ignoreSigterm?: boolean;
}

/** Steps that only a process can take. */
export type ProcessStep =
  /** Writes this many bytes to stdout without a newline, then a newline; `head` and `tail` frame them. */
  | { readonly stdoutFlood: number; readonly head?: string; readonly tail?: string }
  | { readonly stderr: string }
  /** Writes to stderr synchronously, in lines of 80 bytes or without any newline. */
  | { readonly stderrFlood: { readonly bytes: number; readonly newline?: boolean } }
  | { readonly closeStdout: true }
  | { readonly exit: number }
  /** Sends itself a signal. */
  | { readonly kill: string }
  | { readonly grandchild: Grandchild };

/**
 * One thing the server does. The steps of a request run in order, requests run side
 * by side. A request whose steps give no answer gets the default one, unless `never` says no.
 */
export type Step =
  | AnsweringStep
  /** Answers with pid, ppid, cwd, argv and env as JSON text. */
  | { readonly about: true }
  | ActingStep
  | ProcessStep;

/** What the server is and does. All of it is optional: an empty program is a polite server with the tool `echo`. */
export interface StdioProgram extends ServerDescription {
  /** The pid is appended to this file at start, as one line. */
  readonly pidFile?: string;
  /** A JSON line (`LogLine`) is appended to this file for all that happens to the server. */
  readonly log?: string;
  /** Lives on after the end of its stdin. */
  readonly ignoreStdinEnd?: boolean;
  readonly ignoreSigterm?: boolean;
  /** Steps at start, before anything is read. A list of lists: successive starts with the same `pidFile` take successive lists, the last one repeats. */
  readonly onStart?: ReadonlyArray<Step> | ReadonlyArray<ReadonlyArray<Step>>;
  /** Steps by method, requests and notifications alike. */
  readonly on?: StepsBy<Step>;
}

/** One line of `StdioProgram.log`. */
export type LogLine =
  | { readonly kind: "start"; readonly pid: number }
  | { readonly kind: "message"; readonly pid: number; readonly message: { readonly [key: string]: any } }
  | { readonly kind: "stdin-end"; readonly pid: number }
  | { readonly kind: "signal"; readonly pid: number; readonly signal: string };
