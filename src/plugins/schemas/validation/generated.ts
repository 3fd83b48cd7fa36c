/** The fast check: ajv generates code for a schema. */
import type { ArgumentIssue } from "../../../core/errors.ts";
import type { JsonSchema } from "../../../core/contracts.ts";
import { readableIssues } from "./issues.ts";

export type Check = (value: unknown) => ReadonlyArray<ArgumentIssue>;

const fits: ReadonlyArray<ArgumentIssue> = [];

/** Loads ajv; answers a compiler of prepared schemas. */
export const loadGenerated = async (): Promise<(schema: JsonSchema) => Check> => {
  const { Ajv2020 } = await import("ajv/dist/2020.js");
  const options = {
    strict: false,
    logger: false,
    allErrors: true,
    verbose: true,
    // Names of the prototype are no properties of an argument object.
    ownProperties: true,
    validateFormats: false,
    validateSchema: false,
    meta: false,
  } as const;
  return (schema) => {
    // One of its own: an instance keeps every schema it has seen, `removeSchema` or not; lists of tools change.
    const validate = new Ajv2020(options).compile(schema);
    return (value) => {
      try {
        return validate(value) ? fits : readableIssues(validate.errors ?? []);
      } catch {
        // A schema that leads back to itself without end says nothing about the value.
        return fits;
      }
    };
  };
};
