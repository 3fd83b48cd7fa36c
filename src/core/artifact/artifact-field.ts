/** `get_artifact_field`: the tool that lets a model read any part of an artifact, page by page. */
import * as Effect from "effect/Effect";
import { type ArgumentIssue, InvalidArguments } from "../errors.ts";
import { type ArtifactNotFound, PointerUnresolved } from "./artifact-errors.ts";
import type { ArtifactRegistry } from "./artifact-registry.ts";
import { cursorOf, isRecord, scalarSize } from "./json.ts";
import { type Page, takePage } from "./page.ts";
import { formatPointer, parsePointer, type Resolved, resolveTokens } from "./pointer.ts";
import { modelBudget } from "./serialize.ts";
import { kindOf } from "./summary.ts";

/** The tool as a model sees it. */
export const artifactFieldTool: {
  readonly name: "get_artifact_field";
  readonly description: string;
  readonly inputSchema: Readonly<Record<string, unknown>>;
  readonly annotations: Readonly<Record<string, unknown>>;
} = {
  name: "get_artifact_field",
  description:
    "Reads a part of an artifact, that is, of a tool result that was too long to show. Answers one page: " +
    "`value`, the `total` (characters, items or keys), and `next`, the offset of the next page if there is one. " +
    "Entries whose keys are listed in `cut` are only named; read each by its own pointer.",
  inputSchema: {
    type: "object",
    properties: {
      ref: { type: "string", description: "The artifact_ref, for example artifact:mcp~0123456789ab." },
      pointer: {
        type: "string",
        description: "JSON Pointer (RFC 6901) into the artifact, for example /rows/0/name. Default: the whole.",
      },
      offset: { type: "integer", minimum: 0, description: "First character, item or key. Default 0." },
      length: { type: "integer", minimum: 1, description: "At most so many. Default: as many as fit on a page." },
    },
    required: ["ref"],
  },
  annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
};

export interface ArtifactFieldRequest {
  readonly ref: string;
  readonly pointer?: string | undefined;
  readonly offset?: number | undefined;
  readonly length?: number | undefined;
}

/** One page of an artifact, and whose page it is. */
export interface ArtifactFieldPage extends Page {
  readonly ref: string;
  readonly pointer: string;
}

const wholeNumber = (value: unknown, least: number): boolean =>
  value === undefined || value === null || (Number.isSafeInteger(value) && (value as number) >= least);

const issuesOf = (input: unknown): ReadonlyArray<ArgumentIssue> => {
  if (!isRecord(input)) return [{ pointer: "", message: "must be an object" }];
  const { ref, pointer, offset, length } = input;
  const issues: Array<ArgumentIssue> = [];
  if (typeof ref !== "string") issues.push({ pointer: "/ref", message: "must be a string" });
  if (pointer != null && typeof pointer !== "string") issues.push({ pointer: "/pointer", message: "must be a string" });
  if (!wholeNumber(offset, 0)) issues.push({ pointer: "/offset", message: "must be a whole number of at least 0" });
  if (!wholeNumber(length, 1)) issues.push({ pointer: "/length", message: "must be a whole number of at least 1" });
  return issues;
};

/** What there is where a pointer stopped leading on. */
const whatIsThere = (value: unknown): string => {
  const kind = kindOf(value);
  if (kind === "list") return `is a list of ${(value as ReadonlyArray<unknown>).length} items, counted from 0`;
  if (kind !== "object") return `is a ${kind}, which holds no members`;
  const { keys, count } = cursorOf(value as object);
  const some = keys!.slice(0, 12).map((key) => JSON.stringify(key.slice(0, 60)));
  return `is an object with the keys ${some.join(", ")}${count > some.length ? `, and ${count - some.length} more` : ""}`;
};

const unresolved = (ref: string, pointer: string, tokens: ReadonlyArray<string>, stop: Resolved & { found: false }) =>
  new PointerUnresolved({
    ref,
    pointer: pointer.slice(0, 200),
    at: formatPointer(tokens.slice(0, stop.depth)).slice(0, 200),
    reason: whatIsThere(stop.value),
  });

/**
 * Reads one page of an artifact. Its JSON text has at most `budget` bytes, unless a
 * single key or pointer alone is longer. Following `next`, and the pointers of `cut`
 * entries, reads every byte.
 */
export const getArtifactField = (
  registry: Pick<ArtifactRegistry, "find">,
  input: unknown,
  budget: number = modelBudget,
): Effect.Effect<ArtifactFieldPage, InvalidArguments | ArtifactNotFound | PointerUnresolved> =>
  Effect.gen(function* () {
    const issues = issuesOf(input);
    if (issues.length > 0) return yield* new InvalidArguments({ tool: artifactFieldTool.name, issues });
    const request = input as ArtifactFieldRequest;
    const artifact = yield* registry.find(request.ref);
    const pointer = request.pointer ?? "";
    const tokens = parsePointer(pointer);
    if (!tokens) {
      const reason = "it must be empty or begin with '/', and '~' must be written '~0'";
      return yield* new PointerUnresolved({ ref: request.ref, pointer: pointer.slice(0, 200), at: "", reason });
    }
    const resolved = resolveTokens(artifact.root(), tokens);
    if (!resolved.found) return yield* unresolved(request.ref, pointer, tokens, resolved);
    const page = takePage(resolved.value, {
      offset: request.offset ?? 0,
      length: request.length ?? undefined,
      maxBytes: Math.max(64, budget - 200 - request.ref.length - scalarSize(pointer)),
    });
    return { ref: request.ref, pointer, ...page };
  });
