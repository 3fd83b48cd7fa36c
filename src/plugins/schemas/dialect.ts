/** What a provider's dialect is: a normalizer that knows what the provider refuses. */
import type { JsonSchema, SchemaNormalizer } from "../../core/contracts.ts";
import { SchemaRejected } from "../../core/errors.ts";
import { bytesOf, fitBytes, schemaBytesMax } from "./rewriting/fit.ts";
import { type ObjectRoot, readObjectRoot } from "./rewriting/object-root.ts";

/** Something a provider would refuse. */
export interface Problem {
  /** RFC 6901 JSON Pointer into the schema. */
  readonly pointer: string;
  readonly message: string;
}

export interface SchemaDialect extends SchemaNormalizer {
  /** What the provider would refuse in this schema; an empty list when it takes it. */
  readonly accepts: (schema: unknown) => ReadonlyArray<Problem>;
  /** Longest tool description, in characters; undefined when the provider states none. */
  readonly descriptionMax: number | undefined;
}

export interface DialectParts {
  readonly name: string;
  readonly descriptionMax?: number;
  readonly write: (root: ObjectRoot, tool: string) => JsonSchema;
  readonly accepts: (schema: unknown) => ReadonlyArray<Problem>;
  /** What stands for a definition that finds no room. */
  readonly stub: JsonSchema;
}

const settlingRounds = 3;

/** With definitions, what was written may be simpler than what was read; then it is written again, until nothing changes. */
const settle = (parts: DialectParts, written: JsonSchema, root: ObjectRoot, tool: string): JsonSchema => {
  if (Object.keys(root.reading.$defs).length === 0) return written;
  let settled = written;
  for (let round = 0; round < settlingRounds && bytesOf(settled) <= schemaBytesMax; round++) {
    const again = parts.write(readObjectRoot(settled, tool), tool);
    if (JSON.stringify(again) === JSON.stringify(settled)) break;
    settled = again;
  }
  return settled;
};

/** A dialect from its writer and its checker; what the writer emits always passes the checker. */
export const makeDialect = (parts: DialectParts): SchemaDialect => ({
  name: parts.name,
  descriptionMax: parts.descriptionMax,
  accepts: parts.accepts,
  normalize: (schema, tool) => {
    const root = readObjectRoot(schema, tool.name);
    const diagnostics = [...root.diagnostics];
    const written = settle(parts, parts.write(root, tool.name), root, tool.name);
    const shortened = fitBytes(written, tool.name, parts.stub, (message) => diagnostics.push(message));
    const fitted = shortened === written ? written : parts.write(readObjectRoot(shortened, tool.name), tool.name);
    const [problem] = parts.accepts(fitted);
    if (problem) {
      const reason = `${parts.name} would refuse it at '${problem.pointer}': ${problem.message}`;
      throw new SchemaRejected({ tool: tool.name, reason });
    }
    const note = root.remarks.length > 0 ? `Arguments: ${root.remarks.join("; ")}.` : undefined;
    return { schema: fitted, diagnostics, ...(note !== undefined && { note }) };
  },
});
