import { describe, expect, it } from "@effect/vitest";
import * as fc from "fast-check";
import { withoutSecretParts } from "../../../src/core/identity.ts";
import { HttpEndpoint, StdioEndpoint } from "../../../src/mod.ts";
import { canonicalJson, changedFields, definitionOf, fingerprint } from "../../../src/core/pinning/fingerprint.ts";

/** The same value with the keys of every object in another order. */
const reordered = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(reordered);
  if (typeof value !== "object" || value === null) return value;
  const copy: Record<string, unknown> = {};
  for (const [key, item] of Object.entries(value).toReversed())
    Object.defineProperty(copy, key, { value: reordered(item), enumerable: true, configurable: true, writable: true });
  return copy;
};

const tool = {
  name: "read",
  title: "Read",
  description: "Reads a file.",
  inputSchema: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  outputSchema: { type: "object" },
  annotations: { readOnlyHint: true },
};

describe("fingerprints", () => {
  it("are SHA-256 of canonical JSON, by the known answer", () => {
    const text = '{"description":"Reads a file.","inputSchema":{"type":"object"},"name":"read"}';
    const definition = { inputSchema: { type: "object" }, name: "read", description: "Reads a file." };
    expect(canonicalJson(definition)).toBe(text);
    // printf '%s' '<text>' | sha256sum
    expect(fingerprint(definition)).toBe("5ab7ebe35f215e31dc9f471dfa491cebaac880ca46ff7f4eba3dce20f5b999a5");
  });

  it("the order of keys does not matter, the order of lists does", () => {
    fc.assert(
      fc.property(fc.jsonValue(), (inputSchema) => {
        const definition = definitionOf({ name: "t", inputSchema });
        expect(fingerprint(reordered(definition) as never)).toBe(fingerprint(definition));
        expect(JSON.parse(canonicalJson(inputSchema))).toEqual(JSON.parse(JSON.stringify(inputSchema)));
      }),
    );
    expect(canonicalJson([1, 2])).not.toBe(canonicalJson([2, 1]));
  });

  it("different values have different canonical texts", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => {
        const same = JSON.stringify(reordered(a)) === JSON.stringify(reordered(b));
        if (same) expect(canonicalJson(a)).toBe(canonicalJson(b));
        if (canonicalJson(a) === canonicalJson(b))
          expect(JSON.parse(canonicalJson(a))).toEqual(JSON.parse(canonicalJson(b)));
      }),
    );
  });

  const edits: ReadonlyArray<readonly [string, object]> = [
    ["name", { name: "read2" }],
    ["title", { title: "Read!" }],
    ["title", { title: undefined }],
    ["description", { description: "Reads a file. " }],
    ["description", { description: "Reads a f\u0456le." }],
    ["description", { description: "Reads a file.\u200b" }],
    ["inputSchema", { inputSchema: { ...tool.inputSchema, required: [] } }],
    ["inputSchema", { inputSchema: { ...tool.inputSchema, description: "send everything" } }],
    ["outputSchema", { outputSchema: { type: "object", title: "x" } }],
    ["annotations", { annotations: { readOnlyHint: false } }],
    ["annotations", { annotations: null }],
  ];
  it.each(edits)("a change of %s is seen and named: %j", (field, edit) => {
    const [before, after] = [definitionOf(tool), definitionOf({ ...tool, ...edit })];
    expect(fingerprint(after)).not.toBe(fingerprint(before));
    expect(changedFields(before, after)).toEqual([field]);
  });

  it("what models do not see is no part: icons, _meta, unknown members", () => {
    const more = { ...tool, icons: [{ src: "data:" }], _meta: { a: 1 }, execution: {} };
    expect(fingerprint(definitionOf(more))).toBe(fingerprint(definitionOf(tool)));
  });
});

describe("the server that pins belong to", () => {
  const stdio = (more: object) => new StdioEndpoint({ name: "s", command: "npx", args: ["-y", "server"], ...more });
  const http = (more: object) => new HttpEndpoint({ url: "https://h.example/mcp", ...more } as never);
  const scope = ({ endpointId }: { readonly endpointId: string }) => withoutSecretParts(endpointId);

  it("is the same with another secret", () => {
    expect(scope(stdio({ env: { TOKEN: "one" } }))).toBe(scope(stdio({ env: { TOKEN: "two" } })));
    expect(scope(http({ headers: { "x-key": "one" } }))).toBe(scope(http({ headers: { "x-key": "two" } })));
    expect(scope(http({ url: "https://h.example/mcp?key=1" }))).toBe(
      scope(http({ url: "https://h.example/mcp?key=2" })),
    );
    expect(scope(http({ url: "https://a:b@h.example/mcp" }))).toBe(scope(http({})));
  });

  it("is another one with another command, argument, folder, URL, flavor or user", () => {
    const user = (name: string) => http({ credential: { kind: "bearer", user: name } });
    const different = [
      stdio({}),
      stdio({ args: ["-y", "server@2"] }),
      stdio({ command: "bunx" }),
      stdio({ cwd: "/elsewhere" }),
      http({}),
      http({ url: "https://h.example/other" }),
      http({ flavor: "sse" }),
      user("ann"),
      user("bob"),
    ].map(scope);
    expect(new Set(different).size).toBe(different.length);
  });
});
