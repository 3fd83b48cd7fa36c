/**
 * Pure: JSON as editors keep it, with comments, trailing commas and a byte order mark.
 * Own code because a parse error of the engine quotes the text, which may be a secret,
 * and names no line on some runtimes.
 */

/** Where the text stops being JSON. Holds nothing of the text. */
export class JsoncError extends Error {
  readonly line: number;
  readonly column: number;

  constructor(problem: string, text: string, offset: number) {
    const lines = text.slice(0, offset).split(/\r\n|\r|\n/);
    super(`${problem} at line ${lines.length}, column ${lines.at(-1)!.length + 1}`);
    this.line = lines.length;
    this.column = lines.at(-1)!.length + 1;
  }
}

const depthMax = 200;
const blank = /(?:\s+|\/\/[^\r\n]*|\/\*[\s\S]*?\*\/)*/y;
const scalar = /"[^"\\]*(?:\\.[^"\\]*)*"|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;

/** Parses; throws `JsoncError`. A key that stands twice in one object is an error too. */
export const parseJsonc = (text: string): unknown => {
  let at = 0;
  const fail = (problem: string, offset = at): never => {
    throw new JsoncError(problem, text, offset);
  };
  const match = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0] ?? "";
    at += found.length;
    return found;
  };
  /** The next character that is neither blank nor comment. */
  const next = (): string => {
    match(blank);
    return text[at] ?? "";
  };
  const expected = (what: string): never =>
    fail(next() === "" ? `the text ends where ${what} is expected` : `${what} is expected`);

  const readScalar = (): unknown => {
    const from = at;
    const token = match(scalar);
    if (token === "") return expected("a value");
    try {
      return JSON.parse(token);
    } catch {
      return fail("there is a string with a line break or a bad escape", from);
    }
  };

  const readKey = (known: Record<string, unknown>): string => {
    const from = at;
    if (next() !== '"') return expected("a key in double quotes");
    const key = readScalar() as string;
    return Object.hasOwn(known, key) ? fail("there is a key for the second time", from) : key;
  };

  /** Members up to `close`, separated by commas, the last one optional. */
  const members = (close: string, member: () => void): void => {
    at++;
    while (next() !== close) {
      member();
      if (next() === ",") at++;
      else if (next() !== close) expected(`a comma or ${close}`);
    }
    at++;
  };

  const readValue = (depth: number): unknown => {
    if (depth > depthMax) fail(`the text is nested more than ${depthMax} levels deep`);
    const first = next();
    if (first === "{") {
      const record: Record<string, unknown> = {};
      members("}", () => {
        const key = readKey(record);
        if (next() !== ":") expected("a colon");
        at++;
        const value = readValue(depth + 1);
        // Not an assignment: `__proto__` is a key like any other.
        Object.defineProperty(record, key, { value, enumerable: true, writable: true, configurable: true });
      });
      return record;
    }
    if (first === "[") {
      const list: Array<unknown> = [];
      members("]", () => void list.push(readValue(depth + 1)));
      return list;
    }
    return readScalar();
  };

  const value = readValue(0);
  return next() === "" ? value : expected("the end of the text");
};
