/** Tools as the request bodies of model providers want them. */
import type { ToolDefinition } from "../../core/catalog.ts";
import type { JsonSchema, NormalizedSchema } from "../../core/contracts.ts";
import { SchemaRejected } from "../../core/errors.ts";
import { anthropic } from "./anthropic.ts";
import type { SchemaDialect } from "./dialect.ts";
import { gemini } from "./gemini.ts";
import { openaiStrict } from "./openai-strict.ts";
import { openai } from "./openai.ts";
import { bytesOf, schemaBytesMax } from "./rewriting/fit.ts";
import { joinDescriptions } from "./rewriting/notes.ts";

/** One entry of `tools` of Anthropic Messages. */
export interface AnthropicTool {
  readonly name: string;
  readonly description: string;
  readonly input_schema: JsonSchema;
}

/** One entry of `tools` of OpenAI Responses. */
export interface OpenAiResponsesTool {
  readonly type: "function";
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
  readonly strict: boolean;
}

/** One entry of `tools` of OpenAI Chat Completions. */
export interface OpenAiChatTool {
  readonly type: "function";
  readonly function: Omit<OpenAiResponsesTool, "type">;
}

/** One entry of `functionDeclarations` of Gemini. */
export interface GeminiFunction {
  readonly name: string;
  readonly description: string;
  /** Absent where a tool takes no arguments. */
  readonly parameters?: JsonSchema;
}

export interface ToolFormats {
  readonly anthropic: AnthropicTool;
  readonly "openai-responses": OpenAiResponsesTool;
  readonly "openai-chat": OpenAiChatTool;
  readonly gemini: GeminiFunction;
}
export type ToolFormat = keyof ToolFormats;

export interface DefineOptions {
  /**
   * OpenAI only: ask for strict mode (Structured Outputs). A tool that strict mode cannot
   * express is defined without it. Default false.
   */
  readonly strict?: boolean | undefined;
}

export interface DefinedTools<T> {
  readonly tools: ReadonlyArray<T>;
  /** Tools the provider cannot be given at all, each with its reason. */
  readonly skipped: ReadonlyArray<Remark>;
  /** Tools defined without strict mode though it was asked for, each with its reason. */
  readonly loose: ReadonlyArray<Remark>;
}

/** A tool in the words and the schema of a provider. */
export interface WrittenTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

/** A tool that is left out or defined otherwise, and why. */
export interface Remark {
  readonly name: string;
  readonly reason: string;
}

const noteMax = 400;

/** Schemas live as long as the list of tools they came with; each is written once per dialect. */
const written = new WeakMap<SchemaDialect, WeakMap<object, NormalizedSchema>>();

const normalize = (dialect: SchemaDialect, { inputSchema, name }: ToolDefinition): NormalizedSchema => {
  const known = written.get(dialect) ?? new WeakMap<object, NormalizedSchema>();
  written.set(dialect, known);
  const normalized = known.get(inputSchema) ?? dialect.normalize(inputSchema, { name });
  known.set(inputSchema, normalized);
  return normalized;
};

/** The text up to a limit, ending at a word; and what did not fit. */
const cutAt = (text: string, max: number): readonly [string, string] => {
  if (text.length <= max) return [text, ""];
  const space = text.lastIndexOf(" ", max - 1);
  const end = space > max / 2 ? space : max - 1;
  return [`${text.slice(0, end)}…`, text.slice(end).trim()];
};

/**
 * One tool in a dialect; without one, as the runtime lists it. A description over the provider's
 * limit goes on in the description of the parameters, which has none.
 *
 * @throws SchemaRejected when the provider cannot be given the tool
 */
export const writeTool = (definition: ToolDefinition, dialect: SchemaDialect | undefined): WrittenTool => {
  const { schema, note }: Partial<NormalizedSchema> & Pick<NormalizedSchema, "schema"> = dialect
    ? normalize(dialect, definition)
    : { schema: definition.inputSchema };
  const text = definition.description ?? definition.title ?? definition.tool;
  const [told] = cutAt(note ?? "", noteMax);
  const room = (dialect?.descriptionMax ?? Infinity) - (told ? told.length + 2 : 0);
  const [shown, rest] = cutAt(text, room);
  const description = told ? `${shown}\n\n${told}` : shown;
  const more = rest ? { ...schema, description: joinDescriptions(`…${rest}`, schema["description"]) } : schema;
  return { name: definition.name, description, parameters: bytesOf(more) > schemaBytesMax ? schema : more };
};

const dialects: Readonly<Record<ToolFormat, SchemaDialect>> = {
  anthropic,
  "openai-responses": openai,
  "openai-chat": openai,
  gemini,
};

const hasParameters = ({ properties }: JsonSchema): boolean => Object.keys((properties ?? {}) as object).length > 0;

const formats: { readonly [F in ToolFormat]: (tool: WrittenTool, strict: boolean) => ToolFormats[F] } = {
  anthropic: ({ name, description, parameters }) => ({ name, description, input_schema: parameters }),
  "openai-responses": (tool, strict) => ({ type: "function", ...tool, strict }),
  "openai-chat": (tool, strict) => ({ type: "function", function: { ...tool, strict } }),
  gemini: ({ name, description, parameters }) => ({
    name,
    description,
    ...(hasParameters(parameters) && { parameters }),
  }),
};

/** Writes every tool that can be written; the others are told to `refuse`, one by one. */
export const writeTools = (
  definitions: Iterable<ToolDefinition>,
  dialect: SchemaDialect | undefined,
  refuse: (remark: Remark) => void,
): ReadonlyArray<WrittenTool> => {
  const tools: Array<WrittenTool> = [];
  for (const definition of definitions) {
    try {
      tools.push(writeTool(definition, dialect));
    } catch (error) {
      if (!(error instanceof SchemaRejected)) throw error;
      refuse({ name: definition.name, reason: error.reason });
    }
  }
  return tools;
};

/**
 * Pure: tool definitions as a provider's request wants them. Names come out unchanged, so a
 * model's call goes to `callTool` as it is; what the provider's form changed in arguments is
 * undone there.
 */
export const defineTools = <F extends ToolFormat>(
  definitions: Iterable<ToolDefinition>,
  format: F,
  options?: DefineOptions,
): DefinedTools<ToolFormats[F]> => {
  const skipped: Array<Remark> = [];
  const loose: Array<Remark> = [];
  const ordinary = dialects[format];
  const skip = (remark: Remark): void => void skipped.push(remark);
  if (!options?.strict || ordinary !== openai) {
    const tools = writeTools(definitions, ordinary, skip).map((tool) => formats[format](tool, false));
    return { tools, skipped, loose };
  }
  const tools = [...definitions].flatMap((definition) => {
    const [strict] = writeTools([definition], openaiStrict, (remark) => loose.push(remark));
    const written = strict ? [strict] : writeTools([definition], ordinary, skip);
    return written.map((tool) => formats[format](tool, strict !== undefined));
  });
  return { tools, skipped, loose };
};
