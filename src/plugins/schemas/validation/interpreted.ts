/** The check that needs no code generation: slower, and exact in the corners where ajv is not. */
import type { OutputUnit } from "@cfworker/json-schema";
import type { ArgumentIssue } from "../../../core/errors.ts";
import type { JsonSchema } from "../../../core/contracts.ts";
import type { Check } from "./generated.ts";

const fits: ReadonlyArray<ArgumentIssue> = [];
const issuesMax = 20;

const words = (unit: OutputUnit): string => {
  if (unit.keyword === "false") return "is not allowed";
  return unit.error.replace(/^Instance /, "").replace(/\.$/, "");
};

const pointerOf = (location: string): string => {
  try {
    return decodeURIComponent(location.slice(1));
  } catch {
    return location.slice(1);
  }
};

/** Keywords whose units only say that something further in is wrong. */
const around: ReadonlySet<string> = new Set([
  "$ref",
  "additionalProperties",
  "allOf",
  "dependentSchemas",
  "if",
  "items",
  "patternProperties",
  "prefixItems",
  "properties",
  "unevaluatedItems",
  "unevaluatedProperties",
]);

/** Each fault where it is; of a union only that none of its branches fits. */
const readable = (units: ReadonlyArray<OutputUnit>): ReadonlyArray<ArgumentIssue> => {
  const unions = units.filter(({ keyword }) => keyword === "anyOf" || keyword === "oneOf");
  const told = units.filter(
    ({ keyword, keywordLocation }) =>
      !around.has(keyword) && !unions.some((union) => keywordLocation.startsWith(`${union.keywordLocation}/`)),
  );
  const issues = told.slice(0, issuesMax);
  if (issues.length === 0) return [{ pointer: "", message: "does not fit the schema" }];
  return issues.map((unit) => ({ pointer: pointerOf(unit.instanceLocation), message: words(unit) }));
};

/** Loads the interpreter; answers a compiler of prepared schemas. */
export const loadInterpreted = async (): Promise<(schema: JsonSchema) => Check> => {
  const { Validator } = await import("@cfworker/json-schema");
  return (schema) => {
    const validator = new Validator(schema, "2020-12", false);
    return (value) => {
      try {
        const { valid, errors } = validator.validate(value);
        return valid ? fits : readable(errors);
      } catch {
        return fits;
      }
    };
  };
};
