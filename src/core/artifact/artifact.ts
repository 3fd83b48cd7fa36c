/** Artifacts: results with an identity, which a model can refer to and read piece by piece. */
import { PluginFailed } from "../errors.ts";
import { isDeep, jsonText, parseJson } from "./json.ts";
import { isAlias, mintRef } from "./ref.ts";

/**
 * A thing a tool produced. Subclasses add plain JSON fields; the wire form is those
 * fields and `artifact_ref`.
 *
 * The alias of a class is its static `typeAlias`, set directly or with `typeAlias(...)`.
 * The ref is minted from the content when it is first asked for and stays the same
 * from then on, so read it only when the fields are final. A rehydrated artifact keeps
 * the ref its producer minted.
 *
 * @example
 * class Pubmed extends Artifact {
 *   static override readonly typeAlias: string = "link:cite:pubmed";
 *   readonly pmid: string;
 *   constructor(pmid: string) {
 *     super();
 *     this.pmid = pmid;
 *   }
 * }
 */
export abstract class Artifact {
  static readonly typeAlias: string | undefined = undefined;
  #ref: string | undefined;
  #plain: unknown;
  #onRef: (() => void) | undefined;

  /** `artifact:<alias>~<short id>`. */
  get ref(): string {
    if (this.#ref === undefined) {
      this.#ref = mintRef(aliasOfClass(this.constructor), this.identity());
      this.#onRef?.();
    }
    return this.#ref;
  }

  /** The ref, if anybody has asked for it yet. */
  get knownRef(): string | undefined {
    return this.#ref;
  }

  /** Artifacts inside that have refs of their own and live and die with this one. */
  parts(): Iterable<Artifact> {
    return [];
  }

  /** What goes to another process: everything, with `artifact_ref`. */
  toWire(): Readonly<Record<string, unknown>> {
    return { artifact_ref: this.ref, ...(this as Readonly<Record<string, unknown>>) };
  }

  /** What `JSON.stringify` and models see. */
  toJSON(): unknown {
    return this.toWire();
  }

  /** The plain JSON that pointers of `get_artifact_field` start from. Made once. */
  root(): unknown {
    return (this.#plain ??= parseJson(wireText(this)));
  }

  /** The content that the ref is a digest of, in pieces. */
  protected identity(): Iterable<string> {
    return [jsonText({ ...this })];
  }

  /** Calls `listener` when somebody first asks for the ref of an artifact that has none yet. It must not throw. */
  static onRef(artifact: Artifact, listener: () => void): void {
    artifact.#onRef = listener;
  }

  /** Gives a rebuilt artifact the ref it was minted with. */
  static adopt<A extends Artifact>(artifact: A, ref: string): A {
    artifact.#ref = ref;
    return artifact;
  }
}

/** The wire form as JSON text, artifacts inside it in their wire form too. */
export const wireText = (artifact: Artifact): string => {
  const wire = artifact.toWire();
  // Deep data is a server's, so it holds no artifacts.
  if (isDeep(wire)) return jsonText(wire);
  return JSON.stringify(wire, function (this: Record<string, unknown>, key, json: unknown) {
    const original = this[key];
    return original instanceof Artifact ? original.toWire() : json;
  });
};

const aliasOfClass = (constructor: Function): string => {
  const alias = (constructor as typeof Artifact).typeAlias;
  if (typeof alias === "string" && isAlias(alias)) return alias;
  throw new PluginFailed({
    plugin: constructor.name,
    reason: `the artifact class has no valid typeAlias. Set one, for example static typeAlias = "link:cite"`,
  });
};

/**
 * Sets the alias of an artifact class: `typeAlias("link:cite:pubmed")(Pubmed)`.
 * Also works as a class decorator, where the host's compiler has them.
 */
export const typeAlias =
  (alias: string) =>
  <C extends Function>(artifactClass: C): C =>
    Object.defineProperty(artifactClass, "typeAlias", { value: alias, enumerable: true, configurable: true });

/** A list whose items are artifacts. Its own alias is `list`. */
export class ListArtifact extends Artifact {
  static override readonly typeAlias: string = "list";
  readonly items: ReadonlyArray<Artifact>;

  constructor(items: ReadonlyArray<Artifact>) {
    super();
    this.items = items;
  }

  override parts(): Iterable<Artifact> {
    return this.items;
  }

  override toWire(): Readonly<Record<string, unknown>> {
    return { artifact_ref: this.ref, items: this.items.map((item) => item.toWire()) };
  }

  override toJSON(): unknown {
    return { artifact_ref: this.ref, items: this.items };
  }

  protected override identity(): Iterable<string> {
    return [jsonText(this.items.map((item) => item.ref))];
  }
}
