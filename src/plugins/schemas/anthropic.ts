/** Anthropic Messages: JSON Schema 2020-12 with a plain object on top. Rules and sources: docs/dialects.md. */
import type { JsonSchema } from "../../core/contracts.ts";
import { commonProblems, forbidAtRoot, parameterNames } from "./checking.ts";
import { makeDialect, type SchemaDialect } from "./dialect.ts";
import { isObject, mapSubschemas, type Subschema } from "./references/keywords.ts";
import { exposeParameters, type ObjectRoot } from "./rewriting/object-root.ts";

const parameter = /^[a-zA-Z0-9_.-]{1,64}$/;

/** `true` and `false` as schemas in words every reader knows; `additionalProperties` keeps its own. */
const spellBooleans = (schema: Subschema): JsonSchema => {
  if (!isObject(schema)) return schema ? {} : { not: {} };
  const spelt = mapSubschemas(schema, spellBooleans);
  const further = schema["additionalProperties"];
  return typeof further === "boolean" ? { ...spelt, additionalProperties: further } : spelt;
};

const write = ({ object, annotations, reading }: ObjectRoot): JsonSchema => {
  const { $defs } = reading.root as { $defs?: JsonSchema };
  return spellBooleans({ ...exposeParameters(object, parameter), ...annotations, ...($defs && { $defs }) });
};

export const anthropic: SchemaDialect = makeDialect({
  name: "anthropic",
  write,
  stub: {},
  accepts: (schema) => [
    ...commonProblems(schema),
    ...forbidAtRoot(schema, ["oneOf", "allOf", "anyOf"]),
    ...parameterNames(schema, parameter),
  ],
});
