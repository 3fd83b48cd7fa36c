/** The servers of a soak as endpoints. */
import { createRequire } from "node:module";
import { HttpEndpoint, type McpEndpoint, StdioEndpoint } from "../src/mod.ts";
import { nodeBinary } from "../test/support/node-binary.ts";
import { scriptedStdio, type StdioProgram } from "../test/support/scripted-stdio.ts";

export interface SoakUrls {
  readonly json: string;
  readonly stream: string;
  readonly sse: string;
  readonly modern: string;
}

const everything = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");

const scripted = (name: string, program: StdioProgram, env?: Record<string, string>): StdioEndpoint =>
  new StdioEndpoint({ name, ...scriptedStdio(program), env });

/** Those that stay attached, by handle. */
export const residents = (urls: SoakUrls): Readonly<Record<string, McpEndpoint>> => ({
  everything: new StdioEndpoint({ name: "everything", command: nodeBinary, args: [everything, "stdio"] }),
  echo: scripted("echo", { pageSize: 1 }),
  reports: scripted("reports", {
    on: {
      "tools/call": [
        { notify: { method: "notifications/progress", params: { progressToken: "$token", progress: 1, total: 2 } } },
        { notify: { method: "notifications/tools/list_changed" } },
        { stderr: "a line of log\n" },
        { echo: true },
      ],
    },
  }),
  mute: scripted("mute", { on: { "tools/call": [{ never: true }] } }),
  large: scripted("large", { on: { "tools/call": [{ big: 100_000 }] } }),
  mortal: scripted("mortal", { on: { "tools/call": [[{ echo: true }], [{ exit: 1 }]] } }),
  json: new HttpEndpoint({ url: urls.json, flavor: "streamable-http" }),
  stream: new HttpEndpoint({ url: urls.stream, flavor: "streamable-http" }),
  sse: new HttpEndpoint({ url: urls.sse, flavor: "sse" }),
  modern: new HttpEndpoint({ url: urls.modern, flavor: "streamable-http" }),
});

/** One that comes and goes, another each time, whose process does not end by itself. */
export const guest = (number: number): StdioEndpoint =>
  scripted("guest", { ignoreStdinEnd: true }, { GUEST: String(number) });

/** The same over HTTP. */
export const httpGuest = (urls: SoakUrls, number: number): HttpEndpoint =>
  new HttpEndpoint({ url: urls.json, flavor: "streamable-http", headers: { "x-guest": String(number) } });
