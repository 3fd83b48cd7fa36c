/** Pure: reads JSON of others field by field. A field of the wrong type counts as absent. */

export type JsonObject = Readonly<Record<string, unknown>>;

/** The JSON object a text holds, if it holds one. */
export const jsonObject = (text: string): JsonObject | undefined => {
  try {
    return objectOf(JSON.parse(text));
  } catch {
    return undefined;
  }
};

export const objectOf = (value: unknown): JsonObject | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as JsonObject) : undefined;

export const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

export const numberOf = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

export const textsOf = (value: unknown): ReadonlyArray<string> | undefined =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string") : undefined;
