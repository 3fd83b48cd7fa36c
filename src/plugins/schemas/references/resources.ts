/**
 * Pure: the schema resources of one document (2020-12 core, section 8.2) and what a
 * reference in it points at. Nothing outside the document is ever looked at.
 */
import { unescapeToken } from "effect/JsonPointer";
import type { JsonSchema } from "../../../core/contracts.ts";
import { eachSubschema, isObject, isSubschema, own, type Subschema } from "./keywords.ts";

/** Subschemas nested deeper than this are not looked into. */
export const depthMax = 128;

/** A schema with an identity of its own: the document, or a subschema with `$id`. */
export interface Resource {
  readonly root: JsonSchema;
  readonly base: string;
  /** Up to draft 7 nothing beside a `$ref` counts. */
  readonly legacy: boolean;
  readonly anchors: Map<string, JsonSchema>;
  /** `$dynamicAnchor` by name; the key "" stands for `$recursiveAnchor: true`. */
  readonly dynamic: Map<string, JsonSchema>;
}

export interface Located {
  readonly schema: Subschema;
  readonly resource: Resource;
  /** Last part of the reference, for naming. */
  readonly name: string;
  /** Set when the reference names a dynamic anchor; the key of `Resource.dynamic`. */
  readonly dynamicKey: string | undefined;
}

export interface Document {
  readonly main: Resource;
  readonly resourceOf: (schema: JsonSchema) => Resource | undefined;
  /** What `reference` means inside `from`; nothing when it leaves the document or dangles. */
  readonly resolve: (reference: string, from: Resource) => Located | undefined;
}

const legacyDraft = /draft-0[1-7]/;
const documentBase = "nucleo-mcp://schema/";

const text = (schema: JsonSchema, key: string): string | undefined => {
  const value = own(schema, key);
  return typeof value === "string" ? value : undefined;
};

const absolute = (reference: string, base: string): string | undefined =>
  URL.canParse(reference, base) ? new URL(reference, base).href : undefined;

const splitFragment = (reference: string): [string, string] => {
  const at = reference.indexOf("#");
  return at < 0 ? [reference, ""] : [reference.slice(0, at), reference.slice(at + 1)];
};

/** Percent-decoding; text that was never encoded is taken as it is. */
const decode = (fragment: string): string => {
  try {
    return decodeURIComponent(fragment);
  } catch {
    return fragment;
  }
};

const newResource = (root: JsonSchema, base: string, parent?: Resource): Resource => {
  const draft = text(root, "$schema");
  const legacy = draft === undefined ? (parent?.legacy ?? false) : legacyDraft.test(draft);
  return { root, base, legacy, anchors: new Map(), dynamic: new Map() };
};

/** Notes the names a schema gives itself inside its resource. */
const noteAnchors = (schema: JsonSchema, resource: Resource, idFragment: string): void => {
  const first = (names: Map<string, JsonSchema>, name: string | undefined): void => {
    if (name && !names.has(name)) names.set(name, schema);
  };
  if (resource.legacy) return first(resource.anchors, idFragment);
  const dynamic = text(schema, "$dynamicAnchor");
  first(resource.anchors, text(schema, "$anchor"));
  first(resource.anchors, dynamic);
  first(resource.dynamic, dynamic);
  if (own(schema, "$recursiveAnchor") === true && schema === resource.root) resource.dynamic.set("", schema);
};

export const readDocument = (root: JsonSchema): Document => {
  const byUri = new Map<string, Resource>();
  const resources = new Map<JsonSchema, Resource>();

  const visit = (schema: Subschema, parent: Resource | undefined, depth: number): void => {
    if (!isObject(schema) || resources.has(schema) || depth > depthMax) return;
    const outer = parent ?? newResource(schema, documentBase);
    // Up to draft 7 an `$id` beside a `$ref` does not count.
    const ignored = outer.legacy && Object.hasOwn(schema, "$ref");
    const [path, fragment] = splitFragment((ignored ? undefined : text(schema, "$id")) ?? "");
    const base = path === "" ? undefined : absolute(path, outer.base);
    const resource = base !== undefined ? newResource(schema, base, outer) : outer;
    if (!byUri.has(resource.base)) byUri.set(resource.base, resource);
    resources.set(schema, resource);
    noteAnchors(schema, resource, decode(fragment));
    eachSubschema(schema, (member) => visit(member, resource, depth + 1));
  };
  visit(root, undefined, 0);
  const main = resources.get(root)!;
  if (!byUri.has(documentBase)) byUri.set(documentBase, main);

  /** RFC 6901, own properties only; crossing an embedded resource changes the base. */
  const follow = (tokens: ReadonlyArray<string>, from: Resource): Located | undefined => {
    let value: unknown = from.root;
    let resource = from;
    for (const token of tokens) {
      if (Array.isArray(value)) value = /^(0|[1-9]\d*)$/.test(token) ? value[Number(token)] : undefined;
      else value = isObject(value) ? own(value, token) : undefined;
      if (isObject(value)) resource = resources.get(value) ?? resource;
    }
    if (!isSubschema(value)) return undefined;
    return { schema: value, resource, name: tokens.at(-1) ?? "root", dynamicKey: undefined };
  };

  const resolve = (reference: string, from: Resource): Located | undefined => {
    const [path, rawFragment] = splitFragment(reference);
    const uri = path === "" ? from.base : absolute(path, from.base);
    const resource = path === "" ? from : uri === undefined ? undefined : byUri.get(uri);
    if (!resource) return undefined;
    const fragment = decode(rawFragment);
    if (fragment === "" || fragment.startsWith("/")) {
      return follow(fragment === "" ? [] : fragment.slice(1).split("/").map(unescapeToken), resource);
    }
    const schema = resource.anchors.get(fragment);
    if (!schema) return undefined;
    const dynamicKey = resource.dynamic.get(fragment) === schema ? fragment : undefined;
    return { schema, resource: resources.get(schema) ?? resource, name: fragment, dynamicKey };
  };

  return { main, resourceOf: (schema) => resources.get(schema), resolve };
};
