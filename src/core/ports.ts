/**
 * The named ports. A port has two faces: a tsyringe token, for hosts that register
 * plugins in a container, and an Effect reference with a null default, for hosts
 * that provide a Layer. An empty container is a working runtime.
 */
import * as Context from "effect/Context";
import type {
  ArtifactRehydrator,
  ArtifactStore,
  ArtifactType,
  CatalogPolicy,
  CredentialFlow,
  EndpointLoader,
  ErrorPresenter,
  HostHandlers,
  Observer,
  PinStore,
  ProtocolEngine,
  ResultNormalizer,
  SchemaNormalizer,
  SchemaValidator,
  TokenStore,
  TransportPlugin,
  VerdictStore,
} from "./contracts.ts";
import type { RawToolResult } from "./contracts.ts";

/** A port that holds one plugin: `S` is the plugin, or the null default. */
export interface Port<S> {
  readonly name: string;
  /** For tsyringe: `container.register(port.token, { useValue: plugin })`. */
  readonly token: symbol;
  /** For Effect: `Layer.succeed(port.service, plugin)`. */
  readonly service: Context.Reference<S>;
  /** The functions its contract asks for. */
  readonly verbs: ReadonlyArray<string>;
  /** Those it may have; a path with dots leads into an object. */
  readonly optionalVerbs: ReadonlyArray<string>;
}

/** A port that holds a list of plugins; `keyOf` tells which of them exclude each other. */
export interface ListPort<P> extends Port<ReadonlyArray<P>> {
  readonly keyOf: ((plugin: P) => string) | undefined;
}

type Verbs = readonly [required: ReadonlyArray<string>, optional?: ReadonlyArray<string>];

const one = <S>(name: string, [verbs, optionalVerbs = []]: Verbs, fallback: () => S): Port<S> => ({
  name,
  token: Symbol.for(`nucleo-mcp/${name}`),
  service: Context.Reference<S>(`nucleo-mcp/${name}`, { defaultValue: fallback }),
  verbs,
  optionalVerbs,
});

const many = <P>(name: string, verbs: Verbs, keyOf?: (plugin: P) => string): ListPort<P> => ({
  ...one<ReadonlyArray<P>>(name, verbs, () => []),
  keyOf,
});

/** Transports by `kind`. */
export const transports: ListPort<TransportPlugin> = many(
  "transports",
  [["open"], ["gates", "eras"]],
  (plugin) => plugin.kind,
);
/** Protocol engines by `era`. */
export const engines: ListPort<ProtocolEngine> = many("engines", [["connect"]], (plugin) => plugin.era);
/** Credential flows by `kind`. */
export const credentialFlows: ListPort<CredentialFlow> = many(
  "credentialFlows",
  [["authorize"]],
  (plugin) => plugin.kind,
);
/** Schema normalizers, folded in order; by `name`. */
export const schemaNormalizers: ListPort<SchemaNormalizer> = many(
  "schemaNormalizers",
  [["normalize"]],
  (plugin) => plugin.name,
);
/** Rehydrators, asked in order. */
export const artifactRehydrators: ListPort<ArtifactRehydrator> = many("artifactRehydrators", [["rehydrate"]]);
/** Typed artifacts that can be rebuilt, by `alias`. */
export const artifactTypes: ListPort<ArtifactType> = many("artifactTypes", [["fromWire"]], (type) => type.alias);
/** Catalog policies, folded in order. */
export const catalogPolicies: ListPort<CatalogPolicy> = many("catalogPolicies", [["decide"]]);
/** Observers of events. */
export const observers: ListPort<Observer> = many("observers", [["on"]]);
/** Endpoint loaders by `kind`. */
export const endpointLoaders: ListPort<EndpointLoader> = many("endpointLoaders", [["load"]], (plugin) => plugin.kind);
/** Checks arguments and structured results. Null default: everything fits. */
export const schemaValidator: Port<SchemaValidator> = one<SchemaValidator>("schemaValidator", [["compile"]], () => ({
  compile: () => () => [],
}));
/** Makes what a model sees of a result. Null default: the plain result. */
export const resultNormalizer: Port<ResultNormalizer> = one<ResultNormalizer>(
  "resultNormalizer",
  [["normalize"]],
  () => ({
    normalize: (result: RawToolResult) => result,
  }),
);
/** Answers what servers ask of the host. Null default: nothing is advertised. */
export const hostHandlers: Port<HostHandlers> = one<HostHandlers>(
  "hostHandlers",
  [[], ["sampling", "elicitation.form", "elicitation.url", "roots"]],
  () => ({}),
);
/** Words errors for models. Null default: the error's own message. */
export const errorPresenter: Port<ErrorPresenter> = one<ErrorPresenter>("errorPresenter", [["present"]], () => ({
  present: (error: Error) => error.message,
}));

/** Keeps tokens over restarts. Null default: they live in memory only. */
export const tokenStore: Port<TokenStore> = one<TokenStore>("tokenStore", [["load", "save", "remove"]], () => ({
  load: () => undefined,
  save: () => {},
  remove: () => {},
}));

/** Keeps over restarts which protocol era each endpoint speaks. Null default: it is learnt anew. */
export const verdictStore: Port<VerdictStore> = one<VerdictStore>("verdictStore", [["load", "save", "remove"]], () => ({
  load: () => undefined,
  save: () => {},
  remove: () => {},
}));

/** Keeps artifacts over restarts. Null default: their refs end with the process, or when memory is full. */
export const artifactStore: Port<ArtifactStore | undefined> = one<ArtifactStore | undefined>(
  "artifactStore",
  [["put", "get"]],
  () => undefined,
);

/** Keeps over restarts which tools of pinned servers are approved. Null default: as long as the runtime lives. */
export const pinStore: Port<PinStore | undefined> = one<PinStore | undefined>(
  "pinStore",
  [["load", "save"]],
  () => undefined,
);

/** All ports that hold one plugin, and all that hold lists. */
export const singlePorts: ReadonlyArray<Port<any>> = [
  schemaValidator,
  resultNormalizer,
  hostHandlers,
  errorPresenter,
  tokenStore,
  verdictStore,
  artifactStore,
  pinStore,
];
export const listPorts: ReadonlyArray<ListPort<any>> = [
  transports,
  engines,
  credentialFlows,
  schemaNormalizers,
  artifactRehydrators,
  artifactTypes,
  catalogPolicies,
  observers,
  endpointLoaders,
];
