import { anthropic } from "../../src/plugins/schemas/anthropic.ts";
import type { SchemaDialect } from "../../src/plugins/schemas/dialect.ts";
import { gemini } from "../../src/plugins/schemas/gemini.ts";
import { inlineRefs } from "../../src/plugins/schemas/inline-refs.ts";
import { openaiStrict } from "../../src/plugins/schemas/openai-strict.ts";
import { openai } from "../../src/plugins/schemas/openai.ts";
import { makeSchemaValidator, schemaValidator } from "../../src/plugins/schemas/validator.ts";
import { schemaNormalizerContract, schemaValidatorContract } from "../../src/testing.ts";
import { checkSuite } from "./check-suite.ts";

checkSuite("inline-refs", schemaNormalizerContract({ normalizer: inlineRefs }));
for (const dialect of [anthropic, openai, openaiStrict, gemini] satisfies ReadonlyArray<SchemaDialect>)
  checkSuite(dialect.name, schemaNormalizerContract({ normalizer: dialect, accepts: dialect.accepts }));

checkSuite("validator that generates code", schemaValidatorContract({ validator: schemaValidator }));
checkSuite(
  "validator where making code is forbidden",
  schemaValidatorContract({ validator: makeSchemaValidator(() => false) }),
);
