/** Checks arguments and structured results against the schemas servers give. */
import type { JsonSchema, SchemaValidator } from "../../core/contracts.ts";
import { inlineBytesMax } from "./references/inline.ts";
import { type Check, loadGenerated } from "./validation/generated.ts";
import { loadInterpreted } from "./validation/interpreted.ts";
import { prepare } from "./validation/prepare.ts";

type Compile = (schema: JsonSchema) => Check;

/** False where the platform forbids making code from text, for example edge workers. */
const canGenerateCode = (): boolean => {
  try {
    // oxlint-disable-next-line no-new-func -- the probe itself
    return new Function("return true")() === true;
  } catch {
    return false;
  }
};

/** Keywords that ajv does not judge exactly, and sizes for which its code would take seconds to make. Both are rare. */
const needsInterpreter = (schema: JsonSchema): boolean => {
  const json = JSON.stringify(schema);
  return json.length > inlineBytesMax || json.includes('"unevaluated');
};

const once = <A>(make: () => Promise<A>): (() => Promise<A>) => {
  let made: Promise<A> | undefined;
  return () => (made ??= make());
};

/**
 * A validator of JSON Schema. Without `$schema` a schema is read as 2020-12; drafts 4 to
 * 2019-09 are read as what they are. `format` is an annotation. References outside the
 * document are not followed: anything fits there. Checks are kept for as long as their schema lives.
 *
 * @param generate whether to compile to code; default: where the platform allows it
 */
export const makeSchemaValidator = (generate: () => boolean = canGenerateCode): SchemaValidator => {
  const checks = new WeakMap<JsonSchema, Check>();
  const interpreted = once<Compile>(loadInterpreted);
  const generated = once<Compile>(() => (generate() ? loadGenerated() : interpreted()));
  return {
    compile: async (schema) => {
      const known = checks.get(schema);
      if (known) return known;
      const prepared = prepare(schema);
      const compile = await (needsInterpreter(prepared) ? interpreted() : generated());
      const check = compile(prepared);
      checks.set(schema, check);
      return check;
    },
  };
};

/** The default validator. Both engines load when the first schema is compiled. */
export const schemaValidator: SchemaValidator = makeSchemaValidator();
