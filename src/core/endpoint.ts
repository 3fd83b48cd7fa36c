/** How to reach one server. Plain values: no I/O happens before the first use. */
import * as Duration from "effect/Duration";
import { InvalidEndpoint } from "./errors.ts";
import { httpId, stdioId } from "./identity.ts";

/** Protocol eras: `legacy` opens with `initialize` (2024-10-07 to 2025-11-25), `modern` with `server/discover` (2026-07-28). */
export type Era = "legacy" | "modern";

/**
 * The least an endpoint says. A host may add a kind of its own: any object of this
 * shape works, when a registered transport plugin has the same `kind`.
 */
export interface McpEndpoint {
  /** `"stdio"`, `"http"`, or the kind of a registered transport plugin. */
  readonly transportType: string;
  /** Key of the shared client: equal ids share one connection. Holds no secret. */
  readonly endpointId: string;
  /** Label for health, gates and messages. Default: the id. */
  readonly name?: string | undefined;
  /** Silence after which a request fails. Default: the setting `requestTimeout` (20 s). */
  readonly requestTimeout?: Duration.Input | undefined;
  /** Default `"auto"`: negotiated once and remembered. */
  readonly era?: Era | "auto" | undefined;
  /** Called at attach; the first fault is raised as `InvalidEndpoint`. */
  readonly validate?: (() => InvalidEndpoint | undefined) | undefined;
}

export const endpointName = (endpoint: McpEndpoint): string => endpoint.name || endpoint.endpointId;

const fault = (field: string, reason: string, fix: string): InvalidEndpoint =>
  new InvalidEndpoint({ field, reason, fix });

/** The fault of an endpoint's `requestTimeout`, for `validate` of any kind of endpoint. */
export const validTimeout = (endpoint: McpEndpoint): InvalidEndpoint | undefined => {
  if (endpoint.requestTimeout === undefined) return undefined;
  try {
    if (Duration.toMillis(Duration.fromInputUnsafe(endpoint.requestTimeout)) > 0) return undefined;
  } catch {
    // Falls through to the fault below.
  }
  return fault("requestTimeout", "is no duration above zero", 'Give milliseconds or a duration such as "20 seconds".');
};

export interface StdioEndpointOptions {
  /** Label, for example `brave-search`. Mandatory. */
  readonly name: string;
  /** The executable alone; arguments go to `args`. No shell is involved. */
  readonly command: string;
  readonly args?: ReadonlyArray<string> | undefined;
  /** Added to the small allow-list the child gets; these win. Values never show anywhere. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly cwd?: string | undefined;
  readonly requestTimeout?: Duration.Input | undefined;
  readonly era?: Era | "auto" | undefined;
}

const isRecordOfStrings = (u: unknown): u is Record<string, string> =>
  typeof u === "object" && u !== null && !Array.isArray(u) && Object.values(u).every((v) => typeof v === "string");

/** A local server, run as a subprocess and spoken to over its stdin and stdout. */
export class StdioEndpoint implements McpEndpoint {
  readonly transportType = "stdio" as const;
  readonly endpointId: string;
  readonly name: string;
  readonly command: string;
  readonly args: ReadonlyArray<string>;
  readonly cwd: string | undefined;
  readonly requestTimeout: Duration.Input | undefined;
  readonly era: Era | "auto" | undefined;
  /** Not enumerable, so that a logged or serialized endpoint shows no value of it. */
  declare readonly env: Readonly<Record<string, string>> | undefined;

  constructor(options: StdioEndpointOptions) {
    this.name = options.name;
    this.command = options.command;
    this.args = options.args ?? [];
    this.cwd = options.cwd;
    this.requestTimeout = options.requestTimeout;
    this.era = options.era;
    Object.defineProperty(this, "env", { value: options.env, enumerable: false });
    this.endpointId = this.validate() === undefined ? stdioId(this) : `${String(options.name)}:invalid`;
  }

  validate(): InvalidEndpoint | undefined {
    if (typeof this.name !== "string" || this.name.trim() === "")
      return fault("name", "is missing", "Give the endpoint a label, for example name: 'brave-search'.");
    if (typeof this.command !== "string" || this.command.trim() === "")
      return fault(
        "command",
        `of '${this.name}' is empty`,
        "Name the executable that runs the server, for example 'npx'.",
      );
    if (!Array.isArray(this.args) || !this.args.every((arg) => typeof arg === "string"))
      return fault(
        "args",
        `of '${this.name}' is not a list of strings`,
        "Give every argument as one string of the list.",
      );
    if (this.env !== undefined && !isRecordOfStrings(this.env))
      return fault("env", `of '${this.name}' is not a map of strings`, "Give every variable a string value.");
    if (this.cwd !== undefined && (typeof this.cwd !== "string" || this.cwd === ""))
      return fault("cwd", `of '${this.name}' is not a path`, "Give an existing directory, or leave it out.");
    return validTimeout(this);
  }
}

/** What an endpoint says of its credential; a credential-flow plugin of the same `kind` uses it. */
export interface Credential {
  readonly kind: string;
  /** Who the credential stands for. Part of the endpoint id, so no secret. */
  readonly user: string;
  /** Called at attach, as the endpoint's own. */
  readonly validate?: (() => InvalidEndpoint | undefined) | undefined;
}

export interface HttpEndpointOptions {
  readonly url: string | URL;
  /** Label. Default: host and path of the URL. */
  readonly name?: string | undefined;
  /** Sent with every request to the URL's origin. Values never show anywhere. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Default `"auto"`: Streamable HTTP, falling back to SSE as the MCP specification describes. */
  readonly flavor?: "auto" | "streamable-http" | "sse" | undefined;
  readonly credential?: Credential | undefined;
  readonly requestTimeout?: Duration.Input | undefined;
  readonly era?: Era | "auto" | undefined;
}

/** A remote server over Streamable HTTP, or over the older HTTP+SSE. */
export class HttpEndpoint implements McpEndpoint {
  readonly transportType = "http" as const;
  readonly endpointId: string;
  readonly name: string;
  readonly flavor: "auto" | "streamable-http" | "sse";
  readonly requestTimeout: Duration.Input | undefined;
  readonly era: Era | "auto" | undefined;
  /** These three are not enumerable: a URL's query, headers and credentials may hold secrets. */
  declare readonly url: string;
  declare readonly headers: Readonly<Record<string, string>> | undefined;
  declare readonly credential: Credential | undefined;

  constructor(options: HttpEndpointOptions) {
    const url = String(options.url);
    Object.defineProperty(this, "url", { value: url, enumerable: false });
    Object.defineProperty(this, "headers", { value: options.headers, enumerable: false });
    Object.defineProperty(this, "credential", { value: options.credential, enumerable: false });
    this.flavor = options.flavor ?? "auto";
    this.requestTimeout = options.requestTimeout;
    this.era = options.era;
    const parsed = URL.canParse(url) ? new URL(url) : undefined;
    this.name = options.name ?? (parsed ? parsed.host + parsed.pathname.replace(/\/$/, "") : "http");
    this.endpointId =
      this.validate() === undefined ? httpId({ ...options, user: options.credential?.user }) : `${this.name}:invalid`;
  }

  validate(): InvalidEndpoint | undefined {
    if (!URL.canParse(this.url)) return fault("url", "is not a URL", "Give an absolute URL such as https://host/mcp.");
    const { protocol } = new URL(this.url);
    if (protocol !== "http:" && protocol !== "https:")
      return fault("url", `has the scheme '${protocol}'`, "Use http: or https:.");
    if (!["auto", "streamable-http", "sse"].includes(this.flavor))
      return fault("flavor", `'${String(this.flavor)}' is unknown`, "Use 'auto', 'streamable-http' or 'sse'.");
    if (this.headers !== undefined && !isRecordOfStrings(this.headers))
      return fault("headers", "is not a map of strings", "Give every header a string value.");
    for (const [header, value] of Object.entries(this.headers ?? {})) {
      if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(header))
        return fault(`headers.${JSON.stringify(header)}`, "is no header name", "Use letters, digits and dashes.");
      if (/[\r\n\0]/.test(value))
        return fault(`headers.${header}`, "holds a line break or NUL", "Remove it; a header value is one line.");
    }
    const authorization = Object.keys(this.headers ?? {}).some((header) => header.toLowerCase() === "authorization");
    if (this.credential && authorization)
      return fault("credential", "stands beside an Authorization header", "Remove one of the two.");
    if (this.credential && this.flavor === "sse")
      return fault("credential", "cannot be used with flavor 'sse'", "Use 'auto' or 'streamable-http'.");
    return this.credential?.validate?.() ?? validTimeout(this);
  }
}
