/** Checks a call's arguments and a result's structure against the tool's own, original schemas. */
import { isRecord } from "./artifact/json.ts";
import * as Effect from "effect/Effect";
import { lift } from "./answer.ts";
import type { JsonSchema, RawToolResult, SchemaValidator } from "./contracts.ts";
import { InvalidArguments, OutputInvalid } from "./errors.ts";
import type { Check, Provider } from "./provider.ts";
import { restoreArguments } from "./restore-arguments.ts";

export interface SchemaChecks {
  /** The arguments as the tool wants them, when they fit. */
  readonly arguments: (
    provider: Provider,
    args: unknown,
  ) => Effect.Effect<Readonly<Record<string, unknown>>, InvalidArguments>;
  /** Fails when structured content breaks the output schema; an error result is not checked. */
  readonly output: (provider: Provider, result: RawToolResult) => Effect.Effect<void, OutputInvalid>;
}

const everythingFits: Check = () => [];

/** Compiled checks, one per tool and schema; a schema that cannot compile switches its own check off. */
export const makeSchemaChecks = (
  validator: SchemaValidator,
  onDiagnostic: (provider: Provider, message: string) => void,
): SchemaChecks => {
  const compiled = new WeakMap<object, Check>();

  const checkOf = (provider: Provider, schema: unknown, what: string): Effect.Effect<Check> => {
    if (typeof schema !== "object" || schema === null) return Effect.succeed(everythingFits);
    const known = compiled.get(schema);
    if (known) return Effect.succeed(known);
    return lift("schema validator", () => validator.compile(schema as JsonSchema)).pipe(
      Effect.catch((error) => {
        onDiagnostic(
          provider,
          `the ${what} schema of '${provider.tool}' cannot be compiled, so it is not checked: ${error.message}`,
        );
        return Effect.succeed(everythingFits);
      }),
      Effect.tap((check) => Effect.sync(() => compiled.set(schema, check))),
    );
  };

  return {
    arguments: (provider, args = {}) => {
      const tool = provider.name;
      if (!isRecord(args)) {
        const issues = [{ pointer: "", message: "the arguments must be one JSON object" }];
        return Effect.fail(new InvalidArguments({ tool, issues }));
      }
      return Effect.flatMap(checkOf(provider, provider.raw.inputSchema, "input"), (check) => {
        const { arguments: restored, issues } = restoreArguments(args, provider.raw.inputSchema, check);
        return issues.length === 0 ? Effect.succeed(restored) : Effect.fail(new InvalidArguments({ tool, issues }));
      });
    },
    output: (provider, result) => {
      if (result.isError || result.structuredContent === undefined || !provider.raw.outputSchema) return Effect.void;
      return Effect.flatMap(checkOf(provider, provider.raw.outputSchema, "output"), (check) => {
        const issues = check(result.structuredContent);
        return issues.length === 0
          ? Effect.void
          : Effect.fail(new OutputInvalid({ tool: provider.name, issues, result }));
      });
    },
  };
};
