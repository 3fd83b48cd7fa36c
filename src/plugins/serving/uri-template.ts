/** Pure: which URIs a template may stand for. Both come from others, so the time is linear in their length. */

/** The texts between the expressions of a template (RFC 6570 section 2). */
const literalsOf = (template: string): ReadonlyArray<string> => {
  const literals: Array<string> = [];
  for (let start = 0; ;) {
    const open = template.indexOf("{", start);
    const close = open < 0 ? -1 : template.indexOf("}", open);
    if (close < 0) return [...literals, template.slice(start)];
    literals.push(template.slice(start, open));
    start = close + 1;
  }
};

/** Whether a URI may come of a template, by its literal parts: in order, the first and the last at the ends. */
export const fitsTemplate = (template: string, uri: string): boolean => {
  const [first = "", ...others] = literalsOf(template);
  const last = others.pop();
  if (last === undefined) return uri === first;
  if (!uri.startsWith(first)) return false;
  let from = first.length;
  for (const literal of others) {
    const found = uri.indexOf(literal, from);
    if (found < 0) return false;
    from = found + literal.length;
  }
  return uri.endsWith(last) && uri.length - last.length >= from;
};
