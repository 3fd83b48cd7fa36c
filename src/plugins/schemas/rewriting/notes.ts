/** Pure: constraints a provider does not take, told in the description instead. */
import type { JsonSchema } from "../../../core/contracts.ts";
import { own } from "../references/keywords.ts";

const valueMax = 200;
const noteMax = 600;

const cut = (text: string, max: number): string => (text.length > max ? `${text.slice(0, max - 1)}…` : text);

/** One keyword as a remark. */
export const remark = (keyword: string, value: unknown): string =>
  `${keyword}: ${cut(JSON.stringify(value), valueMax)}`;

/** The schema with remarks at the end of its description. */
export const withRemarks = (schema: JsonSchema, remarks: ReadonlyArray<string>): JsonSchema => {
  if (remarks.length === 0) return schema;
  const given = own(schema, "description");
  const note = cut([...new Set(remarks)].join("; "), noteMax);
  return { ...schema, description: typeof given === "string" && given !== "" ? `${given} (${note})` : `(${note})` };
};

/** Two descriptions as one. */
export const joinDescriptions = (first: unknown, second: unknown): string | undefined => {
  const texts = [first, second].filter((text) => typeof text === "string" && text !== "") as Array<string>;
  if (texts.length < 2 || texts[0] === texts[1]) return texts[0];
  return texts.join(" ");
};
