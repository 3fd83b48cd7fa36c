/** The contracts of `ResultNormalizer` and `ArtifactRehydrator`. */
import type { ArtifactRehydrator, RawToolResult, ResultNormalizer, ResultSource } from "../core/contracts.ts";
import { answerOf, type ContractSuite, demand, demandSame, frozen } from "./contract-case.ts";

const source: ResultSource = { handle: "contract", tool: "tool", endpointId: "contract:endpoint" };

const text = (value: string): RawToolResult => ({ content: [{ type: "text", text: value }], isError: false });

/** Results as servers send them, strange ones included. */
const results: Readonly<Record<string, RawToolResult>> = {
  "a text": text("hello contract"),
  "no content": { content: [], isError: false },
  "an error": { content: [{ type: "text", text: "it broke" }], isError: true },
  "a text that holds JSON": text('{"a":[1,2,{"b":null}]}'),
  "a text that looks like JSON": text('{"a":'),
  "structured content": { content: [], structuredContent: { a: 1 }, isError: false },
  "structured content that is no object": { content: [], structuredContent: [null, 1, "x"], isError: false },
  "an image": { content: [{ type: "image", data: "iVBORw0KGgo=", mimeType: "image/png" }], isError: false },
  "an image that is no base64": { content: [{ type: "image", data: "%%%", mimeType: "image/png" }], isError: false },
  "an audio without data": { content: [{ type: "audio" }], isError: false },
  "an embedded resource": {
    content: [{ type: "resource", resource: { uri: "file:///a.txt", text: "inside", mimeType: "text/plain" } }],
    isError: false,
  },
  "a resource without a resource": { content: [{ type: "resource" }], isError: false },
  "a resource link": { content: [{ type: "resource_link", uri: "file:///a.txt", name: "a" }], isError: false },
  "a type nobody knows": { content: [{ type: "hologram", rays: 5 }], isError: false },
  "many blocks": {
    content: Array.from({ length: 200 }, (_, i) => ({ type: "text", text: `block ${i}` })),
    isError: false,
  },
  "a megabyte of text": text("x".repeat(1_000_000)),
  "keys of the prototype": { content: [], structuredContent: JSON.parse('{"__proto__":{"a":1}}'), isError: false },
};

export interface ResultNormalizerContractOptions {
  readonly normalizer: ResultNormalizer;
  /** Further results that have to be taken. */
  readonly results?: Readonly<Record<string, RawToolResult>>;
}

/** Cases every result normalizer has to pass. */
export const resultNormalizerContract = (options: ResultNormalizerContractOptions): ContractSuite => {
  const seen = (result: RawToolResult): string | undefined =>
    JSON.stringify(options.normalizer.normalize(frozen(result), frozen({ ...source })));
  return [
    ...Object.entries({ ...results, ...options.results }).map(([what, result]) => ({
      name: `takes ${what}: pure, the same each time, and fit for JSON`,
      run: async () => {
        const first = seen(result);
        demand(typeof first === "string", "what a model would see is no JSON");
        demandSame("a second time", seen(result), first);
      },
    })),
    {
      name: "shows a short text as it is",
      run: async () => {
        const shown = seen(results["a text"]!);
        demand(shown?.includes("hello contract"), `it shows ${shown?.slice(0, 200)}`);
      },
    },
  ];
};

export interface ArtifactRehydratorContractOptions {
  readonly rehydrator: ArtifactRehydrator;
  /** Results it has to rebuild, each with the ref they carry. */
  readonly own: ReadonlyArray<{ readonly result: RawToolResult; readonly ref: string }>;
  /** What the host knows of artifact classes. */
  readonly types?: ResultSource["types"];
}

/** Cases every artifact rehydrator has to pass. */
export const artifactRehydratorContract = (options: ArtifactRehydratorContractOptions): ContractSuite => {
  const { rehydrator, own } = options;
  const rehydrate = (result: RawToolResult): Promise<unknown> =>
    answerOf<unknown>("rehydrate", () => rehydrator.rehydrate(frozen(result), { ...source, types: options.types }));
  return [
    ...Object.entries(results).map(([what, result]) => ({
      name: `leaves ${what} to others`,
      run: async () => demandSame("answer", await rehydrate(result), undefined),
    })),
    ...own.map(({ result, ref }, i) => ({
      name: `rebuilds its own result ${i + 1}, the ref as minted, the same each time`,
      run: async () => {
        const artifact = await rehydrate(result);
        demand(typeof artifact === "object" && artifact !== null, "it answers no artifact");
        const seen = JSON.stringify(artifact);
        demand(seen.includes(JSON.stringify(ref)), `the ref ${ref} does not show`);
        demandSame("a second time", JSON.stringify(await rehydrate(result)), seen);
      },
    })),
    ...own.map(({ result }, i) => ({
      name: `leaves its own result ${i + 1} to others when it is an error`,
      run: async () => demandSame("answer", await rehydrate({ ...result, isError: true }), undefined),
    })),
  ];
};
