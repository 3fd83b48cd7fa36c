/** The generic artifact: any JSON a tool answered, with a cache of summaries for its large parts. */
import { Artifact } from "./artifact.ts";
import { cursorOf, childAt, jsonPieces, jsonText, keyAt, scalarSize } from "./json.ts";
import { childPointer } from "./pointer.ts";
import { carriedRef } from "./ref.ts";
import { stubText, summarize, type Summary } from "./summary.ts";

export interface McpArtifactFields {
  readonly data: unknown;
  /** Logical name of the server it came from. */
  readonly mcpHandle: string;
  readonly toolName: string;
  /** Summaries by JSON Pointer into `data`. */
  readonly summaries?: ReadonlyMap<string, Summary> | undefined;
  /** Parts that are artifacts of their own, by JSON Pointer into `data`. */
  readonly nested?: ReadonlyMap<string, McpArtifact> | undefined;
  /** Bytes of `data` as JSON text, where known. */
  readonly size?: number | undefined;
}

/** A value as a model sees it, and its bytes as JSON text. */
export interface Shown {
  readonly value: unknown;
  readonly size: number;
}

/** Deepest level shown of any value; pointers reach what lies below. */
export const shownDepth = 64;

/**
 * JSON of one tool result. Its serialization shows the summary where the cache has
 * one, the ref where a part is an artifact of its own, and the value elsewhere.
 * `data` itself is always whole.
 */
export class McpArtifact extends Artifact {
  static override readonly typeAlias: string = "mcp";
  readonly data: unknown;
  readonly mcpHandle: string;
  readonly toolName: string;
  /** Summaries by JSON Pointer into `data`. A host may set better ones. */
  readonly summaries: Map<string, Summary>;
  readonly nested: ReadonlyMap<string, McpArtifact>;
  readonly size: number | undefined;

  constructor(fields: McpArtifactFields) {
    super();
    this.data = fields.data;
    this.mcpHandle = fields.mcpHandle;
    this.toolName = fields.toolName;
    this.summaries = new Map(fields.summaries);
    this.nested = fields.nested ?? new Map();
    this.size = fields.size;
    const ref = carriedRef(fields.data);
    if (ref !== undefined) Artifact.adopt(this, ref);
  }

  override *parts(): Iterable<Artifact> {
    for (const part of this.nested.values()) {
      yield part;
      yield* part.parts();
    }
  }

  override root(): unknown {
    return this.data;
  }

  /** The data as it came when it carries its own ref, else wrapped. Summaries are not carried. */
  override toWire(): Readonly<Record<string, unknown>> {
    return this.#wrap(this.data);
  }

  override toJSON(): unknown {
    return this.#wrap(this.shown("", this.data, Number.POSITIVE_INFINITY)!.value);
  }

  /** The part at `pointer` as a model sees it; `undefined` when that has more than `maxBytes` bytes. */
  shown(pointer: string, value: unknown, maxBytes: number): Shown | undefined {
    let left = maxBytes;
    const spend = <A>(value: A, bytes: number): A => {
      left -= bytes;
      return value;
    };
    const note = (value: object): object => spend(value, jsonText(value).length);
    const copy = (value: unknown, pointer: string, depth: number): unknown => {
      if (left < 0) return undefined;
      const nested = pointer === "" ? undefined : this.nested.get(pointer);
      if (nested) return note({ artifact_ref: nested.ref, ...summarize(nested.data, 200, nested.size) });
      const summary = this.summaries.get(pointer);
      if (summary) return note({ ...summary, get_artifact_field: { ref: this.ref, pointer } });
      if (typeof value !== "object" || value === null) return spend(value, scalarSize(value));
      if (depth >= shownDepth) return spend(stubText(value), 200);
      const cursor = cursorOf(value);
      if (cursor.count > left) return spend(undefined, Number.POSITIVE_INFINITY);
      left -= 2 + cursor.count;
      const entries: Array<[string | number, unknown]> = [];
      for (let i = 0; i < cursor.count && left >= 0; i++) {
        const key = keyAt(cursor, i);
        if (typeof key === "string") left -= scalarSize(key) + 1;
        entries.push([key, copy(childAt(cursor, i), childPointer(pointer, key), depth + 1)]);
      }
      return cursor.keys ? Object.fromEntries(entries) : entries.map(([, item]) => item);
    };
    const copied = copy(value, pointer, 0);
    return left < 0 ? undefined : { value: copied, size: maxBytes - left };
  }

  protected override identity(): Iterable<string> {
    return jsonPieces([this.mcpHandle, this.toolName, this.data]);
  }

  #wrap(data: unknown): Readonly<Record<string, unknown>> {
    if (carriedRef(this.data) === this.ref) return { ...(data as object), artifact_ref: this.ref };
    return { artifact_ref: this.ref, mcpHandle: this.mcpHandle, toolName: this.toolName, data };
  }
}
