/** OpenAI functions without strict mode. Rules and sources: docs/dialects.md. */
import type { JsonSchema } from "../../core/contracts.ts";
import { commonProblems, forbidAtRoot, makeReport, subschemas } from "./checking.ts";
import { makeDialect, type Problem, type SchemaDialect } from "./dialect.ts";
import { intricatePattern } from "./modern.ts";
import { isObject, mapSubschemas, own, type Subschema } from "./references/keywords.ts";
import { remark, withRemarks } from "./rewriting/notes.ts";
import type { ObjectRoot } from "./rewriting/object-root.ts";

const atRoot = ["oneOf", "anyOf", "allOf", "enum", "not"];

const isIntricate = (pattern: unknown): boolean => typeof pattern === "string" && intricatePattern.test(pattern);
const admitsArrays = (schema: JsonSchema): boolean => [own(schema, "type")].flat().includes("array");

const spell = (schema: Subschema): JsonSchema => {
  if (!isObject(schema)) return schema ? {} : { not: {} };
  const further = schema["additionalProperties"];
  const { pattern, patternProperties, ...rest } = mapSubschemas(schema, spell);
  const names = Object.entries((patternProperties ?? {}) as JsonSchema);
  const simple = names.filter(([name]) => !isIntricate(name));
  const lost = names.filter(([name]) => isIntricate(name));
  return withRemarks(
    {
      ...rest,
      ...(typeof further === "boolean" && { additionalProperties: further }),
      // Closed but for names by a pattern that cannot be sent: then it has to stay open.
      ...(lost.length > 0 && { additionalProperties: true }),
      ...(simple.length > 0 && { patternProperties: Object.fromEntries(simple) }),
      ...(pattern !== undefined && !isIntricate(pattern) && { pattern }),
      ...(admitsArrays(schema) && !Object.hasOwn(schema, "items") && { items: {} }),
    },
    [
      ...(isIntricate(pattern) ? [remark("pattern", pattern)] : []),
      ...lost.map(([name, member]) => remark(`properties named like ${name}`, member)),
    ],
  );
};

const write = ({ object, annotations, reading, remarks }: ObjectRoot): JsonSchema => {
  const { $defs } = reading.root as { $defs?: JsonSchema };
  const { not, enum: values, ...rest } = object;
  const lost = [
    ...(not === undefined ? [] : [remark("not", not)]),
    ...(values === undefined ? [] : [remark("one of", values)]),
  ];
  remarks.push(...lost);
  return spell({ properties: {}, ...rest, ...annotations, ...($defs && { $defs }) });
};

const accepts = (schema: unknown): ReadonlyArray<Problem> => {
  const { problems, say } = makeReport();
  for (const { schema: node, pointer } of subschemas(schema)) {
    say(Object.hasOwn(node, "invalid"), pointer, "must be a schema object, not a boolean");
    say(admitsArrays(node) && !isObject(own(node, "items")), pointer, "a list needs items");
    say(isIntricate(own(node, "pattern")), pointer, "the pattern uses lookaround or references to groups");
    for (const name of Object.keys((own(node, "patternProperties") ?? {}) as object)) {
      say(isIntricate(name), pointer, "a property pattern uses lookaround or references to groups");
    }
  }
  say(isObject(schema) && !isObject(own(schema, "properties")), "", "the top level needs properties");
  return [...commonProblems(schema), ...forbidAtRoot(schema, atRoot), ...problems];
};

export const openai: SchemaDialect = makeDialect({ name: "openai", descriptionMax: 1024, write, accepts, stub: {} });
