/** The contract of `ArtifactType`. */
import { TypeAliasRegistry } from "../core/artifact/alias.ts";
import { Artifact } from "../core/artifact/artifact.ts";
import { sameJson } from "../core/artifact/json.ts";
import { aliasOf, isAlias } from "../core/artifact/ref.ts";
import type { ArtifactType } from "../core/contracts.ts";
import { type ContractSuite, demand, demandSame } from "./contract-case.ts";

type Payload = Readonly<Record<string, unknown>>;

const strange: Readonly<Record<string, Payload>> = {
  "a payload without fields": {},
  "a payload whose fields are null": { id: null, title: null, items: null, data: null },
  "a payload of fields it cannot know": { hologram: { rays: [5] }, artifact_ref: 7 },
  "keys of the prototype": JSON.parse('{"__proto__":{"a":1},"constructor":"x","toString":null}') as Payload,
};

export interface ArtifactTypeContractOptions {
  readonly type: ArtifactType;
  /** Wire forms that it rebuilds: its fields, and the `artifact_ref` that they were minted with. */
  readonly own: ReadonlyArray<Payload & { readonly artifact_ref: string }>;
  /** Payloads that it has to refuse: `undefined`, or a throw. */
  readonly refused?: ReadonlyArray<Payload> | undefined;
  /** Types of artifacts that are inside its own. */
  readonly others?: ReadonlyArray<ArtifactType> | undefined;
}

/** Cases every type of artifacts has to pass. */
export const artifactTypeContract = (options: ArtifactTypeContractOptions): ContractSuite => {
  const { type, own, refused = [], others = [] } = options;
  const registry = new TypeAliasRegistry([type, ...others]);
  const revive = (part: unknown): Artifact => registry.revive(part, { mcpHandle: "contract", toolName: "tool" });
  /** `undefined` where it refuses. */
  const rebuild = (payload: Payload): unknown => {
    const given = structuredClone(payload);
    const made = (() => {
      try {
        return type.fromWire(given, revive);
      } catch {
        return undefined;
      }
    })();
    demandSame("the payload afterwards", given, payload);
    return made;
  };
  return [
    {
      name: "has an alias: segments of letters, digits, '_', '.' and '-', joined by colons",
      run: async () => demand(isAlias(type.alias), `'${type.alias}' is no alias`),
    },
    ...own.map((payload, i) => ({
      name: `rebuilds its own payload ${i + 1} whole, the ref as minted, the same each time`,
      run: async () => {
        const [once, again] = [rebuild(payload), rebuild(payload)];
        demand(once instanceof Artifact && again instanceof Artifact, "it answers no artifact");
        demand(once !== again, "it answers the same object twice; the second would take the first one's ref");
        demandSame("alias of the ref it mints", aliasOf(once.ref), type.alias);
        const wire: unknown = JSON.parse(JSON.stringify(Artifact.adopt(again, payload.artifact_ref).toWire()));
        demand(sameJson(wire, payload), `it goes out as ${JSON.stringify(wire).slice(0, 200)}`);
      },
    })),
    ...refused.map((payload, i) => ({
      name: `refuses payload ${i + 1} that does not fit`,
      run: async () => demand(rebuild(payload) === undefined, "it made an artifact of it"),
    })),
    ...Object.entries(strange).map(([what, payload]) => ({
      name: `makes an artifact of ${what}, or refuses it`,
      run: async () => {
        const made = rebuild(payload);
        demand(made === undefined || made instanceof Artifact, "it answers neither an artifact nor undefined");
      },
    })),
  ];
};
