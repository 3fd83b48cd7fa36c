/**
 * Every interface a plugin may implement, on one page. Types only.
 *
 * A contract has one verb, takes plain data, and may answer a value, a Promise
 * or an Effect. A plugin is a value: register it in `setup(container)`.
 */
import type { Transport as SdkTransport } from "@modelcontextprotocol/sdk/shared/transport.js";
import type {
  ClientCapabilities,
  CreateMessageRequest,
  CreateMessageResult,
  CreateMessageResultWithTools,
  ElicitRequestFormParams,
  ElicitRequestURLParams,
  ElicitResult,
  Implementation,
  LoggingLevel,
  Progress,
  Root,
  ServerCapabilities,
} from "@modelcontextprotocol/sdk/types.js";
import type * as Scope from "effect/Scope";
import type { Answer } from "./answer.ts";
import type { TypeAliasRegistry } from "./artifact/alias.ts";
import type { Artifact } from "./artifact/artifact.ts";
import type { Credential, Era, McpEndpoint } from "./endpoint.ts";
import type { ArgumentIssue, McpError, ProcessEnd } from "./errors.ts";
import type { McpEvent } from "./events.ts";
import type { PinnedDefinition } from "./pinning/fingerprint.ts";
import type { McpSettings } from "./settings.ts";

export type {
  ClientCapabilities,
  CreateMessageResult,
  ElicitResult,
  Implementation,
  LoggingLevel,
  Progress,
  Root,
  ServerCapabilities,
};

/** Slots a call needs: gate name to count. Granted whole or not at all. */
export type Demand = ReadonlyMap<string, number>;

/** A gate a transport wants to exist, with its capacity. */
export interface GateSpec {
  readonly name: string;
  readonly capacity: number;
}

// ── Transports ──────────────────────────────────────────────────────────────

/**
 * A message channel to one server: the SDK's own `Transport` shape, so any SDK
 * transport is one. What ours add is optional.
 *
 * To fail one request with a typed error, deliver a JSON-RPC error response for
 * its id whose `data` is an `McpError` instance; it reaches the caller as itself.
 * `send` may reject with an `McpError` likewise. `close()` settles when nothing of
 * the connection is left.
 */
export interface McpTransport extends SdkTransport {
  /** Process id of a subprocess, for health. */
  readonly pid?: number | undefined;
  /** How the other side ended and what it last said, for errors. */
  readonly end?: (() => ProcessEnd) | undefined;
}

export interface TransportContext {
  /** The endpoint's label. */
  readonly name: string;
  readonly settings: McpSettings;
  /** The era the connection will speak; an HTTP transport differs by it. */
  readonly era: Era;
  /** Reports something odd that harmed no request, for example a skipped line. */
  readonly diagnose: (message: string) => void;
  /** Present when the endpoint has a credential and a flow of its kind is registered. */
  readonly authorize?: ((request: AuthorizeRequest) => Promise<Authorization>) | undefined;
}

/** Opens connections to endpoints whose `transportType` equals `kind`. */
export interface TransportPlugin<E extends McpEndpoint = McpEndpoint> {
  readonly kind: string;
  /**
   * Opens a channel. A Scope is provided: what is acquired in it is released when
   * the client closes. Fail with `ConnectFailed` where the cause is known.
   */
  readonly open: (endpoint: E, context: TransportContext) => Answer<McpTransport, McpError, Scope.Scope>;
  /** Gates of one call; the first is the client's `limiter` when it is the endpoint's own. Default: none. */
  readonly gates?: ((endpoint: E, settings: McpSettings) => ReadonlyArray<GateSpec>) | undefined;
  /** True for transports whose connections count against `stdioProcessMax`. */
  readonly subprocess?: boolean | undefined;
  /**
   * The eras it can carry to this endpoint, in the order in which `era: "auto"` tries
   * them. Default: legacy, then modern.
   */
  readonly eras?: ((endpoint: E) => ReadonlyArray<Era>) | undefined;
  /** True when a connection carries only the era it was opened for. Default: all eras share one. */
  readonly eraBound?: boolean | undefined;
}

// ── Protocol engines ────────────────────────────────────────────────────────

export interface SessionRequestOptions {
  /** Aborting it cancels on the wire; the request then rejects with `signal.reason`. Made when asked for. */
  readonly signal: AbortSignal;
  /** The same without the cost of a signal: called once with the reason, unless the request ended before. */
  readonly onCancel?: ((listener: (reason: unknown) => void) => void) | undefined;
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /**
   * Called when the server waits for the host, perhaps for a person, to go on; answers
   * what to call when the host is done. The silence in between is not the server's.
   */
  readonly onHostWork?: (() => () => void) | undefined;
}

/** A live protocol session. Rejections are `McpError`s. */
export interface EngineSession {
  readonly era: Era;
  readonly protocolVersion: string;
  readonly serverInfo: Implementation;
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
  readonly request: (
    method: string,
    params: Record<string, unknown> | undefined,
    options: SessionRequestOptions,
  ) => Promise<unknown>;
  readonly notify: (method: string, params?: Record<string, unknown>) => Promise<void>;
  /** Ends the session politely; the transport is closed by its scope. */
  readonly close: () => Promise<void>;
}

/** What a session tells core. */
export interface SessionListener {
  readonly onNotification: (method: string, params: Record<string, unknown>) => void;
  /** The connection is gone; called once. */
  readonly onClose: (error: McpError | undefined) => void;
  readonly onDiagnostic: (message: string) => void;
}

export interface EngineConnectOptions {
  readonly endpoint: McpEndpoint;
  readonly name: string;
  readonly transport: McpTransport;
  readonly clientInfo: Implementation;
  readonly handlers: HostHandlers;
  readonly settings: McpSettings;
  readonly listener: SessionListener;
  /** Aborted when the connect deadline passes or every caller gave up. */
  readonly signal: AbortSignal;
}

/** Speaks one protocol era over a transport. */
export interface ProtocolEngine {
  readonly era: Era;
  /** Performs the handshake. Rejects with `ConnectFailed` (phase `handshake`) or a more exact `McpError`. */
  readonly connect: (options: EngineConnectOptions) => Answer<EngineSession>;
}

/** What was learnt about an endpoint, and when: epoch ms. */
export interface EraVerdict {
  readonly era: Era;
  readonly at: number;
}

/** Keeps over restarts which era each endpoint speaks. Keys are endpoint ids; nothing in it is secret. */
export interface VerdictStore {
  readonly load: (endpointId: string) => Answer<EraVerdict | undefined>;
  readonly save: (endpointId: string, verdict: EraVerdict) => Answer<void>;
  readonly remove: (endpointId: string) => Answer<void>;
}

// ── Credentials ─────────────────────────────────────────────────────────────

export interface AuthorizeRequest {
  /** URL of the request that needs authorization. */
  readonly url: string;
  readonly method: string;
  /** The endpoint's label, for messages. Default: host and path of the URL. */
  readonly server?: string | undefined;
  /** Present when the server refused: what it said, and which authorization it refused. */
  readonly rejected?:
    | {
        readonly status: number;
        /** The WWW-Authenticate header; several are joined by a comma. */
        readonly challenge: string | undefined;
        /** The very object that was answered for the refused request, not a copy. */
        readonly authorization: Authorization | undefined;
        /** The DPoP-Nonce header (RFC 9449 section 9). */
        readonly nonce?: string | undefined;
        /** A short sample of the body, for messages. */
        readonly detail?: string | undefined;
      }
    | undefined;
}

/** Headers to add to the request. */
export interface Authorization {
  readonly headers: Readonly<Record<string, string>>;
}

export interface CredentialFlow<C extends Credential = Credential> {
  readonly kind: string;
  /**
   * Answers the authorization for one request, anew for each. Called again, with
   * `rejected`, after each 401 or 403 of that request; the request is then sent
   * again, three times at most (for a token, a wider scope, a nonce). A flow that has
   * nothing better fails with `Unauthorized`, `InsufficientScope` or a more exact
   * error, which reaches the caller as itself.
   */
  readonly authorize: (credential: C, request: AuthorizeRequest) => Answer<Authorization>;
}

/**
 * Keeps tokens over restarts. Values are secrets: keep them where only their owner
 * reads them, and write them whole or not at all. Keys are not secret.
 */
export interface TokenStore {
  readonly load: (key: string) => Answer<string | undefined>;
  readonly save: (key: string, secret: string) => Answer<void>;
  readonly remove: (key: string) => Answer<void>;
}

// ── Pins ────────────────────────────────────────────────────────────────────

/** A tool as it was when it was approved. */
export interface ToolPin {
  /** The server's own name of the tool. */
  readonly tool: string;
  /** SHA-256 of the definition's canonical JSON (RFC 8785), lower-case hex. */
  readonly digest: string;
  /** Epoch ms. */
  readonly approvedAt: number;
  /** The pinned parts, as the server listed them. */
  readonly definition: PinnedDefinition;
}

/**
 * Keeps over restarts which tools of a pinned server are approved. A key stands for a
 * handle and a server; nothing in it or in the pins is secret. What is kept and cannot be
 * read is a failure, never `undefined`: that would approve whatever the server says next.
 */
export interface PinStore {
  /** Answers `undefined` when nothing was ever approved. */
  readonly load: (key: string) => Answer<ReadonlyArray<ToolPin> | undefined>;
  /** Replaces all pins of the key. */
  readonly save: (key: string, pins: ReadonlyArray<ToolPin>) => Answer<void>;
}

// ── Schemas ─────────────────────────────────────────────────────────────────

export type JsonSchema = { readonly [key: string]: unknown };

export interface NormalizedSchema {
  readonly schema: JsonSchema;
  /** What was repaired or given up, for the host. */
  readonly diagnostics: ReadonlyArray<string>;
  /** Text to add to the tool's description, where meaning left the schema. */
  readonly note?: string | undefined;
}

/** Pure. Turns a server's input schema into one a model provider accepts; throws `SchemaRejected` when hopeless. */
export interface SchemaNormalizer {
  readonly name: string;
  readonly normalize: (schema: unknown, tool: { readonly name: string }) => NormalizedSchema;
}

/** Compiles a schema into a check. Throws when the schema itself cannot be compiled. */
export interface SchemaValidator {
  readonly compile: (schema: JsonSchema) => Answer<(value: unknown) => ReadonlyArray<ArgumentIssue>>;
}

// ── Results ─────────────────────────────────────────────────────────────────

export interface ResultSource {
  readonly handle: string;
  readonly tool: string;
  readonly endpointId: string;
  /** Rebuilds artifacts by their alias. Absent: no class is known. */
  readonly types?: Pick<TypeAliasRegistry, "revive"> | undefined;
  /** Reports something odd that did not spoil the result, for example a lying MIME type. */
  readonly diagnose?: ((message: string) => void) | undefined;
}

/** The raw answer of tools/call, made safe: `content` is always a list of objects. */
export interface RawToolResult {
  readonly content: ReadonlyArray<ContentBlock>;
  readonly structuredContent?: unknown;
  readonly isError: boolean;
  readonly _meta?: Readonly<Record<string, unknown>> | undefined;
}

/** One content block as the server sent it; `type` tells the rest. */
export type ContentBlock = { readonly type: string } & Readonly<Record<string, unknown>>;

/** Pure. Turns a raw result into what a model sees. */
export interface ResultNormalizer {
  readonly normalize: (result: RawToolResult, source: ResultSource) => unknown;
}

/** Rebuilds a typed artifact from a result; answers `undefined` when the result is not its own. */
export interface ArtifactRehydrator {
  readonly rehydrate: (result: RawToolResult, source: ResultSource) => unknown;
}

/** One kind of typed artifact. `artifactType(MyClass)` makes it of a class. */
export interface ArtifactType {
  /** A colon hierarchy such as `link:cite:pubmed`. */
  readonly alias: string;
  /** Pure. Answers `undefined`, or throws, when the payload does not fit; `revive` rebuilds artifacts inside it. */
  readonly fromWire: (
    payload: Readonly<Record<string, unknown>>,
    revive: (part: unknown) => Artifact,
  ) => Artifact | undefined;
}

/**
 * Keeps the wire text of artifacts over restarts, and when they left memory. `put` replaces; `get` answers what
 * was put last, or `undefined`. Bounding what it keeps is its own affair.
 */
export interface ArtifactStore {
  readonly put: (ref: string, text: string) => Answer<void>;
  readonly get: (ref: string) => Answer<string | undefined>;
}

// ── Catalog, host, presentation ─────────────────────────────────────────────

export interface CatalogTool {
  readonly handle: string;
  readonly name: string;
  readonly description: string | undefined;
  readonly annotations: Readonly<Record<string, unknown>> | undefined;
}

/** Keeps, hides or renames a tool in what models see; at once, no promise. Policies fold in registration order; one that fails hides the tool. */
export interface CatalogPolicy {
  readonly decide: (tool: CatalogTool) => "keep" | "hide" | { readonly rename: string };
}

export interface HostRequestContext {
  readonly endpoint: McpEndpoint;
  readonly name: string;
  readonly signal: AbortSignal;
}

/** Answers what servers ask of the host. What is absent is not advertised. */
export interface HostHandlers {
  readonly sampling?:
    | ((
        params: CreateMessageRequest["params"],
        context: HostRequestContext,
      ) => Answer<CreateMessageResult | CreateMessageResultWithTools>)
    | undefined;
  readonly elicitation?:
    | {
        readonly form?:
          | ((params: ElicitRequestFormParams, context: HostRequestContext) => Answer<ElicitResult>)
          | undefined;
        readonly url?:
          | ((params: ElicitRequestURLParams, context: HostRequestContext) => Answer<ElicitResult>)
          | undefined;
      }
    | undefined;
  readonly roots?: ((context: HostRequestContext) => Answer<ReadonlyArray<Root>>) | undefined;
}

/** Words an error for a model. */
export interface ErrorPresenter {
  readonly present: (error: McpError) => string;
}

/** Sees every event, in its own fiber; it cannot slow or break a call. */
export interface Observer {
  readonly on: (event: McpEvent) => Answer<void>;
}

/** Reads endpoints from somewhere, for example an mcp.json file. */
export interface EndpointLoader {
  readonly kind: string;
  readonly load: (source: string) => Answer<ReadonlyArray<LoadedEndpoint>>;
}

/** An endpoint and the handle to attach it under. */
export interface LoadedEndpoint {
  readonly handle: string;
  readonly endpoint: McpEndpoint;
  /** Attach it with `pin: true`. Default false. */
  readonly pin?: boolean | undefined;
}
