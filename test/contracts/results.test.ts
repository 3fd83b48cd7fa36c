import * as Context from "effect/Context";
import { artifactType, TypeAliasRegistry } from "../../src/core/artifact/alias.ts";
import { Artifact, ListArtifact, wireText } from "../../src/core/artifact/artifact.ts";
import type { RawToolResult } from "../../src/core/contracts.ts";
import { resultNormalizer } from "../../src/core/ports.ts";
import { artifactRehydrator } from "../../src/plugins/rehydrators/artifact.ts";
import { ResultWalker } from "../../src/plugins/results/walker.ts";
import { artifactRehydratorContract, artifactTypeContract, resultNormalizerContract } from "../../src/testing.ts";
import { checkSuite } from "./check-suite.ts";

class Cite extends Artifact {
  static override readonly typeAlias: string = "link:cite";
  readonly url: string;
  constructor(url: string) {
    super();
    this.url = url;
  }
  static fromWire(payload: Readonly<Record<string, unknown>>): Cite | undefined {
    return typeof payload["url"] === "string" ? new Cite(payload["url"]) : undefined;
  }
}

const own = (artifact: Artifact): { result: RawToolResult; ref: string } => ({
  result: { content: [{ type: "text", text: wireText(artifact) }], isError: false },
  ref: artifact.ref,
});
const cite = new Cite("https://example.com/a");
const artifacts = [own(cite), own(new ListArtifact([cite, new Cite("https://example.com/b")]))];

checkSuite(
  "plain result",
  resultNormalizerContract({ normalizer: Context.get(Context.empty(), resultNormalizer.service) }),
);
checkSuite("result walker", resultNormalizerContract({ normalizer: new ResultWalker() }));
checkSuite(
  "artifact rehydrator",
  artifactRehydratorContract({
    rehydrator: artifactRehydrator,
    own: artifacts,
    types: new TypeAliasRegistry([artifactType(Cite)]),
  }),
);
checkSuite(
  "artifact rehydrator that knows no class",
  artifactRehydratorContract({ rehydrator: artifactRehydrator, own: artifacts }),
);

checkSuite(
  "artifact type",
  artifactTypeContract({
    type: artifactType(Cite),
    own: [{ artifact_ref: cite.ref, url: cite.url }],
    refused: [{}, { url: 7 }],
  }),
);

/** Holds other artifacts. */
class Shelf extends Artifact {
  static override readonly typeAlias: string = "shelf";
  readonly best: Artifact;
  readonly label: string;
  constructor(best: Artifact, label: string) {
    super();
    this.best = best;
    this.label = label;
  }
  static fromWire({ best, label }: Readonly<Record<string, unknown>>, revive: (part: unknown) => Artifact): Shelf {
    if (typeof label !== "string") throw new Error("it has no label");
    return new Shelf(revive(best), label);
  }
}
checkSuite(
  "artifact type that holds others",
  artifactTypeContract({
    type: artifactType(Shelf),
    own: [{ artifact_ref: "artifact:shelf~1", best: { artifact_ref: cite.ref, url: cite.url }, label: "A" }],
    refused: [{ best: 1 }],
    others: [artifactType(Cite)],
  }),
);
