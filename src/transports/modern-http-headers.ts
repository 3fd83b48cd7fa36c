/**
 * Pure: the headers that a modern request mirrors from its body, so that proxies can route
 * without reading it. Source: MCP 2026-07-28, transports/streamable-http, Request Metadata.
 */
import { isRecord } from "../core/artifact/json.ts";
import type { JSONRPCMessage } from "./http-message.ts";

type Json = Readonly<Record<string, unknown>>;
/** One argument that a tool wants mirrored: where it is, and the name behind `Mcp-Param-`. */
export interface Mirrored {
  readonly path: ReadonlyArray<string>;
  readonly header: string;
}

const ANNOTATION = "x-mcp-header";
const PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion";
/** RFC 9110 section 5.1. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const PRIMITIVES = ["string", "integer", "boolean"];
/** Keywords whose value is a schema, a list of schemas, or a map to schemas. */
const ONE_OR_MORE =
  "items prefixItems contains additionalProperties additionalItems unevaluatedProperties unevaluatedItems propertyNames allOf anyOf oneOf not if then else".split(
    " ",
  );
const MAPS = "patternProperties dependentSchemas $defs definitions".split(" ");
const DEPTH = 100;

/**
 * What a tool's input schema wants mirrored, or the fault that makes the tool unusable
 * over HTTP. An annotation counts only where a chain of `properties` leads to it.
 */
export const mirroredOf = (inputSchema: unknown): ReadonlyArray<Mirrored> | string => {
  const found: Array<Mirrored> = [];
  const names = new Set<string>();

  const annotated = (schema: Json, path: ReadonlyArray<string>, reachable: boolean): string | undefined => {
    const header = schema[ANNOTATION];
    const where = `${ANNOTATION} of '${path.join(".")}'`;
    if (!reachable || path.length === 0) return `${where} is not on a property that plain 'properties' lead to`;
    if (typeof header !== "string" || !TOKEN.test(header)) return `${where} is no header name`;
    if (!PRIMITIVES.includes(schema["type"] as string)) return `${where} is not on a string, integer or boolean`;
    if (names.has(header.toLowerCase())) return `${where} is used twice`;
    names.add(header.toLowerCase());
    found.push({ path, header });
    return undefined;
  };

  const visit = (
    schema: unknown,
    path: ReadonlyArray<string>,
    reachable: boolean,
    depth: number,
  ): string | undefined => {
    if (!isRecord(schema) || depth > DEPTH) return undefined;
    let fault = ANNOTATION in schema ? annotated(schema, path, reachable) : undefined;
    const inside = (child: unknown, name: string, still: boolean): void => {
      fault ??= visit(child, [...path, name], still, depth + 1);
    };
    if (isRecord(schema["properties"]))
      for (const [name, child] of Object.entries(schema["properties"])) inside(child, name, reachable);
    for (const keyword of ONE_OR_MORE)
      for (const child of [schema[keyword]].flat()) inside(child, `<${keyword}>`, false);
    for (const keyword of MAPS)
      for (const child of Object.values(isRecord(schema[keyword]) ? schema[keyword] : {}))
        inside(child, `<${keyword}>`, false);
    return fault;
  };
  return visit(inputSchema, [], true, 0) ?? found;
};

const SENTINEL = /^=\?base64\?.*\?=$/s;
/** RFC 9110 section 5.5, without what parsers strip or drop. */
const PLAIN = /^[\x21-\x7e]([\t\x20-\x7e]*[\x21-\x7e])?$/;

/** A value as a header can carry it; what is not plain ASCII goes as Base64 of its UTF-8. */
export const encodeHeader = (value: string): string => {
  if (PLAIN.test(value) && !SENTINEL.test(value)) return value;
  const bytes = new TextEncoder().encode(value);
  return `=?base64?${btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))}?=`;
};

const textOf = (value: unknown): string | undefined =>
  typeof value === "string" || typeof value === "boolean" || Number.isSafeInteger(value) ? String(value) : undefined;

const NAMED: Readonly<Record<string, string>> = {
  "tools/call": "name",
  "prompts/get": "name",
  "resources/read": "uri",
  "tasks/get": "taskId",
  "tasks/update": "taskId",
  "tasks/cancel": "taskId",
};

/** The headers of one message; `mirrored` is what its tool declares, when it is a tool call. */
export const headersOf = (
  message: JSONRPCMessage,
  mirrored: ReadonlyArray<Mirrored> = [],
): Readonly<Record<string, string>> => {
  const { method, params } = message as { readonly method?: string; readonly params?: Json };
  const headers: Record<string, string> = {};
  const meta = params?.["_meta"];
  const version = isRecord(meta) ? meta[PROTOCOL_VERSION] : undefined;
  if (typeof version === "string") headers["mcp-protocol-version"] = version;
  if (method === undefined) return headers;
  headers["mcp-method"] = encodeHeader(method);
  const name = params?.[NAMED[method] ?? ""];
  if (typeof name === "string") headers["mcp-name"] = encodeHeader(name);
  for (const { path, header } of mirrored) {
    let value: unknown = params?.["arguments"];
    for (const key of path) value = isRecord(value) && Object.hasOwn(value, key) ? value[key] : undefined;
    const text = textOf(value);
    if (text !== undefined) headers[`mcp-param-${header.toLowerCase()}`] = encodeHeader(text);
  }
  return headers;
};
