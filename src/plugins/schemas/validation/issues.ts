/** Pure: ajv's errors in words a model can act on. */
import type { ErrorObject } from "ajv";
import type { ArgumentIssue } from "../../../core/errors.ts";

const issuesMax = 20;
const namesMax = 20;

const show = (values: ReadonlyArray<unknown>): string => {
  const shown = values.slice(0, namesMax).map((value) => JSON.stringify(value));
  return shown.join(", ") + (values.length > namesMax ? ` and ${values.length - namesMax} more` : "");
};

const kindOf = (value: unknown): string => {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" && Number.isInteger(value) ? "integer" : typeof value;
};

const knownNames = (schema: unknown): string => {
  const properties = (schema as { properties?: object } | undefined)?.properties;
  const names = properties ? Object.keys(properties) : [];
  return names.length > 0 ? `; known are ${show(names)}` : "";
};

/** A member of a union in a few words. */
const sketch = (schema: any): string => {
  if (schema?.const !== undefined) return JSON.stringify(schema.const);
  if (Array.isArray(schema?.enum)) return show(schema.enum);
  const names = Array.isArray(schema?.required) && schema.required.length > 0 ? ` with ${show(schema.required)}` : "";
  return schema?.type ? [schema.type].flat().join(" or ") + names : "other";
};

const words: Readonly<Record<string, (error: ErrorObject) => string>> = {
  required: ({ params }) => `required property ${JSON.stringify(params["missingProperty"])} is missing`,
  type: ({ params, data }) => `must be ${[params["type"]].flat().join(" or ")}, but is ${kindOf(data)}`,
  enum: ({ params }) => `must be one of ${show(params["allowedValues"])}`,
  const: ({ params }) => `must be ${JSON.stringify(params["allowedValue"])}`,
  additionalProperties: ({ params, parentSchema }) =>
    `unknown property ${JSON.stringify(params["additionalProperty"])}${knownNames(parentSchema)}`,
  propertyNames: ({ params }) => `property name ${JSON.stringify(params["propertyName"])} is not allowed`,
  "false schema": () => "is not allowed",
  not: () => "has a form that is not allowed",
  oneOf: ({ params, schema }) =>
    params["passingSchemas"]
      ? "fits several of the alternatives, of which only one may fit"
      : `must fit one of: ${(schema as Array<unknown>).map(sketch).join(" | ")}`,
  anyOf: ({ schema }) => `must fit one of: ${(schema as Array<unknown>).map(sketch).join(" | ")}`,
};

const say = (error: ErrorObject): ArgumentIssue => ({
  pointer: error.instancePath,
  message: words[error.keyword]?.(error) ?? error.message ?? `breaks '${error.keyword}'`,
});

const isUnion = ({ keyword, params }: ErrorObject): boolean =>
  keyword === "anyOf" || (keyword === "oneOf" && !params["passingSchemas"]);

/**
 * Of a union only the branch that was meant is told: the one whose type and fixed values fit.
 * Where that is not exactly one, the union itself is the issue.
 */
const unfold = (errors: ReadonlyArray<ErrorObject>): ReadonlyArray<ErrorObject> => {
  const union = errors.findLast(isUnion);
  if (!union) return errors;
  const inside = (error: ErrorObject): boolean =>
    error !== union &&
    error.instancePath.startsWith(union.instancePath) &&
    error.schemaPath.startsWith(`${union.schemaPath}/`);
  const branches = new Map<string, Array<ErrorObject>>();
  for (const error of errors.filter(inside)) {
    const branch = error.schemaPath.slice(union.schemaPath.length + 1).split("/", 1)[0]!;
    branches.set(branch, [...(branches.get(branch) ?? []), error]);
  }
  const depth = union.instancePath.split("/").length;
  const meant = [...branches.values()].filter((branch) =>
    branch.every(({ keyword, instancePath }) => {
      const below = instancePath.split("/").length - depth;
      return !(keyword === "type" && below === 0) && !((keyword === "const" || keyword === "enum") && below <= 1);
    }),
  );
  const others = errors.filter((error) => error !== union && !inside(error));
  return meant.length === 1 ? unfold([...others, ...meant[0]!]) : [...unfold(others), union];
};

/** What is wrong, each thing once. */
export const readableIssues = (errors: ReadonlyArray<ErrorObject>): ReadonlyArray<ArgumentIssue> => {
  const told = unfold(errors.filter(({ keyword, propertyName }) => keyword !== "if" && propertyName === undefined));
  const issues = new Map(told.map((error) => [error.instancePath + error.message, say(error)]));
  if (issues.size === 0) return [{ pointer: "", message: "does not fit the schema" }];
  return [...issues.values()].slice(0, issuesMax);
};
