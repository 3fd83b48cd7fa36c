/**
 * Results for clients whose models cannot take large ones: within a budget, with a ref,
 * and with the tool that pages through the rest.
 */
import * as Effect from "effect/Effect";
import { lift } from "../../core/answer.ts";
import { Artifact, ListArtifact } from "../../core/artifact/artifact.ts";
import { McpArtifact } from "../../core/artifact/mcp-artifact.ts";
import { carriedRef } from "../../core/artifact/ref.ts";
import { modelBudget } from "../../core/artifact/serialize.ts";
import { sizeWithin } from "../../core/artifact/json.ts";
import type { RawToolResult } from "../../core/contracts.ts";
import type { PromiseRuntime } from "../../core/promise.ts";
import { makeToolResult, type McpToolResult } from "../../core/results.ts";
import type { HostTool, ServedRuntime } from "./served-runtime.ts";

type PagingRuntime = ServedRuntime & Pick<PromiseRuntime, "modelText" | "keepArtifact">;

/** Pictures and sound are for the client; their bytes are no text. */
const isMedia = ({ type }: { readonly type: string }): boolean => type === "image" || type === "audio";

const isLong = ({ content, structuredContent }: RawToolResult): boolean =>
  sizeWithin([structuredContent ?? null, content.filter((block) => !isMedia(block))], modelBudget, 500) === undefined;

/** A result of a class is whole: whoever knows the class rebuilds it of its fields. */
const isTyped = (artifact: unknown): boolean =>
  !(artifact instanceof McpArtifact) || carriedRef(artifact.data) !== undefined;

const shorten = (result: McpToolResult, modelText: PromiseRuntime["modelText"]): McpToolResult => {
  const { raw, resultArtifact } = result;
  if (isTyped(resultArtifact) || !isLong(raw)) return result;
  const { structuredContent: _, content, ...others } = raw;
  const text = { type: "text", text: modelText(result) };
  return makeToolResult({ ...others, content: [text, ...content.filter(isMedia)] }, resultArtifact);
};

/**
 * The runtime with `get_artifact_field` among its tools, and generic results cut to 8 KiB
 * of text. Tools then promise no structured content, as a cut result has none.
 */
export const withPagedResults = (runtime: PagingRuntime): ServedRuntime => ({
  connectors: runtime.connectors,
  client: runtime.client,
  settings: runtime.settings,
  tools: async (options) =>
    (await runtime.tools({ ...options, artifacts: true })).map((tool) => ({ ...tool, outputSchema: undefined })),
  callTool: async (call, options) => shorten(await runtime.callTool(call, options), runtime.modelText),
});

/** The tools, whose artifacts can then be read by their refs. */
export const withKeptArtifacts = (
  tools: ReadonlyArray<HostTool>,
  keep: PromiseRuntime["keepArtifact"],
): ReadonlyArray<HostTool> =>
  tools.map((tool) => ({
    ...tool,
    run: (args, context) =>
      Effect.tap(
        lift<unknown, never>(`tool ${tool.name}`, () => tool.run(args, context) as Effect.Effect<unknown>),
        (answer) => {
          const isList = Array.isArray(answer) && answer.length > 0 && answer.every((item) => item instanceof Artifact);
          const artifact = isList ? new ListArtifact(answer) : answer;
          return artifact instanceof Artifact ? Effect.promise(() => keep(artifact)) : Effect.void;
        },
      ),
  }));
