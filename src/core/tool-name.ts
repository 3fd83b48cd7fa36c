/**
 * Pure: the name under which a model sees a tool.
 *
 * A name depends on its own handle and raw tool name alone, never on which other
 * tools exist, so it stays the same over restarts, list changes and listing orders.
 * Names without a suffix can be read back in exactly one way; all others carry a
 * digest of the pair. So two pairs never share a name.
 */
import { digest } from "./identity.ts";

/** Longest name every known model provider takes, in characters. */
export const toolNameMax = 64;

const separator = "__";
const suffixLength = 10;
const suffix = new RegExp(`_[0-9a-f]{${suffixLength}}$`);

/** A letter or an underscore first: one provider refuses a leading digit or dash. */
const fitting = /^[a-zA-Z_][a-zA-Z0-9_-]*$/;

/** True when the plain name says by itself where the handle ends, and looks like no suffixed one. */
const isPlain = (name: string, handle: string, max: number): boolean =>
  name.length <= max && fitting.test(name) && name.indexOf(separator) === handle.length && !suffix.test(name);

const clean = (text: string): string => text.replace(/[^a-zA-Z0-9_-]/gu, "_");

/**
 * `<handle>__<tool>`, matching `^[a-zA-Z_][a-zA-Z0-9_-]*$` and at most `max` characters
 * (default 64, at least 24). Where the plain name does not fit, or could be read as another
 * pair, characters become `_`, the end is cut, and a digest of the exact pair is appended.
 *
 * @example exposedName("github", "create_issue") // "github__create_issue"
 * @example exposedName("github", "issues/create") // "github__issues_create_" and 10 hex digits
 */
export const exposedName = (handle: string, tool: string, max: number = toolNameMax): string => {
  const plain = handle + separator + tool;
  if (isPlain(plain, handle, max)) return plain;
  const cleaned = clean(handle);
  const front = /^[a-zA-Z_]/.test(cleaned) ? cleaned : `_${cleaned}`;
  const back = clean(tool);
  const room = max - suffixLength - 1 - separator.length;
  // A long handle leaves two thirds of the room to the tool, which tells the model more.
  const cut = front.slice(0, Math.max(room - back.length, Math.floor(room / 3)));
  const body = cut + separator + back.slice(0, room - cut.length);
  return `${body}_${digest(JSON.stringify([handle, tool]), suffixLength)}`;
};

/** A name a host chose for a tool, made to fit: unchanged where it already does, else with a digest of it. */
export const legalName = (name: string, max: number = toolNameMax): string =>
  name.length <= max && fitting.test(name)
    ? name
    : `${clean(name).slice(0, max - suffixLength - 1)}_${digest(name, suffixLength)}`;
