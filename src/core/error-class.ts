/** What every error of the family is made of: its class, its tag, and the parts of its message. */
import * as Data from "effect/Data";

/** Common base: `instanceof McpError` holds for every error the public API can raise. */
export class McpError extends Data.Error<{ readonly message: string; readonly cause?: unknown }> {}

/** Constructor of one error of the family; `server` is always the endpoint's label. */
export interface McpErrorClass<Tag extends string, Fields> {
  new (fields: Fields, cause?: unknown): McpError & { readonly _tag: Tag } & Readonly<Fields>;
}

/** Makes an error class: its tag, and its message from its fields and cause. */
export const tagged = <Tag extends string, Fields extends object>(
  tag: Tag,
  message: (fields: Fields, cause: unknown) => string,
): McpErrorClass<Tag, Fields> => {
  class Tagged extends McpError {
    readonly _tag: Tag = tag;
    constructor(fields: Fields, cause?: unknown) {
      const text = message(fields, cause);
      super(cause === undefined ? { message: text } : { message: text, cause });
      Object.assign(this, fields);
    }
    override get name(): string {
      return tag;
    }
  }
  return Tagged as unknown as McpErrorClass<Tag, Fields>;
};

export const span = (ms: number): string => (ms < 1000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`);
export const tail = (text: string | undefined): string => (text ? `\nLast lines of its stderr:\n${text}` : "");
export const listed = (issues: ReadonlyArray<ArgumentIssue>): string =>
  issues
    .slice(0, 8)
    .map((issue) => `\n- ${issue.pointer || "(root)"}: ${issue.message}`)
    .join("");

/** One way in which a value breaks its schema. `pointer` is an RFC 6901 JSON Pointer. */
export interface ArgumentIssue {
  readonly pointer: string;
  readonly message: string;
}

/** How a child process ended and the last it said. Secrets of its environment are masked. */
export interface ProcessEnd {
  readonly exitCode?: number | undefined;
  readonly signal?: string | undefined;
  readonly stderrTail?: string | undefined;
}

export const ended = (end: ProcessEnd): string =>
  end.exitCode !== undefined ? ` (exit code ${end.exitCode})` : end.signal ? ` (signal ${end.signal})` : "";

export const isMcpError = (u: unknown): u is McpError & { readonly _tag: string } => u instanceof McpError;
