/** Whether a schema says the same before and after its references were inlined. */
import { Validator } from "@cfworker/json-schema";
import { Ajv } from "ajv";
import { Ajv2019 } from "ajv/dist/2019.js";
import { Ajv2020 } from "ajv/dist/2020.js";
import type { JsonSchema } from "../../src/core/contracts.ts";
import { inlineReferences } from "../../src/plugins/schemas/references/inline.ts";
import { type Draft, drafts, type Group } from "./read.ts";

type Check = (data: unknown) => boolean | undefined;

/** A check by the draft's rules; it answers nothing where the validator cannot handle the schema. */
export const checkOf = (draft: Draft, schema: unknown): Check => {
  const options = { strict: false, logger: false, validateFormats: false, validateSchema: false, meta: false } as const;
  const ajv =
    draft === "draft7" ? new Ajv(options) : draft === "draft2019-09" ? new Ajv2019(options) : new Ajv2020(options);
  try {
    const validate = ajv.compile(schema as object);
    return (data) => {
      try {
        return validate(data) as boolean;
      } catch {
        return undefined;
      }
    };
  } catch {
    return () => undefined;
  }
};

/** The same by another validator, which compiles nothing and so suits many small schemas. */
export const interpretedCheckOf = (schema: unknown): Check => {
  const validator = new Validator(schema as object, "2020-12");
  return (data) => {
    try {
      return validator.validate(data).valid;
    } catch {
      return undefined;
    }
  };
};

export interface Verdict {
  readonly where: string;
  /** What the group says is right. */
  readonly expected: boolean;
  readonly before: boolean | undefined;
  readonly after: boolean | undefined;
}

/** Verdicts of one group; `external` when a reference leaves the document, so that there is nothing to compare. */
export const compare = (group: Group): { readonly external: boolean; readonly verdicts: ReadonlyArray<Verdict> } => {
  if (typeof group.schema !== "object") return { external: false, verdicts: [] };
  const source = { $schema: drafts[group.draft], ...group.schema };
  const inlined = inlineReferences(source, "tool");
  if (inlined.diagnostics.length > 0) return { external: true, verdicts: [] };
  const before = checkOf(group.draft, source);
  const after = checkOf(group.draft, { $schema: source.$schema, ...(inlined.schema as JsonSchema) });
  const verdicts = group.tests.map((test) => ({
    where: `${group.draft}/${group.file}: ${group.description} / ${test.description ?? JSON.stringify(test.data)}`,
    expected: test.valid,
    before: before(test.data),
    after: after(test.data),
  }));
  return { external: false, verdicts };
};
