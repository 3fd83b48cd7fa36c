/**
 * Pure: variables in a configuration text, one grammar for every field.
 *
 * - `${NAME}`: the variable; unset is a fault.
 * - `${NAME:-default}`: the default when it is unset or empty.
 * - `${env:NAME}`, `${env:NAME:-default}`: the same, as VS Code writes it.
 * - `$${`: a literal `${`, what follows stays as it is.
 *
 * Everything else is literal: `$NAME`, `$$`, `$`. One pass, no shell: values and
 * defaults are never expanded again, so a default holds no `${`. A form that is not
 * closed, nested or of another kind (`${input:token}`) is a fault, because handing
 * the literal text to a server hides the mistake.
 */

/** Looks a variable up. */
export type Lookup = (name: string) => string | undefined;

/** What is wrong with a text, and how to mend it. Names variables, holds no values. */
export interface VariableFault {
  readonly reason: string;
  readonly fix: string;
}

const form = /\$\$\{|\$\{([^}]*)(\}?)/g;
const inside = /^(?:env:)?([A-Za-z_][A-Za-z0-9_().]*)(?::-([\s\S]*))?$/;
const escape = "Write $${ for a literal ${.";

const faultOf = (body: string, closed: boolean): VariableFault => {
  if (body.includes("${"))
    return {
      reason: "holds a variable inside another",
      fix: `Variables do not nest; use one with a default. ${escape}`,
    };
  if (!closed) return { reason: "holds a ${ that is not closed", fix: `Close it with }. ${escape}` };
  const kind = /^([A-Za-z]+):(?!-)/.exec(body)?.[1];
  const what =
    kind === undefined ? "holds a ${…} without a variable name" : `holds a \${${kind}:…}, which is unknown here`;
  return { reason: what, fix: `Use \${NAME}, \${NAME:-default} or \${env:NAME}. ${escape}` };
};

/** The text with its variables, or every fault in it. */
export const expandVariables = (text: string, lookup: Lookup): string | ReadonlyArray<VariableFault> => {
  const faults: Array<VariableFault> = [];
  const expanded = text.replace(form, (whole: string, body: string | undefined, close: string | undefined) => {
    if (body === undefined) return "${";
    const match = close === "}" && !body.includes("${") ? inside.exec(body) : null;
    if (!match) {
      faults.push(faultOf(body, close === "}"));
      return whole;
    }
    const [, name = "", fallback] = match;
    const value = lookup(name);
    if (fallback !== undefined) return value === undefined || value === "" ? fallback : value;
    if (value === undefined) {
      faults.push({
        reason: `uses the variable '${name}', which is not set`,
        fix: `Set ${name} in the environment, or write \${${name}:-default}.`,
      });
    }
    return value ?? whole;
  });
  return faults.length > 0 ? faults : expanded;
};
