/**
 * Proves the schema normalizers on public data, where it lies beside the repository
 * (`../shared` or NUCLEO_MCP_SHARED), else on the own corpus. Prints one closing line
 * with the counts; exits with 1 on any breach.
 *
 * 1. Every verdict of the JSON-Schema-Test-Suite is the same before and after inlining.
 * 2. Every emitted schema passes the provider's checker and its meta-schema, is JSON of at most 64 KiB,
 *    and normalizing it again changes nothing.
 * 3. Generated arguments that fit an emitted schema fit the tool's own after they were restored.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import * as fc from "fast-check";
import type { ArgumentIssue } from "../src/core/errors.ts";
import type { SchemaNormalizer } from "../src/core/contracts.ts";
import { SchemaRejected } from "../src/core/errors.ts";
import { restoreArguments } from "../src/core/restore-arguments.ts";
import { anthropic } from "../src/plugins/schemas/anthropic.ts";
import type { SchemaDialect } from "../src/plugins/schemas/dialect.ts";
import { gemini } from "../src/plugins/schemas/gemini.ts";
import { inlineRefs } from "../src/plugins/schemas/inline-refs.ts";
import { toModern } from "../src/plugins/schemas/modern.ts";
import { openaiStrict } from "../src/plugins/schemas/openai-strict.ts";
import { openai } from "../src/plugins/schemas/openai.ts";
import { makeSchemaValidator, schemaValidator } from "../src/plugins/schemas/validator.ts";
import { compare } from "../test/corpus/equivalence.ts";
import { instances } from "../test/corpus/instances.ts";
import { ownCatalogs, ownGroups, recordedCatalogs, suiteGroups } from "../test/corpus/read.ts";

const verbose = process.argv.includes("--verbose");
const perTool = Number(process.env["INSTANCES"] ?? 20);
const breaches: Array<string> = [];
const explained = new Map<string, number>();

// 1. Equivalence.
const groups = [...ownGroups(), ...suiteGroups()];
const equal = { groups: 0, external: 0, instances: 0, unhandled: 0, validatorWrong: 0 };
for (const group of groups) {
  const { external, verdicts } = compare(group);
  if (external) equal.external++;
  else equal.groups++;
  for (const { where, expected, before, after } of verdicts) {
    equal.instances++;
    // A validator that errs on the original cannot judge; the suite's own verdict then does.
    if (before === undefined) equal.unhandled++;
    else if (before !== expected) equal.validatorWrong++;
    if (after !== expected && after !== before) breaches.push(`verdict changed: ${where}: ${before} -> ${after}`);
  }
}

// 2. What is emitted.
const dialects: ReadonlyArray<SchemaNormalizer & Partial<SchemaDialect>> = [
  inlineRefs,
  anthropic,
  openai,
  openaiStrict,
  gemini,
];
const recorded = recordedCatalogs();
const catalogs = recorded.length > 0 ? recorded : ownCatalogs();
const metas = [
  new Ajv2020({ strict: false, logger: false }),
  new Ajv({ strict: false, logger: false }),
  new Ajv2019({ strict: false, logger: false }),
];
const passesMeta = (schema: object, source: any): boolean => {
  const named = String(source?.$schema ?? "");
  const ajv = named.includes("draft-07") ? metas[1]! : named.includes("2019-09") ? metas[2]! : metas[0]!;
  return ajv.validateSchema(schema) === true;
};

const emitted = { tools: 0, schemas: 0, skipped: 0, largest: 0 };
const samples = { instances: 0, tools: 0, failed: 0, none: 0 };

const causes: ReadonlyArray<[string, RegExp]> = [
  ["several alternatives fit (oneOf)", /several of the alternatives/],
  ["pattern the provider does not take", /must match pattern/],
  ["list items must differ", /duplicate items/],
  ["limit that excludes its value", /must be [<>] /],
  ["length the provider does not take", /characters|items$|NOT have (fewer|more) than/],
  ["properties that belong together", /must have (property|properties)|required property/],
  ["names of properties", /property name/],
  ["list items that differ by position", /must be \w+, but is/],
  ["top-level union shown as one object", /must fit one of/],
];
const causeOf = (issues: ReadonlyArray<ArgumentIssue>): string =>
  causes.find(([, words]) => issues.some(({ message }) => words.test(message)))?.[0] ?? "other";

/** Many schemas, few values each: compiling to code would cost more than it saves. */
const interpreter = makeSchemaValidator(() => false);

const sample = async (dialect: string, server: string, tool: any, schema: any): Promise<void> => {
  const check = (await schemaValidator.compile(tool.inputSchema)) as (value: unknown) => ReadonlyArray<ArgumentIssue>;
  const fits = (await interpreter.compile(toModern(schema))) as (value: unknown) => ReadonlyArray<ArgumentIssue>;
  const values = fc
    .sample(instances(schema, dialect !== gemini.name), { numRuns: perTool, seed: 7 })
    .filter((value) => fits(value).length === 0);
  samples.tools++;
  if (values.length === 0) samples.none++;
  for (const value of values) {
    samples.instances++;
    const { issues } = restoreArguments(JSON.parse(JSON.stringify(value)), tool.inputSchema, check);
    if (issues.length === 0) continue;
    samples.failed++;
    const cause = `${dialect}: ${causeOf(issues)}`;
    explained.set(cause, (explained.get(cause) ?? 0) + 1);
    if (verbose)
      console.log(
        `${cause}: ${server}/${tool.name}: ${JSON.stringify(issues[0])} ${JSON.stringify(value).slice(0, 300)}`,
      );
  }
};

for (const { server, tools } of catalogs) {
  for (const tool of tools) {
    emitted.tools++;
    for (const dialect of dialects) {
      const where = `${dialect.name}: ${server}/${tool.name}`;
      try {
        const { schema } = dialect.normalize(tool.inputSchema, tool);
        const json = JSON.stringify(schema);
        const size = new TextEncoder().encode(json).length;
        emitted.schemas++;
        emitted.largest = Math.max(emitted.largest, size);
        if (size > 64 * 1024) breaches.push(`${where}: ${size} bytes`);
        const source = dialect === inlineRefs ? tool.inputSchema : undefined;
        // A schema that was passed through is as sound as it came.
        if (!passesMeta(JSON.parse(json), source) && !(source && !passesMeta(source as object, source)))
          breaches.push(`${where}: fails its meta-schema`);
        for (const { pointer, message } of dialect.accepts?.(schema) ?? [])
          breaches.push(`${where}: ${pointer} ${message}`);
        if (JSON.stringify(dialect.normalize(schema, tool).schema) !== json) breaches.push(`${where}: not idempotent`);
        await sample(dialect.name, server, tool, schema);
      } catch (error) {
        if (!(error instanceof SchemaRejected)) throw error;
        emitted.skipped++;
        console.log(`skipped by ${where}: ${error.reason}`);
      }
    }
  }
}

for (const [cause, count] of [...explained].toSorted(([, a], [, b]) => b - a))
  console.log(`not restorable, ${cause}: ${count}`);
for (const breach of breaches.slice(0, 50)) console.error(`breach: ${breach}`);
console.log(
  `schemas:check: ${equal.instances} verdicts of ${equal.groups} groups (${equal.external} more point outside; the validator itself errs on ${equal.validatorWrong} and cannot handle ${equal.unhandled}), ` +
    `${emitted.schemas} schemas of ${emitted.tools} tools x ${dialects.length} (${emitted.skipped} skipped, largest ${emitted.largest} bytes), ` +
    `${samples.instances - samples.failed} of ${samples.instances} argument objects restored (none generated for ${samples.none} of ${samples.tools}): ` +
    `${breaches.length} breaches`,
);
process.exitCode = breaches.length > 0 ? 1 : 0;
