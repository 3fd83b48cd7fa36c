/** Pure: the name under which a model sees a parameter of a tool. */
import { digest } from "./identity.ts";

/** Every known provider takes these names; some take more. */
const plain = /^[a-zA-Z_][a-zA-Z0-9_]{0,63}$/;

const suffixLength = 8;

/**
 * The name itself where every provider takes it; else its characters made to fit and a digest of
 * the exact name. A function of the name alone, so that it can be undone at the call.
 *
 * @example exposedProperty("StartTime<") // "StartTime__" and 8 hex digits
 */
export const exposedProperty = (name: string): string => {
  if (plain.test(name)) return name;
  const cleaned = name.replace(/[^a-zA-Z0-9_]/gu, "_").replace(/^(?![a-zA-Z_])/, "_");
  return `${cleaned.slice(0, 63 - suffixLength)}_${digest(JSON.stringify(name), suffixLength)}`;
};
